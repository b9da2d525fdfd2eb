"""Runs commands in this process, where the Spark session of the tests is: a start of Spark takes long."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest


def run_here(
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    folder: Path | str | None = None,
    given: bytes = b"",
) -> subprocess.CompletedProcess[str]:
    """Run `penstock` with these arguments; return what it printed and its exit code."""
    code, out, err = run_bytes(*arguments, environment=environment, folder=folder, given=given)
    return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def run_bytes(
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    folder: Path | str | None = None,
    given: bytes = b"",
) -> tuple[int, bytes, bytes]:
    """Run `penstock` with these arguments; return its exit code and the bytes that it printed."""
    from penstock.cli.main import main

    printed, reported = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    code: object = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(printed),
        redirect_stderr(reported),
    ):
        for name, value in (environment or os.environ).items():
            patch.setenv(name, value)
        if folder is not None:
            patch.chdir(folder)
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        patch.setattr("penstock.engine.stop_session", lambda: None)
        try:
            main([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
    out, err = (each.buffer.getvalue() for each in (printed, reported))  # type: ignore[attr-defined]
    return int(code or 0), out, err  # type: ignore[call-overload]
