"""What a worker logs reaches the store: masked, short, in order, and without making anyone wait."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from penstock.config.log_fields import deployments_named, log_fields
from penstock.config.logs import event_logger
from penstock.config.secrets import remember_secret
from penstock.control.store import ControlStore
from penstock.control.store.logs import LogFilter, LogLine
from penstock.control.store.rows import Kind, LogRow
from penstock.errors import TransientError
from penstock.worker.log_lines import LogLines
from penstock.worker.log_record import LONGEST_EVENT, LONGEST_FIELDS, line_of

log = event_logger("penstock.test")


@pytest.fixture
def store(control_store: ControlStore) -> ControlStore:
    for name in ("orders", "other"):
        control_store.deployments.put(name, Kind.PIPELINE, "x", by="ann")
    return control_store


@pytest.fixture
def lines(store: ControlStore) -> Iterator[LogLines]:
    made = LogLines(store.logs, "w", most=20)
    with made.collecting():
        yield made


def stored(store: ControlStore, deployment: str = "orders") -> list[LogRow]:
    return store.logs.after(0, LogFilter(deployment=deployment))


def test_a_line_has_level_event_and_fields(store: ControlStore, lines: LogLines) -> None:
    log.info("run_begins", deployment="orders", lease=7)
    log.warning("records_failed", pipeline="orders", failed=2, example="x\ny")
    log.debug("not_collected", pipeline="orders")
    lines.write()

    assert [(row.level, row.event, row.fields) for row in stored(store)] == [
        ("info", "run_begins", {"lease": 7}),
        ("warning", "records_failed", {"failed": 2, "example": "x\ny"}),
    ]
    assert {row.worker for row in stored(store)} == {"w"}


def test_lines_are_attributed_by_field_by_block_and_by_thread(
    store: ControlStore, lines: LogLines
) -> None:
    with deployments_named(), log_fields(pipeline="orders"):
        log.info("in_a_block", pipeline="orders.dead")
    for name in ("run-orders", "orders-supervisor", "orders-import", "orders-lease"):
        thread = threading.Thread(target=log.info, args=["in_a_thread"], name=name)
        thread.start()
        thread.join()
    log.info("own_line")
    log.info("own_line", deployment="nope")
    log.info("own_line", deployment=["orders"])
    lines.write()

    assert [row.event for row in stored(store)] == ["in_a_block", *["in_a_thread"] * 4]
    assert stored(store)[0].fields == {"pipeline": "orders.dead"}
    assert [row.event for row in stored(store, "")] == ["own_line"] * 3


def test_lines_of_other_libraries_are_collected_from_warning_on(
    store: ControlStore, lines: LogLines
) -> None:
    other = logging.getLogger("some.library")
    other.info("no")
    other.warning("broker %s is away", "b1")
    logging.getLogger("sqlalchemy.engine").error("never: it would log its own logging")
    lines.write()

    (row,) = stored(store, "")
    assert (row.event, row.fields) == ("broker b1 is away", {"logger": "some.library"})


def test_an_event_of_a_logger_of_structlog_is_read(store: ControlStore, lines: LogLines) -> None:
    structured = structlog.wrap_logger(
        logging.getLogger("mine"),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    )
    structured.warning("step_slow", pipeline="orders", seconds=3.5)
    lines.write()

    (row,) = stored(store)
    assert (row.event, row.fields) == ("step_slow", {"seconds": 3.5, "logger": "mine"})


def test_secrets_are_masked_in_events_fields_and_tracebacks(
    store: ControlStore, lines: LogLines
) -> None:
    remember_secret("correct-horse-7")
    try:
        int("password=hunter2 of correct-horse-7")
    except ValueError:
        log.exception("failed", pipeline="orders", nested={"a": [{"sasl.password": "hunter2"}]})
    logging.getLogger("x").warning("postgresql://a:hunter2@db/x and correct-horse-7")
    # A secret at the place where a text is cut does not stay in halves.
    log.info("x" * (LONGEST_EVENT - 5) + "correct-horse-7", pipeline="orders")
    lines.write()

    text = json.dumps([row.fields | {"event": row.event} for row in store.logs.after(0)])
    assert "ValueError" in text
    for secret in ("hunter2", "correct-horse-7", "corre"):
        assert secret not in text


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def cycle() -> list[Any]:
    values: list[Any] = []
    values.append(values)
    return values


@pytest.mark.parametrize(
    "value",
    [
        "a\x00b", "\ud800", "\x1b[31m\r\n\u202e", float("nan"), float("-inf"), 10**5000, b"\xff",
        Unprintable(), cycle(), {(1, 2): {None: {3: 4}}}, {"a" * 5000: "b" * 50_000},
        ["x" * 1000] * 1000, object(), ValueError("x"), True, None, -(2**70),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_whatever_is_logged_can_be_stored_and_shown(
    store: ControlStore, lines: LogLines, value: object
) -> None:
    record = logging.makeLogRecord(
        {"msg": "hostile", "name": "penstock.x", "levelno": 20, "deployment": "orders", "v": value}
    )
    record.__dict__["k\x00\ud800" + "y" * 500] = value
    lines.handle(record)
    lines.write()

    (row,) = store.logs.after(0)
    shown = json.dumps(row.fields, allow_nan=False, ensure_ascii=False).encode()
    assert len(shown) < 2 * LONGEST_FIELDS


@pytest.mark.parametrize(
    "text",
    ["", "\x00", "\ud800 \udfff", "%s %d", "x" * 10**6, "{}"],
    ids=["empty", "nul", "surrogates", "percent", "long", "braces"],
)
def test_any_text_can_be_an_event(store: ControlStore, lines: LogLines, text: str) -> None:
    lines.handle(logging.makeLogRecord({"msg": text, "levelno": 30, "pipeline": "orders"}))
    lines.write()

    (row,) = store.logs.after(0)
    assert len(row.event) <= LONGEST_EVENT + 3
    assert "\x00" not in row.event


def test_a_record_that_cannot_be_read_is_noted_and_raises_nothing(
    store: ControlStore, lines: LogLines
) -> None:
    lines.handle(logging.makeLogRecord({"msg": "%d", "args": ("x",), "levelno": 40}))
    lines.write()

    assert [row.event for row in store.logs.after(0)] == ["log_line_unreadable"]


def test_a_long_traceback_keeps_its_end() -> None:
    record = logging.makeLogRecord({"msg": "x", "levelno": 40})
    record.exc_text = "frame\n" * 5000 + "ValueError: the reason"

    assert line_of(record).fields["exception"].endswith("ValueError: the reason")


class AwayLogs:
    """A store that cannot be reached until `back`; then it writes to the real one."""

    def __init__(self, logs: Any, error: Exception) -> None:
        self._logs, self.error, self.back = logs, error, False

    def add(self, worker: str, lines: list[LogLine]) -> None:
        if not self.back:
            raise self.error
        self._logs.add(worker, lines)

    def remove_orphans(self) -> None:
        return


def test_when_the_store_is_away_the_newest_lines_wait_and_the_others_are_counted(
    store: ControlStore,
) -> None:
    away = AwayLogs(store.logs, TransientError("away"))
    lines = LogLines(away, "w", most=20)  # type: ignore[arg-type]
    with lines.collecting():
        log.info("quiet", pipeline="other")
        for n in range(30):
            log.info(f"{n}", pipeline="orders")
        for _ in range(3):
            with pytest.raises(TransientError):
                lines.write()
        for n in range(30, 40):
            log.info(f"{n}", pipeline="orders")
        away.back = True
        lines.write()

    assert [row.event for row in stored(store, "other")] == ["quiet"]  # the noisy one pays
    rows = stored(store)
    assert (rows[0].level, rows[0].event) == ("warning", "21 lines left out")
    assert [row.event for row in rows[1:]] == [str(n) for n in range(21, 40)]


def test_lines_that_the_store_refuses_are_counted_and_not_tried_forever(
    store: ControlStore,
) -> None:
    away = AwayLogs(store.logs, ValueError("refused"))
    lines = LogLines(away, "w")  # type: ignore[arg-type]
    with lines.collecting():
        log.info("a", pipeline="orders")
        with pytest.raises(ValueError, match="refused"):
            lines.write()
        away.back = True
        log.info("b", pipeline="orders")
        lines.write()

    assert [row.event for row in stored(store)] == ["1 lines left out", "b"]


def test_threads_that_log_do_not_wait_for_a_store_that_is_slow(store: ControlStore) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class SlowLogs(AwayLogs):
        def add(self, worker: str, lines: list[LogLine]) -> None:
            entered.set()
            assert go_on.wait(60)
            super().add(worker, lines)

    slow = SlowLogs(store.logs, TransientError("away"))
    slow.back = True
    lines = LogLines(slow, "w")  # type: ignore[arg-type]
    with lines.collecting():
        log.info("before", pipeline="orders")
        writing = threading.Thread(target=lines.write)
        writing.start()
        assert entered.wait(60)
        log.info("meanwhile", pipeline="orders")  # returns, although the store has not replied
        go_on.set()
        writing.join(60)
        lines.write()

    assert [row.event for row in stored(store)] == ["before", "meanwhile"]


def test_many_threads_lose_no_line(store: ControlStore) -> None:
    lines = LogLines(store.logs, "w")
    with lines.collecting():
        threads = [
            threading.Thread(
                target=lambda n=n: [log.info(f"{n}.{m}", pipeline="orders") for m in range(100)]
            )
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            lines.write()
        lines.write()

    found = [row.event for row in store.logs.newest(LogFilter(deployment="orders"), 1000)]
    assert sorted(found) == sorted(f"{n}.{m}" for n in range(8) for m in range(100))
    for n in range(8):
        assert [e for e in found if e.startswith(f"{n}.")] == [f"{n}.{m}" for m in range(100)]


def test_other_handlers_get_no_more_than_before_and_all_is_restored(store: ControlStore) -> None:
    heard: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    root, own, hearing = logging.getLogger(), logging.getLogger("penstock"), Hearing()
    before = root.level, own.level
    root.addHandler(hearing)
    root.setLevel(logging.WARNING)
    try:
        with LogLines(store.logs, "w").collecting():
            log.info("quiet", pipeline="orders")
            log.warning("loud", pipeline="orders")
        assert (root.level, own.level, hearing.level) == (logging.WARNING, before[1], 0)
    finally:
        root.removeHandler(hearing)
        root.setLevel(before[0])
    assert heard == ["loud"]
