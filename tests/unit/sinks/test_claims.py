"""Claims of an epoch, in the sinks that need no Spark for them: the target knows it, not the writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from penstock import Connection
from penstock.errors import FencedError
from penstock.pipeline import CLAIMED, Batch, Delivery, LastWrite, Mark, Opening, Writer, registry

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
NOWHERE = Connection(brokers="nowhere:1")
TARGETS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "files": lambda folder: {"path": str(folder / "t")},
    "memory": lambda folder: {"table": str(folder)},
    "database": lambda folder: {"url": f"sqlite:///{folder}/t.db", "table": "t"},
}


@pytest.fixture(params=TARGETS)
def opened(request: Any, tmp_path: Path) -> Callable[..., Writer]:
    """Open the sink, as each process does for itself."""
    sink: Any = registry.component("sink", request.param).model_validate(
        TARGETS[request.param](tmp_path)
    )

    def open_(pipeline: str = "p") -> Writer:
        return sink.open(Opening(SPARK, pipeline, NOWHERE, Delivery.EXACTLY_ONCE))

    open_().prepare(StructType().add("id", "long"))
    return open_


def test_a_claim_is_known_to_every_writer_of_the_pipeline_and_to_no_other(
    opened: Callable[..., Writer],
) -> None:
    assert opened().last_write() is None
    with opened() as first:
        assert first.claim(7) is None
    assert opened().last_write() == LastWrite(Mark(7, CLAIMED, 0))
    assert opened("q").last_write() is None
    assert opened().claim(9) == LastWrite(Mark(7, CLAIMED, 0))


def test_an_older_epoch_is_fenced(opened: Callable[..., Writer]) -> None:
    zombie = opened()
    zombie.claim(7)
    opened().claim(8)
    with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
        zombie.claim(8)
    rows: Any = None
    with pytest.raises(FencedError):
        zombie.has(Batch(rows, "p", 7, 0, NOWHERE))
    assert not zombie.has(Batch(rows, "p", 8, 0, NOWHERE))
