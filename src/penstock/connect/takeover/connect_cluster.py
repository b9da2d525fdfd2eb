"""A server that speaks Kafka Connect's REST API: a Connect cluster, or Penstock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.api_client.server_client import ServerClient, in_path
from penstock.connect.common_keys import CONNECTOR_CLASS
from penstock.errors import ConfigError, NotFoundError, PenstockError
from penstock.retry import retry

_PATIENCE = 30.0
_PAUSE = 0.5
# What a cluster replies whose workers share connectors again, or have not read a change yet; and a
# server here that has not removed an earlier connector of the name yet.
_BUSY = ("rebalance", "momentarily", "stale configuration", "is being removed")
RUNNING, PAUSED, STOPPED = "RUNNING", "PAUSED", "STOPPED"


@dataclass(frozen=True)
class Listed:
    """A connector of a cluster: its configuration, its type, and its state."""

    name: str
    config: dict[str, str]
    kind: str
    state: str

    @property
    def class_name(self) -> str:
        """Return the name of its class."""
        return self.config.get(CONNECTOR_CLASS, "")


@dataclass(frozen=True)
class ConnectCluster:
    """The calls of the API that a takeover needs. Those that a rebalance refuses are tried again."""

    client: ServerClient

    @property
    def url(self) -> str:
        """Return its address."""
        return self.client.address.url

    def cluster_id(self) -> str:
        """Return the id of its Kafka cluster; empty where it does not say it."""
        try:
            found = self._ask("GET", "/")
        except (ConfigError, NotFoundError):  # a path that a proxy may not have
            return ""
        return str(found.get("kafka_cluster_id") or "") if isinstance(found, dict) else ""

    def connectors(self) -> dict[str, Listed]:
        """Return all connectors by their names."""
        found = self._ask("GET", "/connectors", expand=["info", "status"])
        if not isinstance(found, dict):
            raise ConfigError(
                f"{self.url} does not list connectors with their states; a Connect cluster does from "
                "release 2.3 on"
            )
        return {name: _listed(name, each) for name, each in found.items()}

    def validation(self, config: dict[str, str]) -> dict[str, Any]:
        """Return the check of a configuration, with `warnings` where the server gives them."""
        path = f"/connector-plugins/{in_path(config[CONNECTOR_CLASS])}/config/validate"
        found: dict[str, Any] = self._ask("PUT", path, config, warnings="true")
        return found

    def create(self, name: str, config: dict[str, str]) -> None:
        """Create a connector that does not run."""
        body = {"name": name, "config": config, "initial_state": STOPPED}
        self._ask("POST", "/connectors", body)

    def delete(self, name: str) -> None:
        """Remove a connector."""
        self._ask("DELETE", f"/connectors/{in_path(name)}")

    def ask_for(self, name: str, state: str) -> None:
        """Ask for a state: RUNNING, PAUSED, STOPPED."""
        action = {RUNNING: "resume", PAUSED: "pause", STOPPED: "stop"}[state]
        self._ask("PUT", f"/connectors/{in_path(name)}/{action}")

    def is_stopped(self, name: str) -> bool:
        """Return whether a connector is stopped and none of its tasks is left."""
        found = self._ask("GET", f"/connectors/{in_path(name)}/status")
        return found["connector"]["state"] == STOPPED and not found["tasks"]

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Return the offsets of a connector."""
        try:
            found = self._ask("GET", f"/connectors/{in_path(name)}/offsets")
        except (NotFoundError, ConfigError) as error:
            raise ConfigError(
                f"{self.url} does not give the offsets of {name}: {error}; a Connect cluster does from "
                "release 3.6 on"
            ) from None
        offsets: list[dict[str, Any]] = found["offsets"]
        return offsets

    def set_offsets(
        self, name: str, offsets: list[dict[str, Any]], again: Callable[[Exception], float | None]
    ) -> None:
        """Set offsets; `again` decides after an error whether it is tried again."""
        path = f"/connectors/{in_path(name)}/offsets"
        body = {"offsets": offsets}
        retry(lambda: self.client.connect("PATCH", path, body), again, within=2 * _PATIENCE)

    def reset_offsets(self, name: str, again: Callable[[Exception], float | None]) -> None:
        """Remove all offsets; `again` decides after an error whether it is tried again."""
        path = f"/connectors/{in_path(name)}/offsets"
        retry(lambda: self.client.connect("DELETE", path), again, within=2 * _PATIENCE)

    def _ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return retry(
            lambda: self.client.connect(method, path, body, **query), _passes, within=_PATIENCE
        )


def _passes(error: Exception) -> float | None:
    """Return the pause before a request that met a rebalance is sent again."""
    is_busy = isinstance(error, PenstockError) and any(word in str(error) for word in _BUSY)
    return _PAUSE if is_busy else None


def _listed(name: str, found: dict[str, Any]) -> Listed:
    info, status = found.get("info") or {}, found.get("status") or {}
    config = {key: str(value) for key, value in (info.get("config") or {}).items()}
    state = (status.get("connector") or {}).get("state") or ""
    return Listed(name, config, str(info.get("type") or ""), str(state))
