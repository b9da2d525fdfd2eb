"""Protobuf with a schema registry."""

from penstock.formats.protobuf.protobuf import Protobuf

__all__ = ["Protobuf"]
