"""What is wrong in a configuration: every key with its value and its errors, as `validate` replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.connect.combined_problems import combined_problems
from penstock.connect.common_keys import (
    CONNECTOR_CLASS,
    DEAD_LETTERS,
    NAME,
    TOPICS,
    TOPICS_REGEX,
)
from penstock.connect.config_definition import Checked, Key
from penstock.connect.connector_class import Catalog, ConnectorClass
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import WORKER_CONVERTERS
from penstock.connect.plugin_checks import (
    CONVERTER_KEYS,
    class_errors,
    converter_class,
    converter_keys,
)
from penstock.connect.transforms.plugin_keys import list_errors, plugin_keys
from penstock.connect.unused_keys import RESET, STARTS, unused_keys

_HEAD = "Connector configuration is invalid and contains the following {count} error(s):"
_FOOT = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


@dataclass(frozen=True)
class Validation:
    """The outcome for one configuration."""

    name: str
    checked: tuple[Checked, ...]
    groups: tuple[str, ...]
    # Keys that have no effect, each with a text that says so.
    warnings: tuple[tuple[str, str], ...] = ()

    @property
    def errors(self) -> list[str]:
        """Return every error, in the order of the keys."""
        return [error for each in self.checked for error in each.errors]

    def described(self) -> dict[str, Any]:
        """Return the reply."""
        return {
            "name": self.name,
            "error_count": len(self.errors),
            "groups": [*self.groups],
            "configs": [each.described() for each in self.checked],
        }

    def message(self) -> str:
        """Return the text with which a connector is refused."""
        lines = [_HEAD.format(count=len(self.errors)), *self.errors, _FOOT]
        return "\n".join(lines)


def validate(
    catalog: Catalog, given: Mapping[str, str], worker: Mapping[str, str] = WORKER_CONVERTERS
) -> Validation:
    """Check a configuration whose class is known; `worker` has the converters where it names none."""
    name = given[CONNECTOR_CLASS]
    kind = catalog.find(name)
    config = ConnectorConfig(given, kind.definition())
    found = {each.key.name: each for each in _every_key(kind, config)}
    for key, error in _problems(kind(), config):
        found[key] = found.get(key, _undefined(key)).with_error(error)
    checked = tuple(found.values())
    if not any(each.errors for each in checked):
        for key, error in combined_problems(kind, config, worker):
            found[key] = found[key].with_error(error)
    groups = dict.fromkeys(each.key.group for each in checked if each.key.group is not None)
    warnings = (*kind().warnings(config), *unused_keys(config))
    return Validation(name, tuple(found.values()), tuple(groups), warnings)


def _every_key(kind: type[ConnectorClass], config: ConnectorConfig) -> Iterator[Checked]:
    """Yield all keys in Connect's order: common, transforms and predicates, own, converters."""
    own = {key.name for key in kind.keys}
    yield from (_as_class(each, config) for n, each in config.checked.items() if n not in own)
    yield from plugin_keys(config.given)
    yield from (each for name, each in config.checked.items() if name in own)
    yield from converter_keys(config.given)


def _as_class(checked: Checked, config: ConnectorConfig) -> Checked:
    """Return the key of a converter with the whole name of its class."""
    found = converter_class(config.given, checked.key.name) if checked.value else None
    if checked.key.name not in CONVERTER_KEYS or found is None:
        return checked
    return replace(checked, value=found.name)


def _undefined(key: str) -> Checked:
    """Return a key that the class does not have; its value is not shown."""
    return Checked(Key(key, default=None, documentation="Refused: see the errors."), None)


def _problems(kind: ConnectorClass, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    if kind.kind == "sink":
        yield from _topic_problems(config)
    yield from kind.refusals(config)
    yield from list_errors(config.given).items()
    yield from class_errors(config.given)
    if not config.checked[NAME].errors:
        yield from kind.problems(config)


def _topic_problems(config: ConnectorConfig) -> Iterator[tuple[str, str]]:
    topics, pattern = config[TOPICS] or [], config[TOPICS_REGEX] or ""
    wrong = ""
    if topics and pattern:
        wrong = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
    elif not topics and not pattern:
        wrong = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
    if wrong:
        yield from ((key, wrong) for key in (TOPICS, TOPICS_REGEX))
    if len({*topics}) < len(topics):
        yield TOPICS, f"Configuration '{TOPICS}' values must not be duplicated."
    start = config.get(RESET)
    if start is not None and start.strip().lower() not in STARTS and "${" not in start:
        allowed = ", ".join(STARTS)
        yield (
            RESET,
            f"Invalid value {start} for configuration {RESET}: String must be one of: {allowed}",
        )
    letters = config[DEAD_LETTERS]
    if letters and letters in topics:
        yield (
            TOPICS,
            f"The DLQ topic '{letters}' may not be included in the list of topics "
            f"('{TOPICS}=[{', '.join(topics)}]') consumed by the connector",
        )


def with_name(given: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return a configuration as texts, with the name of its connector.

    >>> with_name({"tasks.max": 2, "errors.log.enable": True}, "orders")
    {'tasks.max': '2', 'errors.log.enable': 'true', 'name': 'orders'}
    """
    texts = {key: _text(value) for key, value in given.items() if value is not None}
    return {**texts, NAME: name}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
