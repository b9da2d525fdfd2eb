import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.main import COMMANDS
from penstock.cli.options import Cluster
from penstock.errors import BrokerUnavailableError, ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    return tmp_path


def ended(*args: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    return end.value.code


def test_help_names_every_client_command_and_the_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ended("--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name in ("topics", "groups", "produce", "consume", "doctor"):
        assert COMMANDS[name].help in shown
    assert "4 a broker or another system is unavailable" in shown


def test_version_is_data_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--version") == 0
    assert capsys.readouterr().out.startswith("penstock ")


def test_help_imports_neither_spark_nor_the_client() -> None:
    code = (
        "import sys; from penstock.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pyspark', 'confluent_kafka', 'structlog') if m in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_an_unknown_command_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ended("topic") == 2
    shown = capsys.readouterr()
    assert "topics" in shown.err
    assert shown.out == ""


def test_a_penstock_error_is_one_line_and_its_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_args: object) -> None:
        raise BrokerUnavailableError("no broker answers at nowhere:9092")

    monkeypatch.setattr("penstock.cli.topic_commands.connection_of", away)
    assert ended("topics", "list") == 4
    shown = capsys.readouterr()
    assert shown.err == "error: no broker answers at nowhere:9092\n"
    assert shown.out == ""


def test_an_unexpected_error_is_one_line_that_names_the_file_with_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def broken(*_args: object) -> None:
        raise KeyError("sasl.password=hunter2")

    monkeypatch.setattr("penstock.cli.topic_commands.connection_of", broken)
    assert ended("topics", "list") == 1
    (crash,) = (home / "log").glob("crash-*.log")
    assert str(crash) in capsys.readouterr().err
    written = crash.read_text()
    assert "Traceback" in written
    assert "hunter2" not in written


def test_a_wrong_log_format_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("--log-format", "xml", "topics", "list") == 2
    assert "allowed: text, json" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("args", "rest", "cluster"),
    [
        (["list", "--brokers", "a:1", "--json"], ["list", "--json"], Cluster(None, "a:1")),
        (["list", "--brokers=a:1"], ["list"], Cluster(None, "a:1")),
        (["-c", "prod", "list"], ["list"], Cluster("prod", None)),
        (["t", "--", "--brokers", "a"], ["t", "--", "--brokers", "a"], Cluster()),
    ],
)
def test_the_cluster_may_be_named_behind_the_command(
    args: list[str], rest: list[str], cluster: Cluster
) -> None:
    given = Cluster()
    assert given.take(args) == rest
    assert given == cluster


def test_an_option_without_its_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="--brokers needs a value"):
        Cluster().take(["list", "--brokers"])


def test_a_connection_and_brokers_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        Cluster("prod", "a:1").find()
