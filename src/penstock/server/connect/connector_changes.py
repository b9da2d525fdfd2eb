"""Changes that the API asks for: checked in the order, and refused in the words, of Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.connect.common_keys import CONNECTOR_CLASS, NAME, TASKS_MAX
from penstock.connect.connector_class import UnknownClassError
from penstock.connect.validation import validate, with_name
from penstock.control.store.rows import Desired
from penstock.server.connect.connect_errors import ConnectError
from penstock.server.connect.connector_store import Connector, ConnectorStore

_MEMBERS = {"name", "config", "initial_state"}
_INITIAL = {
    "RUNNING": Desired.RUNNING,
    "PAUSED": Desired.PAUSED,
    "STOPPED": Desired.STOPPED,
}


def create(connectors: ConnectorStore, body: Any) -> Connector:
    """Make the connector of a request."""
    given = _object(body, "the body")
    if unknown := sorted(given.keys() - _MEMBERS):
        allowed = ", ".join(sorted(_MEMBERS))
        raise ConnectError(
            400, f"the body has an unknown member {unknown[0]!r}; allowed: {allowed}"
        )
    config = _object(given.get("config") or {}, "'config'")
    name = str(given.get("name") or "").strip() or str(config.get(NAME) or "")
    _require_same_name(config, name)
    made = checked(connectors, name, config)
    if connectors.exists(name):
        raise ConnectError(409, f"Connector {name} already exists")
    return connectors.put(name, made, _initial(given.get("initial_state")))


def put(connectors: ConnectorStore, name: str, body: Any) -> tuple[Connector, bool]:
    """Replace the configuration of a connector, or make it; return whether it is new."""
    config = _object(body, "the body")
    _require_same_name(config, name)
    made = checked(connectors, name, config)
    is_new = not connectors.exists(name)
    return connectors.put(name, made), is_new


def patch(connectors: ConnectorStore, name: str, body: Any) -> Connector:
    """Change some keys of a configuration; null removes one."""
    changes = _object(body, "the body")
    before = connectors.find_to_change(name).config
    merged = {key: value for key, value in {**before, **changes}.items() if value is not None}
    _require_same_name(merged, name)
    return connectors.put(name, checked(connectors, name, merged))


def checked(connectors: ConnectorStore, name: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Return a configuration as texts; raise 400 with every error in it."""
    config = with_name(given, name)
    if not config.get(CONNECTOR_CLASS):
        shown = ", ".join(f"{key}={config[key]}" for key in sorted(config, key=_shown_first))
        raise ConnectError(400, f"Connector config {{{shown}}} contains no connector type")
    try:
        found = validate(connectors.catalog, config)
    except UnknownClassError as error:
        raise ConnectError(400, str(error)) from None
    if found.errors:
        raise ConnectError(400, found.message())
    return config


def _shown_first(key: str) -> tuple[bool, str]:
    return (key != NAME, key if key != TASKS_MAX else "")


def _require_same_name(config: Mapping[str, Any], name: str) -> None:
    own = config.get(NAME)
    if own is not None and str(own) != name:
        raise ConnectError(
            400,
            f"Connector name configuration ({own}) doesn't match connector name in the URL ({name})",
        )


def _object(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConnectError(400, f"{what} is not a JSON object")
    return given


def _initial(given: Any) -> Desired | None:
    if given is None:
        return None
    state = _INITIAL.get(str(given).upper())
    if state is None:
        raise ConnectError(
            400, f"initial_state is {str(given)[:100]!r}; allowed: RUNNING, PAUSED, STOPPED"
        )
    return state
