"""The client commands as a user runs them: a real broker, bytes on stdout."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.services.command_line import run_bytes

from penstock.config import Connection
from penstock.kafka import Admin, Producer

PENSTOCK = str(Path(sys.executable).with_name("penstock"))


class Cli:
    """Runs `penstock` against the test broker."""

    def __init__(self, brokers: str, home: Path) -> None:
        self.brokers = brokers
        self.environment = {**os.environ, "PENSTOCK_HOME": str(home)}

    def start(self, *args: str, **pipes: int) -> "subprocess.Popen[bytes]":
        command = [PENSTOCK, *(["--brokers", self.brokers] if self.brokers else []), *args]
        return subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.environment["PENSTOCK_HOME"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **pipes,
        )

    def run(self, *args: str, given: bytes = b"", code: int = 0) -> "tuple[bytes, str]":
        """Run it in this process: a start of Python takes longer than most commands."""
        home, brokers = self.environment["PENSTOCK_HOME"], self.brokers
        own = [*(["--brokers", brokers] if brokers else []), *args]
        ended, out, err = run_bytes(*own, environment=self.environment, folder=home, given=given)
        assert ended == code, err.decode()
        assert b"Traceback" not in err
        return out, err.decode()


@pytest.fixture
def cli(connection: Connection, tmp_path: Path) -> Cli:
    return Cli(connection.brokers, tmp_path)


@pytest.fixture
def made(connection: Connection, topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    with Admin(connection) as admin:
        admin.create_topic(topic(), partitions=1)
    return topic()


def test_a_topic_lives_from_create_to_delete(cli: Cli, topic: Callable[..., str]) -> None:
    name = topic()
    cli.run("topics", "create", name, "-p", "2", "--config", "retention.ms=60000")
    listed = json.loads(cli.run("topics", "list", "--json")[0])
    assert {"name": name, "partitions": 2, "replication": 1, "internal": False} in listed
    described = json.loads(cli.run("topics", "describe", name, "--json")[0])
    assert described["config"] == {"retention.ms": "60000"}
    assert [p["latest"] for p in described["partitions"]] == [0, 0]
    assert cli.run("topics", "describe", name)[0].decode().splitlines() == [
        "partition\tleader\treplicas\tisr\tearliest\tlatest",
        "0\t1\t1\t1\t0\t0",
        "1\t1\t1\t1\t0\t0",
        "setting\tvalue",
        "retention.ms\t60000",
    ]
    out, err = cli.run("topics", "delete", name, "--yes")
    assert (out, err) == (b"", f"topic {name} deleted\n")
    assert name not in [t["name"] for t in json.loads(cli.run("topics", "list", "--json")[0])]


def test_delete_asks_and_takes_no_for_an_answer(cli: Cli, made: str) -> None:
    out, err = cli.run("topics", "delete", made, given=b"n\n", code=1)
    assert out == b""
    assert f"delete {made} with all records? [y/N] nothing was deleted\n" == err
    assert made in cli.run("topics", "list")[0].decode()


def test_lines_go_in_and_come_out(cli: Cli, made: str) -> None:
    _, err = cli.run("produce", made, given=b"one\n\ntwo\xff\nno newline at the end")
    assert err == f"4 records written to {made}\n"
    assert cli.run("consume", made)[0] == b"one\n\ntwo\xff\nno newline at the end\n"
    assert cli.run("consume", made, "--output", "raw")[0] == b"onetwo\xffno newline at the end"
    assert cli.run("consume", made, "-o", "hex", "-n", "1")[0] == b"6f6e65\n"


def test_keys_and_headers_come_from_lines_and_options(cli: Cli, made: str) -> None:
    cli.run("produce", made, "--key-separator", "=", "-H", "by=test", given=b"a=1\nb=2=3\n")
    lines = [json.loads(line) for line in cli.run("consume", made, "--json")[0].split()]
    assert [(r["key"], r["value"], r["headers"]) for r in lines] == [
        ("a", "1", {"by": "test"}),
        ("b", "2=3", {"by": "test"}),
    ]
    assert cli.run("consume", made, "--key-separator", ": ")[0] == b"a: 1\nb: 2=3\n"


def test_json_lines_from_one_topic_go_into_another_unchanged(
    cli: Cli, made: str, topic: Callable[..., str]
) -> None:
    first = b'{"key":"k","value":{"a":1},"headers":{"h":["1","2"]},"timestamp":5}\n'
    cli.run("produce", made, "--json", given=first + b'{"value":null}\n{"value_base64":"/w=="}\n')
    printed = cli.run("consume", made, "--json")[0]
    copy = topic("copy")
    cli.run("produce", copy, "--create", "--json", given=printed)
    assert cli.run("consume", copy, "--json")[0] == printed.replace(made.encode(), copy.encode())
    assert json.loads(printed.splitlines()[0]) == {
        "topic": made,
        "partition": 0,
        "offset": 0,
        "timestamp": 5,
        "key": "k",
        "value": '{"a":1}',
        "headers": {"h": ["1", "2"]},
    }


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("json", b'{"price":1.5}\n[1,2]\nnull\n'),
        ("arrow", b'{"price":1.5}\n[1,2]\n"text"\nnull\n'),
        ("dolphindb", b"[1,2]\n7\nnull\n"),
        ("long", b"1\n-2\n"),
        ("double", b"0.1\n"),
        ("uuid", b"123e4567-e89b-12d3-a456-426614174000\n"),
        ("string", "é\n".encode()),
    ],
)
def test_values_of_a_format_go_in_and_come_out(
    cli: Cli, made: str, name: str, lines: bytes
) -> None:
    cli.run("produce", made, "--format", name, given=lines)
    assert cli.run("consume", made, "--format", name) == (lines, "")


def test_a_value_that_does_not_decode_is_shown_and_the_next_one_follows(
    cli: Cli, made: str, connection: Connection
) -> None:
    with Producer(connection) as producer:
        for value in (b"[1, 2]", b"plain text", b'{"a": 1}'):
            producer.produce(made, None, value)
    out, err = cli.run("consume", made, "--format", "auto")
    first, second, third = out.decode().splitlines()
    assert (first, third) == ("[1,2]", '{"a":1}')
    assert second.startswith(f"error: {made}[0] offset 1: read as dolphindb, because")
    assert second.endswith(": b'plain text'")
    assert err == "1 record did not decode with --format auto\n"
    documents = [
        json.loads(line)
        for line in cli.run("consume", made, "--format", "auto", "--json")[0].splitlines()
    ]
    assert [document.get("value") for document in documents] == [[1, 2], None, {"a": 1}]
    assert documents[1]["error"].startswith("read as dolphindb")


def test_a_partition_that_is_not_there_is_refused_before_anything_is_sent(
    cli: Cli, made: str
) -> None:
    _, err = cli.run("produce", made, "--partition", "3", given=b"x\n", code=2)
    assert f"topic '{made}' has no partition 3; allowed: 0 to 0; to add some: penstock" in err


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ((), b"0123456789"),
        (("--from", "7"), b"789"),
        (("--from", "-2"), b"89"),
        (("--from", "latest"), b""),
        (("--until", "3"), b"012"),
        (("--from", "1970-01-01T00:00:04", "--until", "@6000"), b"34"),
        (("--from", "2", "--count", "3"), b"234"),
    ],
)
def test_consume_prints_what_lies_between_from_and_until(
    cli: Cli, made: str, options: tuple[str, ...], printed: bytes
) -> None:
    lines = [json.dumps({"value": str(n), "timestamp": 1000 + n * 1000}) for n in range(10)]
    cli.run("produce", made, "--json", given="\n".join(lines).encode())
    assert cli.run("consume", made, *options)[0].replace(b"\n", b"") == printed


def test_a_group_goes_on_after_what_it_printed_and_shows_its_lag(
    cli: Cli, made: str, unique: str
) -> None:
    cli.run("produce", made, given=b"a\nb\nc\n")
    assert cli.run("consume", made, "--group", unique, "-n", "2")[0] == b"a\nb\n"
    detail = json.loads(cli.run("groups", "describe", unique, "--json")[0])
    assert detail["lag"] == 1
    assert [(p["committed"], p["end"], p["lag"]) for p in detail["positions"]] == [(2, 3, 1)]
    assert cli.run("consume", made, "--group", unique)[0] == b"c\n"
    out, err = cli.run("groups", "describe", unique)
    assert out.decode().splitlines()[1] == f"{made}\t0\t3\t3\t0\t"
    assert "lag 0" in err
    assert unique in [g["name"] for g in json.loads(cli.run("groups", "list", "--json")[0])]


@pytest.mark.by_turns
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_follow_prints_what_comes_and_ctrl_c_ends_it_cleanly(
    cli: Cli, made: str, end: signal.Signals
) -> None:
    following = cli.start("consume", made, "--follow")
    try:
        for word in (b"first\n", b"second\n"):
            cli.run("produce", made, given=word)
            assert following.stdout is not None
            assert following.stdout.readline() == word
        following.send_signal(end)
        out, err = following.communicate(timeout=30)
    finally:
        following.kill()
    assert (following.returncode, out, err) == (130, b"", b"")


def test_an_interrupted_produce_tells_what_was_written(cli: Cli, made: str) -> None:
    producing = cli.start("produce", made, stdin=subprocess.PIPE)
    try:
        assert producing.stdin is not None
        producing.stdin.write(b"one\n")
        producing.stdin.flush()
        assert cli.run("consume", made, "--follow", "-n", "1")[0] == b"one\n"
        producing.send_signal(signal.SIGINT)
        _, err = producing.communicate(timeout=30)
    finally:
        producing.kill()
    assert (producing.returncode, err.strip()) == (
        130,
        f"interrupted: 1 record written to {made}".encode(),
    )


def test_a_reader_that_goes_away_ends_consume_quietly(cli: Cli, made: str) -> None:
    cli.run("produce", made, given=b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 50_000)
    reading = cli.start("consume", made)
    assert reading.stdout is not None
    assert reading.stdout.readline() == b"x" * 99 + b"\n"
    reading.stdout.close()
    assert reading.wait(timeout=60) == 0
    assert reading.stderr is not None
    assert reading.stderr.read() == b""


@pytest.mark.parametrize(
    "args", [("consume",), ("produce",), ("topics", "describe"), ("topics", "delete", "--yes")]
)
def test_a_missing_topic_is_one_line_with_the_nearest(
    cli: Cli, made: str, args: tuple[str, ...]
) -> None:
    out, err = cli.run(*args, f"{made}x", given=b"a\n", code=2)
    assert out == b""
    assert err.startswith(f"error: there is no topic '{made}x'; the nearest: ")
    assert made in err
    assert err.count("\n") == 1


def test_a_bad_line_is_named_and_the_lines_before_it_were_sent(cli: Cli, made: str) -> None:
    _, err = cli.run("produce", made, "--json", given=b'{"value":"ok"}\n{"valu":1}\n', code=1)
    assert err.startswith("error: line 2: unknown field 'valu'; did you mean 'value'?")
    assert cli.run("consume", made)[0] == b"ok\n"


def test_a_missing_group_is_one_line(cli: Cli) -> None:
    _, err = cli.run("groups", "describe", "no-such-group", code=2)
    assert err.startswith("error: there is no consumer group 'no-such-group'")


def test_a_broker_that_is_away_is_one_line_and_exit_code_4(cli: Cli) -> None:
    cli.brokers = "127.0.0.1:1"
    out, err = cli.run("topics", "list", code=4)
    assert out == b""
    assert err.startswith("error: listing the topics: no broker answers at 127.0.0.1:1: ")
    assert err.count("\n") == 1


def test_the_doctor_finds_the_broker_and_says_when_it_is_away(cli: Cli) -> None:
    found = {f["what"]: f for f in json.loads(cli.run("doctor", "--json")[0])}
    assert found["java"]["state"] == "ok"
    assert found["connection"]["state"] == "ok"
    assert cli.brokers in found["connection"]["detail"]
    cli.brokers = "127.0.0.1:1"
    found = {f["what"]: f for f in json.loads(cli.run("doctor", "--json", code=3)[0])}
    assert found["connection"]["state"] == "problem"
    assert "penstock broker start" in found["connection"]["fix"]


def test_on_a_new_machine_no_connection_is_a_note_that_says_how_to_get_one(cli: Cli) -> None:
    cli.brokers = ""
    found = {f["what"]: f for f in json.loads(cli.run("doctor", "--json")[0])}
    assert found["connection"]["state"] == "note"
    assert "penstock broker start" in found["connection"]["fix"]


def test_a_settings_file_that_cannot_be_read_is_a_problem(cli: Cli, tmp_path: Path) -> None:
    cli.brokers = ""
    (tmp_path / "penstock.yaml").write_text("connections: [")
    found = {f["what"]: f for f in json.loads(cli.run("doctor", "--json", code=3)[0])}
    assert found["connection"]["state"] == "problem"
    assert "penstock.yaml" in found["connection"]["fix"]


def test_the_doctor_says_when_java_is_missing(cli: Cli, tmp_path: Path) -> None:
    cli.environment |= {"JAVA_HOME": str(tmp_path)}
    script = (
        "import penstock.embedded.java as java; from pathlib import Path\n"
        f"java.JVM_ROOT = Path({str(tmp_path)!r}); java.shutil.which = lambda _: None\n"
        f"from penstock.cli import main; main(['--brokers', {cli.brokers!r}, 'doctor', '--json'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=cli.environment, capture_output=True, check=False
    )
    assert done.returncode == 3
    (java,) = [f for f in json.loads(done.stdout) if f["what"] == "java"]
    assert java["state"] == "problem"
    assert "Java" in java["fix"]


def test_logs_are_json_on_stderr_when_asked(cli: Cli) -> None:
    cli.brokers = "127.0.0.1:1"
    _, err = cli.run("--log-format", "json", "-vv", "topics", "list", code=4)
    logged = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert {"debug"} == {line["level"] for line in logged if "librdkafka" in line["logger"]}
    assert any("Connection refused" in line["event"] for line in logged)


def test_infer_prints_a_definition_that_check_takes(
    cli: Cli, made: str, connection: Connection, tmp_path: Path
) -> None:
    values = [b'{"id": 1, "at": "2024-01-01T10:00:00Z", "v": 1}', b'{"id": 2, "v": "x"}', b"no"]
    with Producer(connection) as producer:
        for value in values:
            producer.produce(made, None, value)

    definition, said = cli.run("infer", made)

    assert "1 record of 3 are not JSON objects" in said
    assert b"id: bigint" in definition
    assert b"at: timestamp" in definition
    assert b"rest: rest" in definition
    (tmp_path / "inferred.yaml").write_bytes(definition)
    cli.run("check", "inferred.yaml")


def test_infer_says_when_a_topic_has_no_json_objects(cli: Cli, made: str) -> None:
    _, said = cli.run("infer", made, code=2)
    assert "no field was found in 0 records" in said
