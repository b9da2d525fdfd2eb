"""What the import of the plugin's functions costs, and what it says where a part is missing."""

from __future__ import annotations

import subprocess
import sys


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_neither_spark_nor_pandas_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys; from penstock.compat import dolphindb;"
        "print([name for name in ('pyspark', 'py4j', 'pandas') if name in sys.modules])"
    )
    assert python(code) == "[]"


def test_a_missing_part_says_what_to_install() -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
from penstock.errors import MissingExtraError
try:
    from penstock.compat import dolphindb
except MissingExtraError as error:
    print(error)
"""
    words = "penstock.compat.dolphindb needs an extra: pip install 'penstock[spark]'"
    assert python(code) == words


def test_a_table_without_pandas_says_what_to_install() -> None:
    code = """
import sys
sys.modules["pandas"] = None
from penstock.compat.dolphindb.dolphindb_values import frame
from penstock.errors import MissingExtraError
try:
    frame({})
except MissingExtraError as error:
    print(error)
"""
    words = "a table of penstock.compat.dolphindb needs an extra: pip install 'penstock[spark]'"
    assert python(code) == words
