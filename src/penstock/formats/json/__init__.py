"""The format json."""

from penstock.formats.json.json import Json

__all__ = ["Json"]
