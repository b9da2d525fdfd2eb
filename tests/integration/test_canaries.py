"""One walk over every surface that prints or stores, with a canary in every place of a secret.

It is done twice: with the values of secrets known, and by names and shapes alone, for texts of others.
"""

from __future__ import annotations

import io
import json
import logging
import sqlite3
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from penstock.cli import log_output, main
from penstock.config import Connection, find_connection, secrets
from penstock.config.logs import event_logger
from penstock.config.secrets import MaskingFilter, is_secret_key, mask_event, mask_mapping
from penstock.control.job_spec import JobSpec, pipeline_of
from penstock.control.store.rows import Desired
from penstock.control.stored_functions import serialize
from penstock.embedded.home import NodePlace, State
from penstock.embedded.security import Security
from penstock.engine.reasons import failure, refusal
from penstock.errors import PenstockError, RefusedError
from penstock.formats.registry import OAuth, Registry, Tls
from penstock.jobs import Store
from penstock.jobs.job_definition import Description
from penstock.pipeline import Pipeline, parse_pipeline

MARK = "cnry"
_numbers = iter(range(10_000))


def canary() -> str:
    """Return a text that no message has by itself, another one each time."""
    return f"{MARK}{next(_numbers):04d}X"


NUMBER = 918273645546372  # a password that YAML reads as a number
CONNECTION = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "sasl_ssl",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "app",
    "sasl.password": canary(),
    "ssl.key.password": canary(),
    "ssl.keystore.password": canary(),
    "sasl.oauthbearer.client.secret": canary(),
    "sasl.oauthbearer.config": f"principal={canary()} lifeSeconds=60",
    "sasl.oauthbearer.extensions": f"sessionId={canary()}",
    "sasl.oauthbearer.assertion.private.key.passphrase": canary(),
    "sasl.oauthbearer.assertion.private.key.pem": canary(),
}
CONF = {
    "spark.hadoop.fs.s3a.secret.key": canary(),
    "spark.hadoop.fs.s3a.access.key": NUMBER,
    "spark.hadoop.fs.s3a.session.token": canary(),
    "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net": f"{canary()}==",
    "spark.hadoop.fs.azure.account.oauth2.client.secret": canary(),
    "spark.hadoop.fs.azure.sas.fixed.token": f"sv=1&sig={canary()}",
    "spark.hadoop.javax.jdo.option.ConnectionPassword": canary(),
    "spark.authenticate.secret": canary(),
    "spark.ssl.keyPassword": canary(),
    "spark.kubernetes.authenticate.submission.oauthToken": canary(),
    "spark.executor.extraJavaOptions": f"-Djavax.net.ssl.keyStorePassword={canary()}",
}
DEFINITION = {
    "name": "canaries",
    "connection": CONNECTION,
    "source": {"kafka": {"topics": "t"}},
    "decode": {"json": {"schema": "a int"}},
    "steps": [{"sql": "SELECT * FROM rows"}],
    "sink": {"database": {"url": f"postgresql://app:{canary()}@127.0.0.1:1/shop", "table": "t"}},
    "dead_letters": {
        "database": {
            "url": f"postgresql://app@127.0.0.1:1/shop?sslpassword={canary()}",
            "password": canary(),
            "table": "d",
        }
    },
    "spark": {"conf": CONF},
}


