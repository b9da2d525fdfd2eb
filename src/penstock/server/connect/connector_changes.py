"""Changes that the API asks for: checked in the order, and refused in the words, of Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.config.secrets import MASK, mask_mapping
from penstock.connect.common_keys import CONNECTOR_CLASS, NAME, TASKS_MAX
from penstock.connect.config_definition import trimmed
from penstock.connect.connector_class import UnknownClassError
from penstock.connect.validation import validate, with_name
from penstock.control.roles import Role
from penstock.control.store.deployments import ChangedError
from penstock.control.store.rows import DeploymentRow, Desired
from penstock.server.connect.connect_errors import ConnectError
from penstock.server.connect.connector_store import Connector, ConnectorStore

# How often a change is tried while others change the same connector.
_ATTEMPTS = 20
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
    config = _texts(_object(given.get("config"), "'config'"), "'config'")
    name = trimmed(_text_of(given.get("name") or "", "'name'")) or config.get(NAME) or ""
    initial = _initial(given.get("initial_state"))
    _require_same_name(config, name)
    made = checked(connectors, with_name(config, name))
    if (before := connectors.row(name)) is not None:
        raise _taken(name, before)
    try:
        return connectors.put(name, made, None, initial)
    except ChangedError:  # another request was faster
        raise ConnectError(409, f"Connector {name} already exists") from None


def put(connectors: ConnectorStore, name: str, body: Any) -> tuple[Connector, bool]:
    """Replace the configuration of a connector, or make it; return whether it is new."""
    config = _texts(_object(body, "the body"), "the body")
    _require_same_name(config, name)
    named = with_name(config, name)
    for _ in range(_ATTEMPTS):
        before = connectors.row(name)
        made = checked(connectors, named, before)
        if before is not None and before.desired is Desired.DELETED:
            raise _taken(name, before)
        try:
            return connectors.put(name, made, before), before is None
        except ChangedError:  # another request was faster: this one replaces what that one stored
            continue
    raise ConnectError(409, f"Connector {name} is changed by many requests at a time; try again")


def patch(connectors: ConnectorStore, name: str, body: Any) -> Connector:
    """Change some keys of a configuration; null removes one."""
    given = _object(body, "the body")
    changes = {key: each for key, each in given.items() if each is not None}
    texts = _texts(changes, "the body")
    for _ in range(_ATTEMPTS):
        before = connectors.find_to_change(name)
        merged = {key: each for key, each in before.config.items() if key not in given} | texts
        _require_same_name(merged, name)
        made = checked(connectors, merged, before.row)
        try:
            return connectors.put(name, made, before.row)
        except ChangedError:  # its configuration is another one now, or it is gone
            continue
    raise ConnectError(409, f"Connector {name} is changed by many requests at a time; try again")


def unmasked(connectors: ConnectorStore, body: Any) -> Any:
    """Return a configuration to validate, with the stored secrets of its connector in place of masks.

    Clients that change a connector validate what they have read of it, which is masked.
    """
    if not isinstance(body, dict) or not any(MASK in str(each) for each in body.values()):
        return body
    row = connectors.row(str(body.get(NAME)))
    if row is None or not connectors.access.allows(Role.OPERATOR, row.labels):
        return body
    return connectors.with_secrets(body, row)


def _taken(name: str, before: DeploymentRow) -> ConnectError:
    if before.desired is Desired.DELETED:
        return ConnectError(409, f"Connector {name} is being removed; try again when it is gone")
    return ConnectError(409, f"Connector {name} already exists")


def checked(
    connectors: ConnectorStore, config: dict[str, str], before: DeploymentRow | None = None
) -> dict[str, str]:
    """Return a configuration; raise 400 with every error in it.

    A value that is as replies mask it in `before` is checked as the stored one, which it stands for.
    """
    if CONNECTOR_CLASS not in config:
        masked = mask_mapping(config)
        shown = ", ".join(f"{key}={masked[key]}" for key in sorted(config, key=_shown_first))
        raise ConnectError(400, f"Connector config {{{shown}}} contains no connector type")
    try:
        complete = connectors.with_secrets(config, before)
        found = validate(connectors.catalog, connectors.defaults.completed(complete))
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


def _texts(given: Mapping[str, Any], what: str) -> dict[str, str]:
    """Return values as texts; raise 400 where one is null, a list or an object."""
    return {key: _text_of(value, f"{what}: {key[:100]!r}") for key, value in given.items()}


def _text_of(value: Any, what: str) -> str:
    if value is None or isinstance(value, (dict, list)):
        kind = "null" if value is None else "a list" if isinstance(value, list) else "an object"
        raise ConnectError(400, f"{what} is {kind}; allowed: a text, a number, true or false")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _initial(given: Any) -> Desired | None:
    if given is None:
        return None
    state = _INITIAL.get(str(given).upper())
    if state is None:
        raise ConnectError(
            400, f"initial_state is {str(given)[:100]!r}; allowed: RUNNING, PAUSED, STOPPED"
        )
    return state
