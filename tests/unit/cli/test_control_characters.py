"""What a record says neither steers a terminal nor writes lines of its own into a log."""

import io
import json
import logging
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli import log_output, output
from penstock.cli.live_progress import summary
from penstock.cli.printing import Output, Printer
from penstock.config.printable import printable, printable_lines
from penstock.engine import Progress, State
from penstock.record import Record
from penstock.sinks.console import ConsoleSink

HOSTILE = "a\x1b[2J\x1b]0;title\x07\rb\nc\x9b31m\x7f\u202egnp\u2028d\x00"
STEERS = set("\x1b\x07\r\x9b\x7f\u202e\u2028\x00")


class Screen:
    """What stands in for stdout and stderr; pytest puts its own there after fixtures have run."""

    def __init__(self, is_terminal, monkeypatch):
        self.is_terminal = is_terminal
        self._monkeypatch = monkeypatch
        self.buffer = io.BytesIO()
        self.encoding = "utf-8"

    def isatty(self):
        return self.is_terminal

    def flush(self):
        self.buffer.flush()

    def write(self, text):
        self.buffer.write(text.encode())

    def show(self, *calls):
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", self)
            patch.setattr(sys, "stderr", self)
            for call in calls:
                call()
        return self.buffer.getvalue().decode()


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def screen(request, monkeypatch):
    return Screen(request.param, monkeypatch)


def test_a_table_has_one_line_for_each_row(screen):
    shown = screen.show(lambda: output.print_table(("topic", "error"), [("t", HOSTILE)]))
    assert screen.is_terminal or shown.count("\n") == 2
    assert not STEERS & set(shown.replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert r"a\u001b[2J" in shown


def test_a_message_keeps_its_lines_and_nothing_else(screen):
    shown = screen.show(lambda: output.say(HOSTILE), lambda: output.say_error(HOSTILE))
    shown = shown.replace("\x1b[1;31m", "").replace("\x1b[0m", "")
    assert not STEERS & set(shown)


def test_json_is_the_same_document_without_control_characters(screen):
    shown = screen.show(lambda: output.print_json({"error": HOSTILE}))
    assert json.loads(shown) == {"error": HOSTILE}
    if screen.is_terminal:
        assert not STEERS & set(shown)


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("through", ["structlog", "logging", "extra"])
def test_an_event_is_one_line_of_a_log(log_format, through, monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    log_output.set_up(log_format, 1)
    try:
        if through == "structlog":
            structlog.get_logger("x").warning("e", text=HOSTILE, nested={HOSTILE: [HOSTILE]})
        elif through == "logging":
            logging.getLogger("x").warning("e %s", HOSTILE)
        else:
            logging.getLogger("x").warning("e", extra={"given": ValueError(HOSTILE)})
    finally:
        root.handlers[:], _ = before[0], root.setLevel(before[1])
        structlog.reset_defaults()
    assert out.getvalue().count("\n") == 1
    assert not STEERS & set(out.getvalue())


def test_no_line_of_a_traceback_looks_like_an_event(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    root = logging.getLogger()
    before = root.handlers[:]
    log_output.set_up("text", 0)
    try:
        int("x\n2026-01-01T00:00:00Z [info] forged")
    except ValueError:
        logging.getLogger("x").exception("failed")
    finally:
        root.handlers[:] = before
        structlog.reset_defaults()
    assert "\n2026-01-01" not in out.getvalue()
    assert "forged" in out.getvalue()


def _record(value):
    return Record.of("t", 0, 0, key=b"k\x1b", value=value)


@pytest.mark.parametrize("form", [Output.text, Output.json, Output.hex])
def test_a_terminal_gets_records_written_out_and_a_pipe_gets_them_as_they_are(form):
    value = HOSTILE.encode() + b"\xff"
    shown = Printer(form, ": ", terminal=True)(_record(value)).decode()
    assert not STEERS & set(shown)
    assert shown.count("\n") == 1
    piped = Printer(Output.text)(_record(value))
    assert piped == value + b"\n"


def test_raw_is_raw():
    assert Printer(Output.raw, terminal=True)(_record(b"\x1b\xff")) == b"\x1b\xff"


def test_the_line_about_a_pipeline_is_one_line():
    line = summary(Progress("p", state=State.FAILED, last_error=HOSTILE))
    assert "\n" not in line
    assert not STEERS & set(line)


def test_the_console_sink_shows_rows_as_they_are_and_takes_nothing_for_markup(capsys):
    table = pa.table({"text": [HOSTILE, "[bold red]x[/]", None]})
    rows = MagicMock()
    rows.localCheckpoint.return_value.limit.return_value.toArrow.return_value = table
    ConsoleSink().open(SimpleNamespace()).write(SimpleNamespace(rows=rows, pipeline="p", id=0))
    shown = capsys.readouterr().out
    assert not STEERS & set(shown)
    assert "[bold red]x[/]" in shown


@given(st.text())
def test_what_is_printable_stays_and_the_rest_is_ascii(text):
    shown = printable(text)
    assert shown.isprintable() or not STEERS & set(shown)
    assert printable(shown) == shown
    assert printable_lines(text).count("\n") == text.count("\n")
