"""A few bytes never take gigabytes: what they would become is counted before it is made.

The bombs run in a process of their own, whose memory the kernel bounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.fuzz.bombs import BOMBS
from tests.fuzz.registry import OneSchema

from penstock.errors import ConfigError, FormatError
from penstock.formats import find_format
from penstock.formats.arrow.arrow_size import python_size
from penstock.formats.avro import Avro
from penstock.formats.json import json_size
from penstock.formats.limits import DEFAULT, VARIABLE, decoded_limit

ROOT = Path(__file__).parents[2]
# Bytes that share one long text: small when they are read with care, and no reason to refuse them.
HARMLESS = {"dolphindb: a dictionary of symbols", "dolphindb: a vector of symbols"}


@pytest.fixture(scope="module")
def decoded() -> dict[str, dict[str, Any]]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.bombs"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-2000:]
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_more_memory_than_the_limit(
    name: str, decoded: dict[str, dict[str, Any]]
) -> None:
    row = decoded[name]
    assert row["grown"] < DEFAULT + 32 * 2**20
    assert row["error"].startswith("FormatError" if name not in HARMLESS else "")


@pytest.mark.parametrize("name", sorted(set(BOMBS) - HARMLESS - {"dolphindb: a set of symbols"}))
def test_a_refused_bomb_names_its_size_and_the_limit(
    name: str, decoded: dict[str, dict[str, Any]]
) -> None:
    words = decoded[name]["error"]
    assert f"bytes when decoded; allowed are {DEFAULT} (set {VARIABLE} for more)" in words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arrow", pa.table({"a": pa.array(range(400_000))})),
        ("dolphindb", pa.array(range(400_000))),
        ("json", list(range(100_000))),
    ],
)
def test_the_limit_can_be_set(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = find_format(name).encode(value)
    assert len(find_format(name).decode(data)) == len(value)
    monkeypatch.setenv(VARIABLE, str(2**20))
    with pytest.raises(FormatError, match="allowed are 1048576"):
        find_format(name).decode(data)


@pytest.mark.parametrize("text", ["many", "1000", "-1", "1e9"])
def test_a_limit_that_is_not_a_number_of_bytes_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigError, match=VARIABLE):
        decoded_limit()


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a" * 1000, None, "b"]),
        pa.array([b"a" * 1000], pa.large_binary()),
        pa.array(["a" * 1000], pa.string_view()),
        pa.array([[1, 2], None, [3]]),
        pa.array([[1.5, 2.5]], pa.list_(pa.float64(), 2)),
        pa.array([["a", "b"]], pa.list_view(pa.string())),
        pa.array([{"a": 1, "b": ["x" * 500]}]),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array(["a" * 400, "b"]).dictionary_encode(),
        pa.array([True, None]),
        pa.nulls(5),
    ],
)
def test_the_counted_size_is_no_less_than_what_python_takes(array: pa.Array) -> None:
    for part in (array, array.slice(0, 1), array.slice(len(array))):
        assert python_size(part) >= memory_of(part.to_pylist()) - 2 * sys.getsizeof([])


@pytest.mark.parametrize(
    "text",
    [
        "[[],[],{},{}]",
        '[{"a":1.5},{"b":{}},{"c":[1,2,3]}]',
        '["ab","cd","ef"]',
        '["' + "x" * 1000 + '\\ud83d\\ude00"]',
        '["' + "x" * 1000 + 'é😀"]',
        "[123456789,1.5,-7.25,true,null]",
        '{"a":{"b":{"c":{"d":[]}}}}',
    ],
)
def test_the_counted_size_of_json_is_no_less_than_what_python_takes(text: str) -> None:
    value = find_format("json").decode(text.encode())
    assert json_size(text.encode()) >= memory_of(value) - sys.getsizeof([])


def test_deep_avro_is_an_error_and_no_crash() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", "r"]}]}
    avro = Avro(OneSchema(json.dumps(schema), "AVRO"))
    assert avro.decode(b"\0\0\0\0\1" + b"\2" * 20 + b"\0")["n"]["n"] is not None
    with pytest.raises(FormatError):
        avro.decode(b"\0\0\0\0\1" + b"\2" * 1_000_000 + b"\0")


def memory_of(value: Any) -> int:
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(memory_of(v) for pair in value.items() for v in pair)
    inner = value if isinstance(value, list | tuple) else ()
    free = value is None or isinstance(value, bool)
    return (0 if free else sys.getsizeof(value)) + sum(map(memory_of, inner))
