"""The ids of Kafka clusters, which never change: each is asked for once."""

from __future__ import annotations

from threading import Lock

from penstock.config import Connection
from penstock.errors import PenstockError
from penstock.kafka import Admin

_PATIENCE = 3.0


class ClusterIds:
    """The ids by the addresses of the clusters."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def id_of(self, connection: Connection) -> str:
        """Return the id of a cluster; an empty text while the cluster cannot be reached."""
        with self._lock:
            known = self._known.get(connection.brokers, "")
            if not known:
                known = self._known[connection.brokers] = _ask(connection)
            return known


def _ask(connection: Connection) -> str:
    try:
        with Admin(connection, timeout=_PATIENCE) as admin:
            return admin.cluster().id
    except PenstockError:  # whoever asks wants the version; what needs the cluster reports why
        return ""
