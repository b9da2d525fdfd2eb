"""Runs commands in this process, where the Spark session of the tests is: a start of Spark takes long."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout

import pytest


def run_here(
    *arguments: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `penstock` with these arguments; return what it printed and its exit code."""
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
        patch.setattr("penstock.engine.stop_session", lambda: None)
        try:
            main([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
    out, err = (each.buffer.getvalue().decode() for each in (printed, reported))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, int(code or 0), out, err)  # type: ignore[call-overload]
