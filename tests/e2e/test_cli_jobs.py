"""`penstock jobs` as a user meets it: create, list, run, stats, logs, show, dead letters, cancel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from penstock import Connection
from penstock.jobs import Store
from penstock.testing import eventually, fill

PARSER = """\
def parse(value, key):
    number, text = value.split(",")
    return {"n": int(number), "text": text}
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "parsers.py").write_text(PARSER)
    return os.environ | {"PENSTOCK_JOBS": str(tmp_path / "jobs.sqlite")}


Penstock = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def penstock(home: dict[str, str], tmp_path: Path) -> Penstock:
    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*_command(), *map(str, arguments)],
            capture_output=True, text=True, timeout=240, check=False, env=home, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def runner(home: dict[str, str], tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts `penstock jobs run`."""
    begun: list[subprocess.Popen[str]] = []

    def begin() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*_command(), "jobs", "run"], env=home, cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
            process.wait()


def _command() -> list[str]:
    return [str(Path(sys.executable).with_name("penstock"))]


def listed(penstock: Penstock) -> dict[str, dict[str, object]]:
    return {job["name"]: job for job in orjson.loads(penstock("jobs", "list", "--json").stdout)}


def processed(home: dict[str, str], name: str) -> int:
    """Look into the store, as a process for each look would keep the machine busy."""
    found = Store(home["PENSTOCK_JOBS"]).get(name)
    return found.records - found.failed if found else -1


def test_a_job_from_its_creation_to_its_end(
    home: dict[str, str],
    penstock: Penstock,
    runner: Callable[[], subprocess.Popen[str]],
    connection: Connection,
    unique: str,
) -> None:
    fill(connection, unique, ["1,one", "2,two", "oops", "3,three"])
    made = penstock(
        "--brokers", connection.brokers, "jobs", "create", unique, "-t", unique,
        "--parser", "parsers:parse", "--schema", "n bigint, text string",
        "--table", "files: table",
    )  # fmt: skip
    assert f"to run it: penstock jobs run {unique}" in made.stderr
    assert listed(penstock)[unique]["state"] == "STOPPED"

    running = runner()
    eventually(lambda: processed(home, unique) == 3, timeout=180, every=0.5)
    eventually(lambda: Store(home["PENSTOCK_JOBS"]).find(unique).state == "RUNNING", every=0.5)
    eventually(lambda: Store(home["PENSTOCK_JOBS"]).find(unique).lag == 0, every=0.5)
    found = listed(penstock)[unique]
    assert (found["state"], found["failed"]) == ("RUNNING", 1)
    assert str(found["last_error"]).startswith(f"{unique}-0-2: ValueError: not enough values")

    running.send_signal(signal.SIGINT)
    assert running.wait(120) == 130
    assert listed(penstock)[unique]["state"] == "STOPPED"

    (stats,) = orjson.loads(penstock("jobs", "stats", unique, "--json").stdout)
    assert (stats["actionName"], stats["processedMsgCount"], stats["failedMsgCount"]) == (
        unique,
        3,
        1,
    )
    assert "parsers:parse" in penstock("jobs", "show", unique).stdout
    texts = penstock("jobs", "logs", unique).stdout
    words = ("created by", "RUNNING on", "1 records failed")
    assert [texts.count(word) for word in words] == [1, 1, 1]
    letters = orjson.loads(penstock("deadletters", "list", unique, "--json").stdout)
    assert [letter["id"] for letter in letters] == [f"{unique}-0-2"]

    assert f"{unique} is cancelled" in penstock("jobs", "cancel", unique, "--yes").stderr
    assert listed(penstock) == {}
    assert "there is no job" in penstock("jobs", "show", unique, code=2).stderr


def test_a_running_process_takes_new_jobs_and_ends_cancelled_ones(
    home: dict[str, str],
    penstock: Penstock,
    runner: Callable[[], subprocess.Popen[str]],
    connection: Connection,
    unique: str,
    tmp_path: Path,
) -> None:
    fill(connection, unique, ['{"n": 1}'])
    runner()
    file = tmp_path / "later.yaml"
    file.write_text(
        f'name: {unique}\nconnection: {{bootstrap.servers: "{connection.brokers}"}}\n'
        f'source: {{kafka: "{unique}"}}\ndecode: {{json: {{schema: "n bigint"}}}}\n'
        f'sink: {{files: "{tmp_path}/rows"}}\nstate: "{tmp_path}/state"\n'
    )
    penstock("jobs", "create", file)
    eventually(lambda: processed(home, unique) == 1, timeout=180, every=0.5)
    assert "already exists" in penstock("jobs", "create", file, code=2).stderr

    penstock("jobs", "cancel", unique, "--yes")
    eventually(lambda: processed(home, unique) == -1, timeout=120, every=0.5)
    assert listed(penstock) == {}


def test_mistakes_are_reported(penstock: Penstock) -> None:
    assert "which topics does 'x' read" in penstock("jobs", "create", "x", code=2).stderr
    wrong = penstock("jobs", "create", "x", "-t", "t", "--table", "nonsense", code=2)
    assert "--table 'nonsense' is not a sink" in wrong.stderr
    assert "there are no jobs" in penstock("jobs", "list").stderr


SCRIPT = """\
import sys
import penstock

topic, brokers, state = sys.argv[1:]
job = penstock.create_job(
    topic, penstock.Table("n bigint"), name=topic, connection=brokers, state=state
)
print("started", flush=True)
job.wait()
"""


def test_ctrl_c_in_a_script_stops_its_jobs_in_order(
    home: dict[str, str], penstock: Penstock, connection: Connection, unique: str, tmp_path: Path
) -> None:
    fill(connection, unique, ['{"n": 1}'])
    script = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, unique, connection.brokers, str(tmp_path / "state")],
        env=home, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        eventually(lambda: processed(home, unique) == 1, 180, every=0.5)
        script.send_signal(signal.SIGINT)
        _, said = script.communicate(timeout=120)
    finally:
        script.kill()
    assert "KeyboardInterrupt" in said
    assert listed(penstock)[unique]["state"] == "STOPPED"
    assert "stopped" in penstock("jobs", "logs", unique).stdout
