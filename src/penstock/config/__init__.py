"""Connections: one description of a cluster for librdkafka, the Java client and Spark.

The names are loaded when they are first used: pydantic alone takes longer to load than the command
line may take to answer `--help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy_imports import loads_late

if TYPE_CHECKING:
    from penstock.config.connection import Connection as Connection
    from penstock.config.references import resolve_references as resolve_references
    from penstock.config.settings import ConnectionLike as ConnectionLike
    from penstock.config.settings import Settings as Settings
    from penstock.config.settings import find_connection as find_connection

_PLACES = {
    "Connection": "connection",
    "ConnectionLike": "settings",
    "Settings": "settings",
    "find_connection": "settings",
    "resolve_references": "references",
}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
