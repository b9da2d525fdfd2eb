"""Bytes to values and back: one file for each format."""

from penstock.formats.base import Format

__all__ = ["Format"]
