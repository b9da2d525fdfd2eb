"""The format arrow, and any value as an Arrow array."""

from penstock.formats.arrow.arrow import Arrow

__all__ = ["Arrow"]
