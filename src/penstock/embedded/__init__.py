"""A real broker and a real schema registry on this machine, from jars that are downloaded once."""

from penstock.embedded.broker import Broker
from penstock.embedded.embedded_registry import SchemaRegistry
from penstock.embedded.security import Security

__all__ = ["Broker", "SchemaRegistry", "Security"]
