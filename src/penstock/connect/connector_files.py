"""Files with the configuration of one connector: JSON or properties, as Connect's workers read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.connect.common_keys import CONNECTOR_CLASS, NAME
from penstock.connect.properties_files import property_file, read_configuration
from penstock.errors import ConfigError

INITIAL_STATES = ("RUNNING", "PAUSED", "STOPPED")


@dataclass(frozen=True)
class ConnectorFile:
    """The name, the configuration and the first state of a connector."""

    path: Path
    name: str
    config: dict[str, str]
    initial_state: str | None = None


def read_connector_file(path: Path) -> ConnectorFile:
    """Read a file: JSON as for the REST API, a flat JSON object, or properties, whatever its name is."""
    text = read_configuration(path)
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        found = _from_json(path, text)
    else:
        config = property_file(path, text).values
        found = ConnectorFile(path, config.get(NAME, ""), config)
    for key, value in ((NAME, found.name), (CONNECTOR_CLASS, found.config.get(CONNECTOR_CLASS))):
        if not value:
            raise ConfigError(f"{path} has no {key!r}; a connector has a name and a class")
    config = {**found.config, NAME: found.name}
    return ConnectorFile(path, found.name, config, found.initial_state)


def _from_json(path: Path, text: str) -> ConnectorFile:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path} is not a JSON object")
    config = data.get("config", data)
    if not isinstance(config, dict):
        raise ConfigError(f"'config' of {path} is not a JSON object")
    state = data.get("initial_state") if config is not data else None
    if state is not None and str(state).upper() not in INITIAL_STATES:
        allowed = ", ".join(INITIAL_STATES)
        raise ConfigError(f"'initial_state' of {path} is {state!r:.100}; allowed: {allowed}")
    texts = {key: _text(path, key, value) for key, value in config.items() if value is not None}
    name = str(data.get(NAME) or texts.get(NAME) or "")
    return ConnectorFile(path, name, texts, None if state is None else str(state).upper())


def _text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, (dict, list)):
        kind = "a list" if isinstance(value, list) else "an object"
        raise ConfigError(f"{key!r} of {path} is {kind}; allowed: a text, a number, true or false")
    return str(value).lower() if isinstance(value, bool) else str(value)
