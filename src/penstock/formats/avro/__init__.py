"""Avro with a schema registry; its bodies are read and written by functions made for the schema."""

from penstock.formats.avro.avro import Avro

__all__ = ["Avro"]
