"""A schema registry: its client, and what the formats that use one have in common."""

from penstock.formats.registry.http import Tls
from penstock.formats.registry.oauth import OAuth
from penstock.formats.registry.registry_client import Registry
from penstock.formats.registry.registry_model import Reference, Registered, Schema

__all__ = ["OAuth", "Reference", "Registered", "Registry", "Schema", "Tls"]
