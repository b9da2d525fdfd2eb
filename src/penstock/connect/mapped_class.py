"""Base of the classes whose keys become options of a component of Penstock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from penstock.connect.common_keys import CONNECTOR_CLASS
from penstock.connect.config_definition import Check, Key
from penstock.connect.connector_class import ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.pipeline import Delivery
from penstock.pipeline.registry import AnySink, AnySource
from penstock.pipeline.values import without_imports

_REFERENCE = "${"
_READERS: dict[str, TypeAdapter[Any]] = {
    "sink": TypeAdapter(AnySink),
    "source": TypeAdapter(AnySource),
}
DELIVERY = Key(
    "penstock.delivery",
    default="at-least-once",
    documentation="What is promised when processes die: at-least-once, as Kafka Connect does, or "
    "exactly-once, where the sink can.",
    check=lambda value: (
        None
        if value in ("at-least-once", "at-most-once", "exactly-once")
        else "String must be one of: at-least-once, at-most-once, exactly-once"
    ),
)
"""A key of Penstock's own, which sinks have besides those of Kafka Connect."""


class MappedClass(ConnectorClass):
    """A class whose pipeline has one component, made of the connector's keys.

    The component's own checks belong to the check of a configuration: `places` says which key an option
    comes from, so that an error is at the key that a person has written.
    """

    places: ClassVar[Mapping[str, str]] = {}
    component: ClassVar[str]
    differences: ClassVar[tuple[str, ...]] = ()
    """What else is not as with that class in Kafka Connect, for the documentation."""

    def problems(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield what is wrong between keys; then, if nothing is, what the component refuses."""
        if any(each.errors for each in config.checked.values()) or [*self.refusals(config)]:
            return
        found = [*self.obstacles(config)]
        yield from found or self._refused_options(config)

    def obstacles(self, _config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield keys with what is wrong with them; each key alone is right."""
        yield from ()

    def key_of(self, option: str, _config: ConnectorConfig) -> str:
        """Return the key that an option of the component comes from."""
        while option:
            if option in self.places:
                return self.places[option]
            option = option.rpartition(".")[0]
        return self.places.get("", CONNECTOR_CLASS)

    def _refused_options(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield what the component says of its options, and of the delivery."""
        made = self.pipeline(config)
        try:
            with without_imports():
                read = _READERS[self.kind].validate_python(made[self.kind])
        except ValidationError as error:
            yield from self._at_keys(error, config, _has_reference(made[self.kind]))
            return
        delivery = Delivery(made.get("delivery", "at-least-once"))
        if self.kind == "sink" and (why := read.delivery_obstacle(delivery)):
            key = DELIVERY.name
            yield key, f"Invalid value {delivery.value} for configuration {key}: {why}"

    def _at_keys(
        self, error: ValidationError, config: ConnectorConfig, has_references: bool
    ) -> Iterator[tuple[str, str]]:
        for each in error.errors(include_url=False):
            option = ".".join(str(part) for part in each["loc"][1:])
            if has_references and (not option or _has_reference(each.get("input"))):
                continue  # the value is known to the workers alone
            key, why = self.key_of(option, config), each["msg"].removeprefix("Value error, ")
            yield key, f"Invalid value for configuration {key}: {why}"


def only(values: tuple[str, ...], why: str, *, any_case: bool = False) -> Check:
    """Refuse every other value, with the reason.

    >>> only(("UTC",), "times are written in UTC")("CET")
    'times are written in UTC; allowed: UTC'
    """
    known = {value.lower() if any_case else value for value in values}

    def check(value: Any) -> str | None:
        items = value if isinstance(value, list) else [] if value is None else [value]
        texts = [str(item).lower() if isinstance(item, bool) else str(item) for item in items]
        if all((text.lower() if any_case else text) in known for text in texts):
            return None
        return f"{why}; allowed: {', '.join(values)}"

    return check


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value.

    >>> given({"url": "x", "password": None, "key": [], "evolve": False})
    {'url': 'x', 'evolve': False}
    """
    return {name: value for name, value in options.items() if value not in (None, "", [], {})}


def _has_reference(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_reference(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(map(_has_reference, value))
    return isinstance(value, str) and _REFERENCE in value
