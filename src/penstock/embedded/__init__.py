"""A real broker and a real schema registry on this machine, from jars that are downloaded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy_imports import loads_late

if TYPE_CHECKING:
    from penstock.embedded.broker import Broker as Broker
    from penstock.embedded.embedded_registry import SchemaRegistry as SchemaRegistry
    from penstock.embedded.security import Security as Security

_PLACES = {"Broker": "broker", "SchemaRegistry": "embedded_registry", "Security": "security"}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
