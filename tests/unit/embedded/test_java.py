"""Java is found where it usually is, and the error without one says how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.embedded import java
from penstock.errors import SetupError


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "JVM_ROOT", tmp_path / "jvm")


def test_no_java_says_how_to_get_one() -> None:
    with pytest.raises(SetupError) as caught:
        java.find_java()
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value)
    assert "JAVA_HOME" in str(caught.value)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = fake_java(tmp_path / "mine", "21.0.1")
    fake_java(tmp_path / "jvm" / "java-17", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert java.find_java() == java.Java(wanted, 21)


def test_an_old_java_is_passed_over_for_one_that_is_new_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    wanted = fake_java(tmp_path / "jvm" / "java-17-openjdk", "17.0.9")
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    assert java.find_java() == java.Java(wanted, 17)


def test_an_old_java_alone_is_named_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    with pytest.raises(SetupError, match=r"java \(Java 8\).*openjdk-17-jre-headless"):
        java.find_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match=r"nowhere/bin/java \(does not run\)"):
        java.find_java()


def test_17_is_preferred_where_several_are_installed(tmp_path: Path) -> None:
    fake_java(tmp_path / "jvm" / "a-jdk-25", "25")
    wanted = fake_java(tmp_path / "jvm" / "java-17-openjdk", "17.0.9")
    assert java.find_java() == java.Java(wanted, 17)


def test_the_release_file_answers_without_starting_java(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "jvm" / "java-17", "99")
    (program.parent.parent / "release").write_text('JAVA_VERSION="17.0.15"\n')
    assert java.find_java().version == 17
