"""Every function of the plugin, every argument, wrong values: an error that names the argument.

Nothing is connected: what is wrong with an argument is found before a broker is asked.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from penstock.compat import dolphindb
from penstock.errors import PenstockError
from penstock.kafka import Event

LIST = json.loads(Path(__file__).with_name("dolphindb_functions.json").read_text())
FUNCTIONS = [row["name"] for row in (*LIST["functions"], *LIST["tables"])]
CONFIG = {"bootstrap.servers": "127.0.0.1:1", "group.id": "arguments"}
NOTHING = object()


class Word(str):
    """What a handle is not."""


HANDLES = [None, 7, "handle", Word("x"), {}, [], NOTHING, print, Event("None")]
TIMES = [-1, 1.5, "soon", "100", [100], True, NOTHING, 2**40, np.float64(3), b"1"]
COUNTS = [0, -1, 1.5, "many", [1], None, NOTHING, 2**40]
TOPICS = [None, 7, "", [], [7], ["a", None], b"test", {"a": 1}.values(), NOTHING, "a\0b"]
PARTITIONS = [None, -1, "zero", 1.5, [], [0, -1], ["0"], True, NOTHING, 2**40]
OFFSETS = [None, "first", 1.5, [], ["1"], NOTHING, 2**70, True]
TEXT = [None, 7, "", ["a"], NOTHING, b"a"]
TRUTHS = ["true", 1, 0, [True], NOTHING]
WRONG: dict[str, list[Any]] = {
    "producer": HANDLES,
    "consumer": HANDLES,
    "queue": HANDLES,
    "forward_queue": HANDLES,
    "event": [each for each in HANDLES if not isinstance(each, Event)],
    "handle": [None, 1.5, [], NOTHING, print, ""],
    "config": [None, 7, "localhost", ["a"], NOTHING, {1: 2}],
    "errCallback": [7, "log", [], NOTHING, lambda: None, lambda level: level],
    "timeout": TIMES,
    "batchSize": COUNTS,
    "batch_size": COUNTS,
    "queueDepth": COUNTS,
    "size": COUNTS[:-1],
    "marshalType": ["XML", 7, [], NOTHING, b"JSON"],
    "topic": TOPICS,
    "topics": TOPICS,
    "partition": PARTITIONS,
    "partitions": PARTITIONS,
    "offset": OFFSETS,
    "offsets": OFFSETS,
    "key": [NOTHING, [1], {"a": 1}, 1.5, True],
    "value": [NOTHING, print, 1j, {1: 2}],
    "table": [NOTHING, 7.5j, print],
    "parser": [None, 7, "", [], NOTHING, lambda: None, lambda a, b, c, d: None],
    "actionName": TEXT,
    "throttle": [-1, "1", None, float("nan"), float("inf"), [1], True, NOTHING],
    "autoCommit": TRUTHS,
    "msgAsTable": [*TRUTHS, None],
    "names": [None, 7, "a", [], [7], NOTHING],
    "types": [None, 7, "INT", [], [7], NOTHING],
    "keys": [None, 7, [], [7], NOTHING, ""],
    "column": [None, 7, "{}", {}, NOTHING, [7], ["{"]],
    "schema": [None, 7, "id INT", ["id"], NOTHING, pd.DataFrame({"x": [1]})],
}


def cases() -> Iterator[Any]:
    for name in FUNCTIONS:
        for argument, parameter in inspect.signature(getattr(dolphindb, name)).parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                continue
            wrong = WRONG[argument]
            if parameter.default is None:
                wrong = [each for each in wrong if each is not None]
            for place, given in enumerate(wrong):
                if (name, argument) == ("produce", "partition") and given in (-1, True):
                    continue  # the producer's own choice, and the flag of version 1.30
                yield pytest.param(name, argument, given, id=f"{name}-{argument}-{place}")


@pytest.fixture(scope="module")
def good() -> Iterator[dict[str, Any]]:
    producer, consumer = dolphindb.producer(CONFIG), dolphindb.consumer(CONFIG)
    yield {
        "producer": producer,
        "consumer": consumer,
        "queue": consumer.queues.consumer,
        "forward_queue": consumer.queues.main,
        "event": Event("None"),
        "handle": producer,
        "config": CONFIG,
        "topic": "test",
        "topics": ["test"],
        "partition": 0,
        "partitions": [0],
        "offset": 7,
        "offsets": [7],
        "key": "k",
        "value": "v",
        "marshalType": "JSON",
        "batchSize": 1,
        "batch_size": 1,
        "timeout": 0,
        "size": 1000,
        "table": dolphindb.table(["id"], ["INT"]),
        "parser": lambda value: value,
        "actionName": "arguments",
        "names": ["id"],
        "types": ["INT"],
        "keys": "id",
        "column": ["{}"],
        "schema": {"id": "INT"},
    }
    consumer.close()
    producer._sender.close()


@pytest.mark.parametrize(("name", "argument", "given"), list(cases()))
def test_a_wrong_argument_is_an_error_that_names_it(
    name: str, argument: str, given: Any, good: dict[str, Any]
) -> None:
    function = getattr(dolphindb, name)
    needed = inspect.signature(function).parameters.values()
    arguments = {p.name: good[p.name] for p in needed if p.default is p.empty and p.name in good}
    if argument == "value":
        arguments["marshalType"] = "JSON"
    if argument in ("topic", "partition", "offset"):
        # They belong together where they may be left out.
        arguments |= {p.name: good[p.name] for p in needed if p.name in good and p.default is None}
    with pytest.raises(PenstockError) as raised:
        function(**arguments | {argument: given})
    assert argument in str(raised.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_every_function_is_tried(name: str) -> None:
    parameters = inspect.signature(getattr(dolphindb, name)).parameters.values()
    assert {p.name for p in parameters if p.kind is not p.VAR_POSITIONAL} <= set(WRONG)


@pytest.mark.parametrize("rest", [(False, "x"), (False, -5), (7, 8), (False, 0, 0), ("x",)])
def test_what_follows_the_format_of_version_1_30_is_checked_too(
    rest: tuple[Any, ...], good: dict[str, Any]
) -> None:
    with pytest.raises(PenstockError, match="partition"):
        dolphindb.produce(good["producer"], "test", "k", "v", "JSON", *rest)
