"""jars.lock pins each file by coordinates and checksum."""

from __future__ import annotations

import re

import pytest

from penstock.embedded.jars import SPARK_GROUPS
from penstock.embedded.jars_lock import Artifact, artifacts_of, groups, locked, parse
from penstock.errors import ConfigError

SHA = "ab" * 32


def test_a_line_gives_coordinates_size_and_checksum() -> None:
    line = f"registry io.x:app:2.0:all@tar.gz 12 {SHA}"
    assert parse(line) == [Artifact("registry", "io.x", "app", "2.0", "all", "tar.gz", 12, SHA)]
    assert parse(line)[0].repository_path == "io/x/app/2.0/app-2.0-all.tar.gz"


def test_a_line_reads_back_as_it_was_written() -> None:
    text = f"a org.x:y:1 5 {SHA}\nb org.x:z:2:c@zip 6 {SHA}"
    assert "\n".join(artifact.line() for artifact in parse(text)) == text


def test_comments_and_empty_lines_are_nothing() -> None:
    assert parse("# a comment\n\n") == []


@pytest.mark.parametrize(
    "line", ["tools org.x:y:1 5", f"tools org.x:y 5 {SHA}", "tools org.x:y:1 5 abc", "nonsense"]
)
def test_a_bad_line_is_named_with_its_number(line: str) -> None:
    with pytest.raises(ConfigError, match=r"jars\.lock line 2 is .*scripts/lock-jars"):
        parse(f"# head\n{line}")


def test_the_shipped_lock_has_the_groups_that_are_fetched() -> None:
    found = {group: len(artifacts_of(group)) for group in groups()}
    assert found == {
        "spark-kafka": 4, "local-files": 1, "broker": 46, "tools": 1, "registry": 1, "delta": 7,
        "iceberg": 1,
    }  # fmt: skip


def test_a_sessions_jars_are_in_the_shipped_lock() -> None:
    assert set(SPARK_GROUPS) <= set(groups())


def test_no_two_files_of_the_shipped_lock_share_a_name() -> None:
    names = [artifact.file_name for artifact in locked()]
    assert sorted(set(names)) == sorted(names)


def test_the_shipped_lock_names_no_host() -> None:
    text = "\n".join(artifact.line() for artifact in locked())
    assert not re.search(r"https?:|://", text)


def test_an_unknown_group_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'broker'"):
        artifacts_of("brokers")
