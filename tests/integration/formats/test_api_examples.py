"""The examples of docs/api.md that are not for doctest run as they are written."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Connection, Consumer, Producer, kafka
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry
from penstock.testing import fill

PAGE = Path(__file__).parents[3] / "docs/api.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
SIGNATURE = re.compile(r">>> |@\w+|class |def |async def |\w+: .*\n\Z")
EXAMPLES = [block for block in BLOCKS if not SIGNATURE.match(block)]


class EnoughError(Exception):
    """Ends a loop that would go on."""


def printed_once() -> Callable[..., None]:
    """A `print` that ends the loop with the second record."""
    shown: list[object] = []

    def show(*values: object) -> None:
        shown.extend(values)
        if len(shown) > len(values):
            raise EnoughError

    return show


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_example_runs(
    number: int, connection: Connection, registry: Registry, trade_class: Any, unique: str
) -> None:
    block = EXAMPLES[number].replace('"trades"', f'"{unique}"').replace('"billing"', f'"{unique}"')
    block = block.replace("localhost:9092", connection.brokers)
    earliest = connection.model_copy(
        update={"options": {**connection.options, "auto.offset.reset": "earliest"}}
    )
    for topic in (f"{unique}-read", *([] if "create_topic" in block else [unique])):
        fill(connection, topic, [b"1", b"2"])
    with Producer(connection) as producer, Consumer(connection, group=unique) as consumer:
        consumer.commit({(f"{unique}-read", 0): 0})
        names: dict[str, Any] = {
            **{name: getattr(penstock, name) for name in penstock.__all__},
            **{name: getattr(kafka, name) for name in kafka.__all__},
            "Avro": Avro, "JsonSchema": JsonSchema, "Protobuf": Protobuf, "registry": registry,
            "Trade": trade_class("price"), "connection": earliest, "producer": producer,
            "consumer": consumer, "print": printed_once(),
        }  # fmt: skip
        code = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with suppress(EnoughError):
            result = eval(code, names)
            if inspect.iscoroutine(result):
                asyncio.run(result)
