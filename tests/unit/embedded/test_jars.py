"""Jars are fetched once, checked, and never left half done."""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.embedded.conftest import Repository

from penstock.embedded import jars
from penstock.embedded.jars_lock import Artifact
from penstock.errors import ConfigError, SetupError

pytestmark = pytest.mark.usefixtures("no_pyspark")


def use(monkeypatch: pytest.MonkeyPatch, repository: Repository) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", repository.url)


def test_what_is_missing_is_fetched_from_the_repository_that_is_set(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact], home: Path
) -> None:
    use(monkeypatch, repository)
    found = jars.fetch("things")
    assert found == [home / "cache/jars/one-1.0.jar", home / "cache/jars/two-1.0.jar"]
    assert [path.read_bytes() for path in found] == [b"first", b"second"]


def test_what_is_there_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact]
) -> None:
    use(monkeypatch, repository)
    jars.fetch("things")
    asked = list(repository.asked)
    jars.fetch("things")
    assert repository.asked == asked


def test_progress_ends_with_all_bytes(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact]
) -> None:
    use(monkeypatch, repository)
    seen: list[tuple[str, int, int]] = []
    jars.fetch("things", lambda *step: seen.append(step))
    assert seen[-1] == ("things", 11, 11)


def test_a_wrong_checksum_is_refused_with_expected_and_actual_and_the_file_is_gone(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact], home: Path
) -> None:
    use(monkeypatch, repository)
    repository.files[pinned[1].repository_path] = b"evil"
    with pytest.raises(SetupError) as caught:
        jars.fetch("things")
    assert pinned[1].sha256 in str(caught.value)
    assert hashlib.sha256(b"evil").hexdigest() in str(caught.value)
    assert not (home / "cache/jars/two-1.0.jar").exists()
    assert not (home / "cache/jars/.staging").exists()


def test_after_a_refusal_the_right_file_is_accepted(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact]
) -> None:
    use(monkeypatch, repository)
    repository.files[pinned[1].repository_path] = b"evil"
    with pytest.raises(SetupError):
        jars.fetch("things")
    repository.files[pinned[1].repository_path] = b"second"
    assert jars.fetch("things")[1].read_bytes() == b"second"


def test_half_a_file_of_an_interrupted_download_is_fetched_again(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact], home: Path
) -> None:
    use(monkeypatch, repository)
    staging = home / "cache/jars/.staging"
    staging.mkdir(parents=True)
    (staging / "one-1.0.jar").write_bytes(b"fir")
    assert jars.fetch("things")[0].read_bytes() == b"first"
    assert not staging.exists()


def test_a_file_that_the_repository_lacks_names_its_address(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact]
) -> None:
    use(monkeypatch, repository)
    repository.files.clear()
    with pytest.raises(SetupError, match=r"org\.example:one:1\.0 could not be fetched from http"):
        jars.fetch("things")


def test_without_pyspark_and_without_a_url_both_ways_are_reported(pinned: list[Artifact]) -> None:
    with pytest.raises(SetupError) as caught:
        jars.fetch("things")
    assert "pip install 'penstock[spark]'" in str(caught.value)
    assert "PENSTOCK_MAVEN_URL" in str(caught.value)


def test_an_address_that_is_no_web_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, pinned: list[Artifact]
) -> None:
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", "file:///etc")
    with pytest.raises(ConfigError, match="PENSTOCK_MAVEN_URL is 'file:///etc'"):
        jars.fetch("things")


def test_two_at_the_same_time_fetch_each_file_once(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact]
) -> None:
    use(monkeypatch, repository)
    gate = threading.Barrier(2)

    def fetch() -> list[Path]:
        gate.wait(10)
        return jars.fetch("things")

    with ThreadPoolExecutor(2) as pool:
        first, second = [call.result() for call in [pool.submit(fetch), pool.submit(fetch)]]
    assert first == second
    assert sorted(repository.asked) == [
        "/maven/org/example/one/1.0/one-1.0.jar",
        "/maven/org/example/two/1.0/two-1.0.jar",
    ]


def test_two_processes_at_the_same_time_fetch_each_file_once(
    monkeypatch: pytest.MonkeyPatch, repository: Repository, pinned: list[Artifact]
) -> None:
    use(monkeypatch, repository)
    fork = multiprocessing.get_context("fork")
    others = [fork.Process(target=jars.fetch, args=("things",)) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join(30)
    assert [other.exitcode for other in others] == [0, 0]
    assert len(repository.asked) == 2
