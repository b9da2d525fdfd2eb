"""An import without steps does not leave behind what steps of an earlier definition had to process."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Connection, Pipeline
from penstock.errors import ConfigError
from penstock.imports.unprocessed import require_processed
from penstock.kafka import GroupOffsets, Producer
from penstock.testing import fill


def alone(connection: Connection, name: str) -> Pipeline:
    """A pipeline whose import goes into its topic directly."""
    source = {"folder": "/in", "pattern": "*", "format": "lines", "topic": f"{name}.out"}
    made: dict[str, Any] = {"source": {"files": source}, "sink": {"kafka": f"{name}.out"}}
    return Pipeline(name=name, connection=connection, **made)


def committed(connection: Connection, group: str, topic: str, offset: int) -> None:
    with GroupOffsets(connection, group) as offsets:
        offsets.commit({(topic, 0): offset})


@pytest.mark.parametrize("table", ["", ".orders"])
def test_records_that_no_step_would_process_are_reported(
    connection: Connection, unique: str, table: str
) -> None:
    pipeline, between = alone(connection, unique), f"{unique}.in{table}"
    require_processed(pipeline)
    fill(connection, between, ["one", "two"])
    require_processed(pipeline)  # another one's topic: the group of this one has read nothing of it
    committed(connection, unique, between, 1)
    with pytest.raises(ConfigError, match=r"have not processed.*delete the topic"):
        require_processed(pipeline)
    committed(connection, unique, between, 2)
    require_processed(pipeline)


def test_marks_of_transactions_are_no_records(connection: Connection, unique: str) -> None:
    between = f"{unique}.in"
    fill(connection, between, ["one"])
    committed(connection, unique, between, 1)
    with Producer(connection, transactional_id=unique) as producer:
        producer.begin_transaction()
        producer.produce(between, None, b"aborted")
        producer.flush()
        producer.abort_transaction()
    require_processed(alone(connection, unique))
