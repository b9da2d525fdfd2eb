"""The scripts of the DolphinDB plugin's documentation, run as processes, print the documented results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Broker, Connection
from penstock.embedded import Security

SCRIPTS = Path(__file__).parents[2] / "examples/dolphindb"

# Some scripts start Spark in a process of their own.
pytestmark = pytest.mark.timeout(700)
Run = Callable[..., list[str]]


@pytest.fixture
def run(connection: Connection, tmp_path: Path) -> Run:
    """Runs a script in a folder of its own, with the broker named by the environment."""

    def make(name: str, using: Connection = connection) -> list[str]:
        settings = {
            f"PENSTOCK_KAFKA_{key.upper().replace('.', '_')}": str(value)
            for key, value in using.to_config().items()
        }
        done = subprocess.run(
            [sys.executable, SCRIPTS / f"{name}.py"],
            env={
                **os.environ,
                **settings,
                "PYTHONIOENCODING": "utf-8",
                "PENSTOCK_JOBS": str(tmp_path / "jobs.sqlite"),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return make


def cells(lines: list[str]) -> list[list[str]]:
    """The words of a table as it is printed."""
    return [line.split() for line in lines]


def test_every_script_is_in_the_list_and_has_a_test() -> None:
    listed = (SCRIPTS / "README.md").read_text()
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    for script in SCRIPTS.glob("*.py"):
        if script.stem != "here":
            assert f"]({script.name})" in listed
            assert f'run("{script.stem}"' in tests


def test_handles(run: Run) -> None:
    assert run("handles") == ["30000 1000 group1"]


def test_errors_go_into_a_table(run: Run) -> None:
    head, first, *_ = cells(run("error_callback"))
    assert head == ["level", "err", "reason"]
    assert first[1] in ("WARNING", "ERROR")


def test_formats(run: Run) -> None:
    *lines, _, one, two, three = run("formats")
    assert lines == [
        """PLAIN '' key [{"c1": 1,"c2": "a"},{"c1": 2,"c2": "b"},{"c1": 3,"c2": "c"}] 0""",
        "JSON '' [1]",
        "JSON '' [1, 2, 3]",
        "JSON '' {'c1': [1, 2, 3], 'c2': ['a', 'b', 'c']}",
        "DOLPHINDB ''",
    ]
    assert cells([one, two, three]) == [["0", "1", "a"], ["1", "2", "b"], ["2", "3", "c"]]


def test_one_partition_from_one_offset_on(run: Run) -> None:
    assert run("assign") == ["3000"]


def test_the_worked_example_of_offsets(run: Run) -> None:
    names = ["partition", "minOffset", "maxOffset", "offsetPosition", "offsetCommitted"]
    assert cells(run("offset_info")) == [
        ["partition", "offset"],
        ["0", "-1000"],
        names,
        ["0", "0", "10", "5", "-1001"],
        names,
        ["0", "0", "10", "5", "5"],
    ]


def test_a_members_name(run: Run) -> None:
    (name,) = run("member_id")
    assert re.fullmatch(r"rdkafka-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name)


def test_metadata(run: Run, connection: Connection) -> None:
    host, _, port = connection.brokers.partition(":")
    assert cells(run("metadata")) == [
        ["id", "host", "port"],
        ["0", "1", host, port],
        ["id", "error", "leader", "replicas"],
        *([str(n), str(n), "Success", "1", "[1]"] for n in range(3)),
        ["Stable", "consumer", "range", "Success"],
        ["rdkafka", "0"],
        ["partition", "offset"],
        *([str(n), str(n), "-1001"] for n in range(3)),
    ]


def test_a_password_logs_in(run: Run) -> None:
    with Broker(security=Security(protocol="sasl_plaintext")) as broker:
        assert run("login_with_password", broker.connection) == ["let in"]


def test_a_certificate_logs_in(run: Run) -> None:
    security = Security(protocol="ssl", client_certificate=True, key_password="key.password")
    with Broker(security=security) as broker:
        assert run("login_with_certificate", broker.connection) == ["1 delivered"]


def test_kerberos_says_what_it_needs(run: Run) -> None:
    (said,) = run("login_with_kerberos")
    assert "has no Kerberos (sasl.mechanisms GSSAPI); build librdkafka" in said


def test_values_of_every_kind(run: Run) -> None:
    lines = run("values")
    assert lines[:7] == [
        "producer1:i'm producer",
        "我是生产者",
        "10086",
        "123.456",
        "[1 2 3 4]",
        "[1.1 2.2 3.3 4.4]",
        "['我' '我是' '我是生产者']",
    ]
    assert cells(lines[7:11]) == [
        ["a", "b", "c"],
        ["0", "1", "x", "10.8"],
        ["1", "2", "y", "7.6"],
        ["2", "3", "z", "3.5"],
    ]
    table = "{'a': [1, 2, 3], 'b': ['x', 'y', 'z'], 'c': [10.8, 7.6, 3.5]}"
    assert lines[11:] == [
        """["producer1:i'm producer", 'I am a producer']""",
        """{'1': "producer1:i'm producer", '2': 'I am a producer', '3': 10086, '4': 123.456}""",
        table,
        "{'1': 1, '2': 2, '3': 3}",
        "[1.1, 2.2, 3.3, 4.4]",
        f"[1, [1.1, 2.2, 3.3, 4.4], {table}]",
    ]


def test_offsets_by_hand(run: Run) -> None:
    lines = run("offsets")
    assert lines[:4] == ["1 producer1:i'm producer", "2 I am a producer", "3 10086", "4 123.456"]
    head = ["partition", "offset"]
    assert cells(lines[4:]) == [
        head,
        ["0", "0", "-1001"],
        head,
        ["0", "0", "-1000"],
        ["(0,", "0)"],
        head,
        ["0", "0", "4"],
    ]


def test_queues_and_events(run: Run) -> None:
    assert run("queues_and_events") == [
        "10086",
        "0",
        "Fetch",
        "[123.456]",
        "1",
        "(0, 1)",
        "'Success'",
        "True",
    ]


def test_large_values_go_out_in_pieces(run: Run) -> None:
    sizes, first, pieces, *table = run("sizes")
    assert (sizes, first, pieces) == ("900000 10000", "[0 1]", "59 118")
    assert cells(table) == [["a", "b", "c", "d"], ["0", "1", "x", "10.8", "I"]]


def test_jobs_in_the_background(run: Run) -> None:
    lines = cells(run("sub_jobs"))
    assert lines[:4] == [
        ["date", "id", "msg"],
        ["2024-08-30", "1", "kafka"],
        ["2024-08-30", "2", "zookeeper"],
        ["2024-08-30", "3", "raft"],
    ]
    assert lines[4:12] == [
        ["topic", "date", "id", "msg"],
        ["msgTopic2", "2024-08-30", "1", "buy"],
        ["msgTopic2", "2024-08-30", "2", "withdraw"],
        ["msgTopic2", "2024-08-31", "1", "sell"],
        ["msgTopic2", "2024-09-01", "1", "buy"],
        ["msgTopic2", "2024-09-01", "2", "sell"],
        ["msgTopic2", "2024-09-01", "3", "sell"],
        ["msgTopic2", "2024-09-01", "4", "withdraw"],
    ]
    assert lines[13:15] == [
        ["subJob1", "3", "0", "True", "1000", "0.1", "False"],
        ["subjob2", "3", "0", "False", "0", "1.0", "False"],
    ]
    assert lines[15:] == [["0", "jobs", "are", "left"]]


def test_a_job_of_version_1_30(run: Run) -> None:
    lines = run("threads")
    assert cells(lines[:4]) == [
        ["id", "time", "value"],
        ["XFDSN:NZ_AH1", "2022-01-01", "00:00:00.000", "10"],
        ["XFDSN:NZ_AH1", "2022-01-01", "00:00:00.001", "11"],
        ["XFDSN:NZ_AH1", "2022-01-01", "00:00:00.002", "12"],
    ]
    assert lines[4:] == ["['test:0:get mseed data']", "[]"]
