"""A sink connector as a pipeline: Kafka, converters, transforms, the rows of its class, its sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.connect.chain_kinds import reads_headers
from penstock.connect.common_keys import TOPICS, TOPICS_REGEX
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import TOMBSTONE
from penstock.connect.converters import Converters
from penstock.connect.unused_keys import RESET, STARTS
from penstock.decode.connect_decode import ConnectDecode
from penstock.steps.connect_transforms.chain import TransformSpec
from penstock.steps.connect_transforms.connect_step import ConnectStep
from penstock.steps.connect_transforms.row_shapes import Documents, Fields, Record, Shape, Text


def sink_pipeline(
    connector: str,
    kind: type[ConnectorClass],
    config: ConnectorConfig,
    converters: Converters,
    chain: Sequence[TransformSpec],
) -> dict[str, Any]:
    """Return the definition, without its name and without what is about errors."""
    made = kind().pipeline(config)
    key, value = converters.options
    needed = reads_headers(chain) or kind.rows in ("record", "documents")
    step = ConnectStep(chain=tuple(chain), shape=_shape(kind, config))
    return {
        "group": f"connect-{connector}",
        **made,
        "source": {"kafka": _source(config, with_headers=needed)},
        "decode": ConnectDecode(key=key, value=value),
        "steps": [step, *made.get("steps", ())],
    }


def _source(config: ConnectorConfig, *, with_headers: bool) -> dict[str, Any]:
    topics = config[TOPICS]
    source = {"topics": topics} if topics else {"pattern": config[TOPICS_REGEX]}
    if with_headers:
        source["headers"] = True
    if (start := config.get(RESET)) is not None:
        source["start"] = STARTS.get(start.strip().lower(), start)
    return source


def _shape(kind: type[ConnectorClass], config: ConnectorConfig) -> Shape:
    match kind.rows:
        case "text":
            return Text()
        case "record":
            return Record()
        case "documents":
            return Documents()
    own = kind()
    key = own.key_columns(config)
    return Fields(
        key_from=key.origin,
        key_names=key.names,
        only=own.fields(config),
        coordinates=own.coordinates(config),
        tombstones=own.tombstones(config),
        tombstone=TOMBSTONE,
    )
