"""One sentence out of pages of Java and Python."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException

from penstock.engine.reasons import failure, reason
from penstock.errors import SetupError

PYTHON = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
ValueError: cannot take 'x'

\tat org.apache.spark.api.python.BasePythonRunner.handle(Runner.scala:1)
"""
JAVA = """\
Query failed
\tat a.b.C
Caused by: java.lang.RuntimeException: outer
\tat a.b.C
Caused by: java.io.IOException: No space left on device
"""


class FromSpark(PySparkException):
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else self._text

    def __init__(self, text: str) -> None:
        self._text = text


def test_the_error_of_the_users_python_is_the_reason() -> None:
    assert reason(FromSpark(PYTHON)) == "ValueError: cannot take 'x'"


def test_the_innermost_cause_in_java_is_the_reason() -> None:
    assert reason(FromSpark(JAVA)) == "IOException: No space left on device"


def test_the_log_is_named_and_secrets_are_not() -> None:
    error = failure(FromSpark("broken sasl.password=hunter2 end"), "p", Path("/logs/spark.log"))
    assert str(error).startswith("pipeline 'p' failed: ")
    assert "/logs/spark.log" in str(error)
    assert "hunter2" not in str(error)


def test_our_own_errors_stay_as_they_are() -> None:
    own = SetupError("no Java")
    assert failure(own, "p", None) is own
