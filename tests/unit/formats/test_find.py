"""Formats by name: every name, any case, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.formats import FORMATS, find_format

WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = sys.modules["numpy"] = None
from penstock.errors import MissingExtraError
from penstock.formats import find_format
print(find_format("json").encode({"a": [1]}).decode(), find_format("auto").decode(b"[1]"))
for name in ("arrow", "dolphindb"):
    try:
        find_format(name)
    except MissingExtraError as error:
        print(error)
try:
    find_format("auto").decode(bytes.fromhex("040007000000"))
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_found_by_its_name_in_any_case(name: str) -> None:
    assert find_format(name.upper()).name == name
    assert find_format(name) is find_format(name.title())


def test_a_format_comes_back_as_it_is() -> None:
    class Mine:
        name = "mine"

        def encode(self, value: Any, topic: str = "") -> bytes:
            return b""

        def decode(self, data: bytes, topic: str = "") -> Any:
            return None

    mine = Mine()

    assert find_format(mine) is mine


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"format 'jsn' is unknown; did you mean 'json'\?"):
        find_format("jsn")
    with pytest.raises(ConfigError, match="allowed: arrow, auto, avro, bytes, dolphindb"):
        find_format("zzzzzz")


@pytest.mark.parametrize(("name", "made"), [
    ("avro", "Avro"), ("PROTOBUF", "Protobuf"), ("json_schema", "JsonSchema"),
])  # fmt: skip
def test_a_format_with_a_registry_must_be_given_as_an_object(name: str, made: str) -> None:
    with pytest.raises(ConfigError, match=rf"e.g. format={made}\(registry, schema\)"):
        find_format(name)


def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a name .* or a Format, not int"):
        find_format(7)  # type: ignore[arg-type]


def test_without_pyarrow_the_plain_ones_work_and_the_others_say_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ARROW],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.splitlines() == [
        '{"a":[1]} [1]',
        "the format 'arrow' needs an extra: pip install 'penstock[arrow]'",
        "the format 'dolphindb' needs an extra: pip install 'penstock[arrow]'",
        "the format 'dolphindb' needs an extra: pip install 'penstock[arrow]'",
    ], done.stderr


def test_plain_values_load_neither_numpy_nor_pyarrow() -> None:
    code = (
        "import sys; from penstock.formats import find_format;"
        "find_format('json').encode({'a': [1.5, None]}); find_format('long').encode(1);"
        "print([name for name in ('numpy', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout.strip() == "[]", done.stderr
