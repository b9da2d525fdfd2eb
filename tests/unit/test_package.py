"""The package's door: its public names, what an import costs, and what a missing part says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import penstock

HEAVY = ("pyspark", "pyarrow", "pandas", "confluent_kafka", "pydantic", "py4j")


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_public_name_is_there() -> None:
    assert all(getattr(penstock, name) is not None for name in penstock.__all__)
    assert set(penstock.__all__) <= set(dir(penstock))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(penstock, "Nothing")


def test_the_import_loads_nothing_heavy() -> None:
    code = f"import sys, penstock; print([name for name in {HEAVY} if name in sys.modules])"
    assert python(code) == "[]"


def test_the_client_needs_neither_java_nor_spark() -> None:
    code = (
        "import sys; from penstock import Admin, Connection, Consumer, Producer;"
        "print([name for name in ('pyspark', 'pyarrow', 'py4j') if name in sys.modules])"
    )
    assert python(code) == "[]"


def test_a_missing_extra_says_which_one_to_install() -> None:
    code = """
import sys
for name in ("pyspark", "pyarrow", "msgspec", "sqlglot"):
    sys.modules[name] = None
from penstock.errors import MissingExtraError
from penstock.pipeline import registry
for kind, name in (("decode", "json"), ("step", "sql"), ("sink", "memory")):
    try:
        registry.component(kind, name)
    except MissingExtraError as error:
        print(error)
"""
    assert python(code).splitlines() == [
        "the decode 'json' needs an extra: pip install 'penstock[spark]'",
        "the step 'sql' needs an extra: pip install 'penstock[spark]'",
        "the sink 'memory' needs an extra: pip install 'penstock[spark]'",
    ]


def test_running_a_pipeline_without_spark_says_which_extra_to_install() -> None:
    code = """
import sys
sys.modules["pyspark"] = None
try:
    import penstock
    penstock.start
except penstock.PenstockError as error:
    print(error)
"""
    assert python(code) == "running a pipeline needs an extra: pip install 'penstock[spark]'"


def test_a_command_that_needs_spark_says_which_extra_to_install(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("name: p\nsource: {kafka: t}\nsink: discard\ndecode: {text: {}}\n")
    for command in (["run", str(file)], ["demo"]):
        blocked = "import sys; sys.modules['pyspark'] = None"
        code = f"{blocked}; from penstock.cli import main; main({command})"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 3
        assert "pip install 'penstock[spark]'" in done.stderr
        assert "Traceback" not in done.stderr
