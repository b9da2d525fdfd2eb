"""What the commands for administrators refuse before they ask any broker."""

from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.group_commands import plan_document
from penstock.kafka.admin.resets import Move, ResetPlan


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["topics", "alter", "t"], "give --set KEY=VALUE, --unset KEY or --partitions N"),
        (
            ["topics", "alter", "t", "--set", "retention.ms"],
            "--set 'retention.ms': write KEY=VALUE",
        ),
        (["topics", "alter", "t", "--set", "a=1", "--unset", "a"], "--unset a were both given"),
        (["groups", "reset", "g", "--to", "0", "--topic", "t:x"], "write TOPIC or TOPIC:PARTITION"),
        (["groups", "reset", "g", "--to", "0", "--topic", ":1"], "write TOPIC or TOPIC:PARTITION"),
        (["acls", "add", "alice", "read", "topic", "t"], "write TYPE:NAME, for example User:alice"),
        (["acls", "add", "User:a", "read,reed", "topic", "t"], "'reed' is not a valid operation"),
        (["acls", "add", "User:a", "read", "topic"], "an ACL for a topic needs its name"),
        (["acls", "remove"], "give at least one of --principal"),
    ],
)
def test_what_is_written_wrong_is_one_line_and_exit_code_2(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(args)
    shown = capsys.readouterr()
    assert end.value.code == 2
    assert said in shown.err
    assert shown.err.startswith("error: ")
    assert (shown.out, shown.err.count("\n")) == ("", 1)


def test_a_plan_as_json_has_what_is_worked_out() -> None:
    plan = ResetPlan("g", (Move("t", 0, current=7, new=10, wanted=50),), "empty")
    assert plan_document(plan) == {
        "group": "g",
        "state": "empty",
        "members": 0,
        "moves": [
            {
                "topic": "t",
                "partition": 0,
                "current": 7,
                "new": 10,
                "wanted": 50,
                "change": 3,
                "note": "wanted 50; the partition ends at 10",
            }
        ],
    }
