"""What the operating system said is read from where it is said, not from paths that records name."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError
from tests.services.hostile import PHRASES

from penstock.pipeline.java_errors import (
    Cause,
    causes_of,
    is_disk_full,
    is_name_too_long,
    is_unmade_folder,
)

FULL = "No space left on device"


class JavaClass:
    """A class of Java, as py4j shows it."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def getName(self) -> str:  # noqa: N802
        return self._names[0]

    def getSuperclass(self) -> JavaClass | None:  # noqa: N802
        return JavaClass(self._names[1:]) if self._names[1:] else None


class Throwable:
    """An exception of Java, as py4j shows it."""

    def __init__(self, *names: str, message: str, reason: str | None = None) -> None:
        self._names, self._message, self._reason = names, message, reason

    def getClass(self) -> JavaClass:  # noqa: N802
        return JavaClass([*self._names, "java.lang.Exception"])

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getReason(self) -> str | None:  # noqa: N802
        return self._reason

    def getCause(self) -> None:  # noqa: N802
        return None

    def getCondition(self) -> Any:  # noqa: N802
        raise Py4JError("Method getCondition([]) does not exist")

    getSqlState = getCondition  # noqa: N815


def causes(*names: str, message: str, reason: str | None = None) -> list[Cause]:
    error = Exception()
    error.java_exception = Throwable(*names, message=message, reason=reason)  # type: ignore[attr-defined]
    return causes_of(error)


@pytest.mark.parametrize("text", PHRASES)
def test_a_text_in_a_path_is_not_what_the_system_said(text: str) -> None:
    nio = causes(
        "java.nio.file.FileSystemException",
        "java.io.IOException",
        message=f"/t/{text}: Input/output error",
        reason="Input/output error",
    )
    missing = causes(
        "java.io.FileNotFoundException",
        "java.io.IOException",
        message=f"/t/v={text} ({text})/part-0 (No such file or directory)",
    )
    other = causes("org.apache.spark.SparkException", message=text)
    for found in (nio, missing, other):
        assert not is_disk_full(found)
        assert not is_name_too_long(found)
        assert not any(map(is_unmade_folder, found))


def test_a_full_disk_is_known_by_each_way_in_which_java_reports_it() -> None:
    nio = "java.nio.file.FileSystemException"
    assert is_disk_full(causes(nio, message=f"/t/x: {FULL}", reason=FULL))
    assert is_disk_full(causes("java.io.FileNotFoundException", message=f"/t/x ({FULL})"))
    assert is_disk_full(causes("java.io.IOException", message=FULL))
    assert not is_disk_full(causes("java.io.IOException", message=f"cannot read {FULL}"))


def test_an_error_of_python_has_no_causes_in_java() -> None:
    assert causes_of(ValueError(FULL)) == []
    assert causes_of(None) == []