@pytest.fixture(autouse=True, params=["values are known", "by names alone"])
def home(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(secrets, "_known", {})
    if request.param == "by names alone":
        monkeypatch.setattr(secrets, "_SHORTEST_KNOWN", 10**9)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def clean(*texts: object) -> bool:
    leaked = [str(text) for text in texts if MARK in str(text) or str(NUMBER) in str(text)]
    assert not leaked, leaked[0][:2000]
    return True


def definition() -> str:
    return yaml.safe_dump(DEFINITION)


def test_the_canaries_are_where_they_belong() -> None:
    """Without this, an empty walk would pass."""
    text = definition()
    found = parse_pipeline(text)
    assert text.count(MARK) == 21
    assert MARK in found.connection.librdkafka()["sasl.password"]
    assert MARK in found.spark.conf["spark.hadoop.fs.s3a.secret.key"]
    assert MARK in found.sink.password.get_secret_value()


def test_no_object_shows_one() -> None:
    found = parse_pipeline(definition())
    connection = found.connection
    parts = [found, connection, found.spark, found.source, found.decode, *found.steps, found.sink]
    others = [
        found.dead_letters,
        Registry(f"http://app:{canary()}@a,http://b", tls=Tls(key_password=canary())),
        Tls(key_password=canary()),
        OAuth("http://a", "app", canary(), headers={"a": canary()}),
        Registry("http://a", oauth=OAuth("http://b", "app", canary())),
        Security(protocol="sasl_plaintext", users={"a": canary()}, key_password=canary()),
        State("c", [NodePlace(1, "d", 1, 2, 3)], canary(), {"a": canary()}),
        Description.of_pipeline(DEFINITION),
        JobSpec(DEFINITION, {}, "1"),
    ]
    for each in [*parts, *others]:
        assert clean(repr(each), str(each), f"{each}", repr([each]), repr({"a": each}))
    for each in parts:
        assert clean(each.model_dump(), each.model_dump(mode="json"), each.model_dump_json())
    assert clean(connection.describe(), mask_mapping(connection.spark()), mask_mapping(CONF))


def ended(*args: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    return end.value.code


YAML = [
    "*SECRET",
    "!SECRET",
    "'SECRET",
    '"SECRET\\q"',
    "@SECRET",
    "%SECRET",
    "SECRET: x: y",
    "[SECRET",
    "{SECRET",
    "|SECRET",
    "`SECRET",
    "\tSECRET",
    "!!timestamp SECRET",
    "!!int SECRET",
    "!!binary SECRET",
    "&SECRET *SECRETx",
    "SECRET\x00",
    "SECRET\n  : x",
]


def _broken() -> dict[str, str]:
    """Definitions that are wrong, each next to a secret or in it."""
    whole = definition()
    secret = canary()
    wrong: dict[str, Any] = {}
    for name in CONNECTION:
        if "password" in name or "secret" in name or "oauth" in name:
            wrong[f"list in {name}"] = {"connection": {**CONNECTION, name: [secret]}}
            wrong[f"mapping in {name}"] = {"connection": {**CONNECTION, name: {"x": secret}}}
    for name in CONF:
        wrong[f"list in {name}"] = {"spark": {"conf": {**CONF, name: [secret, NUMBER]}}}
    sink = DEFINITION["dead_letters"]["database"]  # type: ignore[index]
    wrong |= {
        "number as a password": {"sink": {"database": {**sink, "password": NUMBER}}},
        "list as a password": {"sink": {"database": {**sink, "password": [NUMBER, secret]}}},
        "two passwords": {"sink": {"database": {**sink, "url": f"postgresql://a:{secret}@b/c"}}},
        "wrong scheme": {"sink": {"database": {**sink, "url": f"oracle://a:{secret}@b/c"}}},
        "password in the query": {
            "sink": {"database": {**sink, "url": f"postgresql://b?password={secret}"}}
        },
        "no database": {"sink": {"database": {**sink, "url": f"postgresql://a:{secret}@b"}}},
        "sink is an address": {"sink": f"postgresql://a:{secret}@b/c"},
        "unknown option": {"sink": {"database": {**sink, "passwrd": secret}}},
        "unknown key": {"connection": {**CONNECTION, "sasl.pasword": secret}},
        "unknown connection": {"connection": f"kafka://app:{secret}@h:1"},
        "a number for a topic": {"source": {"kafka": {"topics": {"password": secret}}}},
        "not a reference": {"sink": {"database": {**sink, "password": f"${{{secret}}}"}}},
        "master with a secret": {"spark": {"master": 5, "conf": CONF}},
    }
    texts = {name: yaml.safe_dump({**DEFINITION, **part}) for name, part in wrong.items()}
    for kind in YAML:
        texts[f"YAML: {kind}"] = whole + f"\nx:\n  password: {kind.replace('SECRET', secret)}\n"
    return texts


BROKEN = _broken()


@pytest.mark.parametrize("name", BROKEN)
def test_no_check_of_a_wrong_definition_shows_one(name: str, capsys: Any) -> None:
    Path("wrong.yaml").write_text(BROKEN[name], encoding="utf-8")
    for options in ([], ["--json"]):
        assert ended("check", *options, "wrong.yaml") != 0
        shown = capsys.readouterr()
        assert shown.out + shown.err
        assert clean(shown.out, shown.err)
    with pytest.raises(PenstockError) as raised:
        parse_pipeline(BROKEN[name])
    assert clean("".join(traceback.format_exception(raised.value)), repr(raised.value))
    crash = log_output.write_crash(raised.value)
    assert clean(crash.read_text())


@pytest.mark.by_turns
def test_neither_a_right_one_nor_the_doctor_shows_one(capsys: Any) -> None:
    Path("right.yaml").write_text(definition())
    Path("penstock.yaml").write_text(yaml.safe_dump({"connections": {"c": CONNECTION}}))
    assert ended("check", "right.yaml") == 0
    assert ended("check", "--json", "right.yaml") == 0
    ended("doctor")
    ended("doctor", "--json")
    ended("topics", "list")
    ended("-vv", "--log-format", "json", "topics", "list")
    shown = capsys.readouterr()
    assert "connection" in shown.out
    assert clean(shown.out, shown.err)


def test_no_settings_file_shows_one(capsys: Any) -> None:
    for name, text in BROKEN.items():
        if name.startswith("YAML"):
            Path("penstock.yaml").write_text(text, encoding="utf-8")
            ended("topics", "list")
    wrong = {**CONNECTION, "sasl.password": [canary()], "plugin.library.paths": canary()}
    Path("penstock.yaml").write_text(yaml.safe_dump({"connections": {"c": wrong}}))
    ended("topics", "list")
    shown = capsys.readouterr()
    assert shown.err.count("error: ") > 10
    assert clean(shown.out, shown.err)


TEXTS = [
    lambda: f"FATAL: fs.s3a.secret.key={canary()} is wrong",
    lambda: f"cannot connect to postgresql://app:{canary()}@db/shop?sslpassword={canary()}&x=1",
    lambda: f"{{'sasl.password': {NUMBER}, 'a': 1}}",
    lambda: f'org.x.PlainLoginModule required username="a" password="{canary()}";',
    lambda: f"java -Djavax.net.ssl.keyStorePassword={canary()} -cp x",
    lambda: f"Authorization: Basic {canary()}",
    lambda: json.dumps({"error": json.dumps({"token": f"{canary()} {canary()}"})}),
]


@pytest.mark.parametrize("make", TEXTS)
def test_no_failure_no_dead_letter_and_no_row_of_the_job_store_has_one(
    make: Any, capsys: Any
) -> None:
    text = make()
    assert clean(failure(RuntimeError(text), "p", None))
    assert clean(refusal(RefusedError(text)))
    store = Store.default()
    data = serialize(DEFINITION)
    store.put("canaries", JobSpec(data, {"as_table": False}, "1"), Desired.RUNNING)
    store.control.events.add("canaries", "failed", text)
    lease = store.control.leases.claim("canaries", "a-worker")
    store.control.leases.release("canaries", "a-worker", lease.token, "FAILED", text)
    assert MARK in pipeline_of(store.get("canaries").definition).sink.password.get_secret_value()
    for command in (["list"], ["list", "--json"], ["show", "canaries"], ["show", "canaries", "--json"],
                    ["logs", "canaries"], ["stats"], ["stats", "--json"]):  # fmt: skip
        ended("jobs", *command)
    shown = capsys.readouterr()
    assert "canaries" in shown.out
    assert clean(shown.out, shown.err)
    files = list(Path(str(Path.cwd().parent / "home")).rglob("*.sqlite"))
    for row in _rows(files[0]):
        assert clean(row)
    assert files[0].stat().st_mode & 0o077 == 0


def _rows(file: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(file) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        return [
            dict(row) for (name,) in tables for row in connection.execute(f"SELECT * FROM {name}")
        ]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_log_has_one(log_format: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    log_output.set_up(log_format, 2)
    try:
        _log_everything()
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        structlog.reset_defaults()
    assert "everything" in out.getvalue()
    assert clean(out.getvalue())


def _fail(text: str) -> None:
    raise ValueError(text)


def _log_everything() -> None:
    found = parse_pipeline(definition())
    things = [
        found,
        found.connection,
        found.spark,
        CONNECTION,
        CONF,
        DEFINITION,
        found.sink,
        [CONF],
    ]
    things += [found.connection.spark(), *(make() for make in TEXTS)]
    for thing in things:
        structlog.get_logger("x").info("everything", thing=thing, nested={"a": [thing]})
        event_logger("penstock.x").info("everything", thing=thing)
        logging.getLogger("x").info("everything %s", thing)
        try:
            _fail(str(mask_mapping({"x": thing})) if isinstance(thing, dict) else str(thing))
        except ValueError:
            logging.getLogger("x").exception("everything failed")


def test_no_library_log_has_one_before_any_handler_masks_it() -> None:
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logger = logging.getLogger("penstock.canaries")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    for make in TEXTS:
        event_logger("penstock.canaries").info("everything", settings=CONF, text=make())
    logger.removeHandler(handler)
    assert len(seen) == len(TEXTS)
    assert clean(*(vars(record) for record in seen))
    plain = logging.makeLogRecord({"msg": "%s", "args": (CONF,)})
    MaskingFilter().filter(plain)
    assert clean(plain.getMessage(), mask_event(None, "info", {"event": "x", "conf": CONF}))


def test_spark_settings_of_two_pipelines_that_differ_are_not_shown(monkeypatch: Any) -> None:
    from penstock.engine import session

    monkeypatch.setattr(session, "_jvm", _Alive())
    monkeypatch.setattr(session, "_options", parse_pipeline(definition()).spark)
    monkeypatch.setattr(session, "_was_stopped", lambda: False)
    with pytest.raises(PenstockError, match="already runs in this process") as raised:
        session.spark_session(
            Pipeline(**DEFINITION, max_refused=1).spark.model_copy(update={"memory": "2g"})
        )
    assert clean(raised.value)


class _Alive:
    class process:  # noqa: N801
        @staticmethod
        def poll() -> None:
            return None


def test_no_argument_of_a_process_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's settings go through a file, and so do those of Kafka's tools."""
    from penstock.embedded import tools
    from penstock.engine import spark_jvm

    started: list[str] = []

    def record(command: list[str], *_: Any, **__: Any) -> None:
        started.extend(map(str, command))
        raise KeyboardInterrupt

    monkeypatch.setattr(spark_jvm, "_spawn", record)
    monkeypatch.setattr(subprocess, "run", record)
    monkeypatch.setattr(
        spark_jvm, "find_java", lambda: type("J", (), {"version": "17", "path": "java"})
    )
    monkeypatch.setattr(spark_jvm, "own_jars", list)
    runtime = type("R", (), {"command": lambda *_, **__: ["java"]})()
    monkeypatch.setattr(tools, "kafka_runtime", lambda _: runtime)
    with pytest.raises(KeyboardInterrupt):
        spark_jvm.start_jvm(
            "1g", {"spark.master": "local[1]", **{k: str(v) for k, v in CONF.items()}}
        )
    plain = {name: value for name, value in CONNECTION.items() if "keystore" not in name}
    with pytest.raises(KeyboardInterrupt):
        tools.run_tool("kafka-topics", Connection.from_config(plain), ["--list"])
    assert len(started) > 5
    assert clean(*started)


def test_no_error_of_a_connection_that_is_looked_up_has_one() -> None:
    for name in filter(is_secret_key, CONNECTION):
        with pytest.raises(PenstockError) as raised:
            find_connection({**CONNECTION, name: {"x": canary()}})
        assert clean("".join(traceback.format_exception(raised.value)))
