"""A source connector as a pipeline: its import alone, or an import, its transforms and its converters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.connect.chain_kinds import makes_keys, reads_values
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported
from penstock.connect.converters import Converters
from penstock.connect.topic_routing import routed
from penstock.decode.connect_decode import ConnectDecode
from penstock.encode.format_options import ConverterFormat
from penstock.formats.connect.converter_options import REGISTERED, ConverterOptions
from penstock.pipeline import Delivery
from penstock.pipeline.derived_names import imported_into
from penstock.pipeline.registry import component
from penstock.steps.connect_transforms.chain import TransformSpec
from penstock.steps.connect_transforms.connect_step import ConnectStep
from penstock.steps.connect_transforms.row_shapes import Encoded

BYTES = ConverterOptions(form="bytes")
# What an import that takes converters writes for the pipeline behind it: all of a schema is in it.
_BETWEEN = ConverterOptions(form="json")
_COLUMNS = {"topic_column": "topic", "key": "key", "value": "value", "headers": "headers"}


def source_pipeline(
    pipeline: str,
    kind: type[ConnectorClass],
    config: ConnectorConfig,
    converters: Converters,
    chain: Sequence[TransformSpec],
) -> dict[str, Any]:
    """Return the definition, without what is about errors."""
    made = kind().pipeline(config)
    ((name, options),) = made["source"].items()
    imported = kind().imported(config)
    if not chain and (written := _alone(imported, *converters.options)) is not None:
        sink = {"kafka": options.get("topic", "")}
        return {**made, "source": {name: {**options, **written}}, "sink": sink}
    between = _between(imported, *converters.options, chain)
    route = _Route(pipeline, options.get("topic", ""))
    step = ConnectStep(
        chain=tuple(chain),
        never_null=imported.never_null,
        shape=Encoded(between["encode_key"], between["encode_value"]),
        **route.of_step(),
    )
    given = {**options, **between["formats"], "topic": route.between}
    return {
        **made,
        "source": {name: given},
        "decode": ConnectDecode(key=between["key"], value=between["value"]),
        "steps": [step],
        "sink": {"kafka": {"topic": route.last(chain), **_COLUMNS}},
        "delivery": _delivery(name),
    }


@dataclass(frozen=True)
class _Route:
    """The topics of a source's records: between import and transforms, and after these."""

    pipeline: str
    topic: str

    @property
    def has_names(self) -> bool:
        """Return whether the parts of the import have topics of their own."""
        return "{" in self.topic

    @property
    def between(self) -> str:
        """Return the topic of the import; empty: that of the pipeline."""
        return f"{imported_into(self.pipeline)}.{self.topic}" if self.has_names else ""

    def of_step(self) -> dict[str, str]:
        """Return how the step knows the topic of a record."""
        if self.has_names:
            return {"topic_prefix": f"{imported_into(self.pipeline)}."}
        return {"topic": self.topic}

    def last(self, chain: Sequence[TransformSpec]) -> str:
        """Return the topic of the sink, which each record replaces by its own."""
        return f"{self.pipeline}.out" if self.has_names else _routed(self.topic, chain)


def _alone(
    imported: Imported, key: ConverterOptions, value: ConverterOptions
) -> dict[str, Any] | None:
    """Return the options with which an import writes what is wanted by itself; None where it cannot."""
    if imported.takes_converters:
        return _formats(key, value)
    if imported.is_final:
        return {}
    same_key = imported.key is None or _same(imported.key, key)
    return {} if same_key and _same(imported.value, value) else None


def _delivery(source: str) -> str:
    """Return the most that a source can promise."""
    delivers = getattr(component("source", source), "delivers", ())
    most = Delivery.EXACTLY_ONCE if Delivery.EXACTLY_ONCE in delivers else Delivery.AT_LEAST_ONCE
    return str(most.value)


def _same(imported: ConverterOptions, wanted: ConverterOptions) -> bool:
    return imported == wanted


def _formats(key: ConverterOptions, value: ConverterOptions) -> dict[str, Any]:
    return {
        "key_format": ConverterFormat(connect=key),
        "value_format": ConverterFormat(connect=value),
    }


def _between(
    imported: Imported,
    key: ConverterOptions,
    value: ConverterOptions,
    chain: Sequence[TransformSpec],
) -> dict[str, Any]:
    """Return what is in the topic between, how it is read from there, and how it is written then."""
    own = {"encode_key": key, "encode_value": value}
    registered = {key.form, value.form} & {*REGISTERED}
    if not imported.takes_converters:
        if imported.key is None and not makes_keys(chain):
            own["encode_key"] = BYTES  # it is null
        read = {"key": imported.key or BYTES, "value": imported.value}
        return {"formats": {}, **read, **own}
    if reads_values(chain) or registered:
        return {"formats": _formats(_BETWEEN, _BETWEEN), "key": _BETWEEN, "value": _BETWEEN, **own}
    as_they_are = {"key": BYTES, "value": BYTES, "encode_key": BYTES, "encode_value": BYTES}
    return {"formats": _formats(key, value), **as_they_are}


def _routed(topic: str, chain: Sequence[TransformSpec]) -> str:
    """Return the topic that records go to, where it is known before they are read.

    >>> options = {"regex": "(.*)", "replacement": "x-$1"}
    >>> _routed("a", [TransformSpec("r", "RegexRouter", options=options)])
    'x-a'
    """
    if any(spec.kind == "TimestampRouter" or spec.predicate for spec in chain):
        return topic
    for spec in chain:
        if spec.kind == "RegexRouter":
            with suppress(
                ValueError
            ):  # Java reads it its own way: each record has its topic with it
                (new,) = routed(spec.options["regex"], spec.options["replacement"], [topic])
                topic = new or topic
    return topic
