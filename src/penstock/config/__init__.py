"""Connections: one description of a cluster for librdkafka, the Java client and Spark.

The names are loaded when they are first used: pydantic alone takes longer to load than the command
line may take to answer `--help`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.config.connection import Connection
    from penstock.config.places import cache_dir, config_dir, data_dir, log_dir
    from penstock.config.references import resolve_references
    from penstock.config.secrets import MaskingFilter, mask, mask_event, mask_mapping
    from penstock.config.settings import ConnectionLike, Settings, find_connection, settings_paths

__all__ = [
    "Connection",
    "ConnectionLike",
    "MaskingFilter",
    "Settings",
    "cache_dir",
    "config_dir",
    "data_dir",
    "find_connection",
    "log_dir",
    "mask",
    "mask_event",
    "mask_mapping",
    "resolve_references",
    "settings_paths",
]

_HOMES = {
    "connection": ("Connection",),
    "places": ("cache_dir", "config_dir", "data_dir", "log_dir"),
    "references": ("resolve_references",),
    "secrets": ("MaskingFilter", "mask", "mask_event", "mask_mapping"),
    "settings": ("ConnectionLike", "Settings", "find_connection", "settings_paths"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"penstock.config.{home}"), name)
    raise AttributeError(f"module 'penstock.config' has no attribute {name!r}")
