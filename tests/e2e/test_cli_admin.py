"""The commands of an administrator as a user runs them: a real broker, bytes on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.services.command_line import run_here

from penstock.config import Connection
from penstock.embedded import Broker, Security
from penstock.kafka import Admin, GroupOffsets
from penstock.testing import fill

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
PASSWORD = "open-sesame-1001"

Run = Callable[..., tuple[str, str]]


def runner(home: Path, **environment: str) -> Run:
    """Runs `penstock` in a home of its own."""

    def run(*args: str, given: str = "", code: int = 0) -> tuple[str, str]:
        own = {**os.environ, "PENSTOCK_HOME": str(home), **environment}
        done = run_here(*args, environment=own, folder=home, given=given.encode())
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    return run


@pytest.fixture
def run(connection: Connection, tmp_path: Path) -> Run:
    return runner(tmp_path, PENSTOCK_KAFKA_BOOTSTRAP_SERVERS=connection.brokers)


@pytest.fixture
def made(connection: Connection, unique: str) -> str:
    """A topic with two partitions of five records, in which the group of the same name read some."""
    fill(connection, unique, map(str, range(10)), partitions=2)
    with GroupOffsets(connection, unique) as offsets:
        offsets.commit({(unique, 0): 3, (unique, 1): 1})
    return unique


def committed(connection: Connection, group: str) -> list[int]:
    with Admin(connection) as admin:
        return list(admin.committed(group).values())


def test_a_topic_is_altered_and_shows_it(run: Run, made: str) -> None:
    changes = ["--set", "retention.ms=60000", "--set", "cleanup.policy=compact", "-p", "3"]
    assert run("topics", "alter", made, *changes) == ("", f"topic {made} altered\n")
    run("topics", "alter", made, "--unset", "cleanup.policy")
    assert run("topics", "describe", made)[0].splitlines()[1:] == [
        "0\t1\t1\t1\t0\t5",
        "1\t1\t1\t1\t0\t5",
        "2\t1\t1\t1\t0\t0",
        "setting\tvalue",
        "retention.ms\t60000",
    ]
    lines = run("topics", "describe", made, "--all")[0].splitlines()
    assert "setting\tvalue\tsource" in lines
    assert "retention.ms\t60000\ttopic" in lines
    assert "cleanup.policy\tdelete\tdefault" in lines
    document = json.loads(run("topics", "describe", made, "--all", "--json")[0])
    assert document["config"] == {"retention.ms": "60000"}
    wanted = {"name": "retention.ms", "value": "60000", "source": "topic", "read_only": False}
    assert wanted in document["settings"]


def test_a_setting_that_the_broker_refuses_is_one_line(run: Run, made: str) -> None:
    _, err = run("topics", "alter", made, "--set", "retention.ms=soon", code=2)
    assert err.startswith(f"error: changing the settings of topic '{made}': ")
    assert err.count("\n") == 1
    _, err = run("topics", "alter", made, "-p", "2", code=2)
    assert "give at least 3" in err


PLAN = "topic\tpartition\tcurrent\tnew\tchange\tnote\n"


def test_a_dry_run_shows_the_plan_and_changes_nothing(
    run: Run, made: str, connection: Connection
) -> None:
    out, err = run("groups", "reset", made, "--to", "-2", "--dry-run")
    assert out == (
        f"{PLAN}{made}\t0\t3\t1\t-2\t\n{made}\t1\t1\t0\t-1\twanted -1; the partition starts at 0\n"
    )
    assert err == "dry run: nothing was changed\n"
    assert committed(connection, made) == [3, 1]


def test_a_reset_asks_and_takes_no_for_an_answer(
    run: Run, made: str, connection: Connection
) -> None:
    out, err = run("groups", "reset", made, "--to", "latest", given="n\n", code=1)
    assert out == f"{PLAN}{made}\t0\t3\t5\t+2\t\n{made}\t1\t1\t5\t+4\t\n"
    assert err == f"reset group {made} in 2 partitions? [y/N] nothing was changed\n"
    assert committed(connection, made) == [3, 1]
    run("groups", "reset", made, "--to", "latest", given="y\n")
    assert committed(connection, made) == [5, 5]


@pytest.mark.parametrize(
    ("options", "after"),
    [
        (["--to", "earliest"], [0, 0]),
        (["--to", "+1"], [4, 2]),
        (["--to", "4", "--topic", "{}:1"], [3, 4]),
        (["--to", "-1h", "--topic", "{}"], [0, 0]),
        (["--to", "2100-01-01"], [5, 5]),
    ],
)
def test_a_reset_moves_the_group(
    run: Run, made: str, connection: Connection, options: list[str], after: list[int]
) -> None:
    wanted = [option.format(made) for option in options]
    _, err = run("groups", "reset", made, *wanted, "--yes")
    assert err.startswith(f"group {made} reset in ")
    assert committed(connection, made) == after


def test_a_plan_is_json_when_asked(run: Run, made: str) -> None:
    document = json.loads(run("groups", "reset", made, "--to", "2", "--dry-run", "--json")[0])
    assert (document["group"], document["state"]) == (made, "empty")
    assert [(m["partition"], m["new"], m["change"]) for m in document["moves"]] == [
        (0, 2, -1),
        (1, 2, 1),
    ]


def test_a_new_group_is_announced(run: Run, made: str) -> None:
    wanted = ["--to", "1", "--topic", made, "--dry-run"]
    _, err = run("groups", "reset", f"{made}-new", *wanted)
    assert f"group {made}-new does not exist yet: this creates it" in err


def test_a_group_that_is_read_is_not_reset(run: Run, made: str, connection: Connection) -> None:
    following = subprocess.Popen(
        [PENSTOCK, "--brokers", connection.brokers, "consume", made, "-f", "--group", made],
        stdout=subprocess.PIPE,
    )
    try:
        assert following.stdout is not None
        assert following.stdout.readline()
        out, err = run("groups", "reset", made, "--to", "latest", "--yes", code=1)
        assert out.startswith(PLAN)
        assert err.startswith(f"error: resetting group '{made}': 1 member reads in this group now")
        _, err = run("groups", "delete", made, "--yes", code=1)
        assert err.startswith(f"error: deleting group '{made}': 1 member reads")
    finally:
        following.kill()
        following.wait()


def test_groups_are_deleted_after_a_question(run: Run, made: str, connection: Connection) -> None:
    _, err = run("groups", "delete", made, given="no\n", code=1)
    assert err == f"delete {made} with all committed offsets? [y/N] nothing was deleted\n"
    assert run("groups", "delete", made, "--yes") == ("", f"group {made} deleted\n")
    assert committed(connection, made) == []
    _, err = run("groups", "delete", made, "--yes", code=2)
    assert err.startswith(f"error: there is no consumer group '{made}'")


def test_the_cluster_is_shown(run: Run, made: str, connection: Connection) -> None:
    host, _, port = connection.brokers.partition(":")
    out, err = run("cluster")
    assert out == f"id\thost\tport\track\trole\n1\t{host}\t{port}\t\tcontroller\n"
    document: dict[str, Any] = json.loads(run("cluster", "--json")[0])
    assert err == f"cluster {document['id']}, 1 broker, controller 1\n"
    assert list(document) == ["id", "controller", "brokers", "consumerGroups", "topics"]
    assert document["brokers"] == [{"id": 1, "host": host, "port": int(port)}]
    assert document["consumerGroups"][made]["state"] == "Empty"
    assert [row["id"] for row in document["topics"][made]] == [0, 1]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    users = {"alice": PASSWORD}
    with Broker(security=Security(protocol="sasl_plaintext", acls=True, users=users)) as broker:
        yield broker


def as_user(guarded: Broker, home: Path, user: str) -> Run:
    settings = guarded.connection_as(user).to_config()
    lines = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in settings.items())
    (home / "penstock.yaml").write_text(f"connections:\n  guarded:\n{lines}")
    return runner(home)


def test_rules_are_added_listed_and_removed(guarded: Broker, tmp_path: Path) -> None:
    run = as_user(guarded, tmp_path, "penstock")
    out, err = run("acls", "add", "User:alice", "read,Describe", "topic", "trades")
    assert out == ""
    assert err == (
        "added: User:alice from any host may read topic 'trades'\n"
        "added: User:alice from any host may describe topic 'trades'\n"
    )
    run(
        "acls", "add", "User:*", "read", "group", "g-", "--prefixed", "--deny", "--host", "10.0.0.1"
    )
    columns = "principal\toperation\tresource\tname\tpermission\tpattern\thost"
    assert run("acls", "list")[0].splitlines() == [
        columns,
        "User:*\tread\tgroup\tg-\tdeny\tprefixed\t10.0.0.1",
        "User:alice\tdescribe\ttopic\ttrades\tallow\tliteral\t*",
        "User:alice\tread\ttopic\ttrades\tallow\tliteral\t*",
    ]
    (rule,) = json.loads(
        run("acls", "list", "--operation", "read", "--name", "trades", "--json")[0]
    )
    assert (rule["principal"], rule["resource"]) == ("User:alice", "topic")
    _, err = run("acls", "remove", "--principal", "User:alice", given="\n", code=1)
    assert err == "remove these 2 ACLs? [y/N] nothing was removed\n"
    _, err = run("acls", "remove", "--principal", "User:alice", "--yes")
    assert err == "2 ACLs removed\n"
    assert len(json.loads(run("acls", "list", "--json")[0])) == 1


def test_a_missing_permission_is_reported_and_no_secret_is_shown(
    guarded: Broker, tmp_path: Path
) -> None:
    run = as_user(guarded, tmp_path, "alice")
    for args in (["list"], ["add", "User:alice", "all", "topic", "*"]):
        out, err = run("-vv", "acls", *args, code=1)
        assert out == ""
        assert "ask for an ACL" in err
        assert PASSWORD not in err


def test_a_cluster_without_rules_says_so(run: Run) -> None:
    assert run("acls", "list", code=1)[1].startswith("error: this cluster keeps no ACLs")


def test_a_broker_that_is_away_is_one_line_and_exit_code_4(tmp_path: Path) -> None:
    wanted = ["groups", "reset", "g", "--to", "1", "--brokers", "127.0.0.1:1"]
    _, err = runner(tmp_path)(*wanted, code=4)
    assert "no broker answers at 127.0.0.1:1" in err
    assert err.count("\n") == 1
