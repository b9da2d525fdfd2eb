"""A schema registry: its client, and what the formats that use one have in common."""

from penstock.formats.registry.http import Tls
from penstock.formats.registry.model import Reference, Registered, Schema
from penstock.formats.registry.registry import Registry

__all__ = ["Reference", "Registered", "Registry", "Schema", "Tls"]
