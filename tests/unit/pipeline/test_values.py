"""Functions on their way to another process."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from penstock.pipeline.values import Function

PARSERS = """
def double(value):
    return 2 * value

def times(factor):
    import parts_of_parsers
    return lambda value: parts_of_parsers.multiply(factor, value)
"""
CALL = """
import pickle, sys
print(pickle.load(open(sys.argv[1], "rb")).load()(4))
"""


@pytest.mark.parametrize("call", ["module.double", "module.times(2)"], ids=["named", "closure"])
def test_a_worker_finds_the_modules_of_a_function_that_is_given_as_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "parsers_of_a_user.py").write_text(PARSERS)
    (tmp_path / "app" / "parts_of_parsers.py").write_text("from operator import mul as multiply")
    monkeypatch.syspath_prepend(tmp_path / "app")
    module = importlib.import_module("parsers_of_a_user")

    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps(Function.read(eval(call, {"module": module}))))

    worker = [sys.executable, "-c", CALL, str(sent)]
    result = subprocess.run(worker, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.stdout == "8\n", result.stderr
