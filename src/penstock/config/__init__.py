"""Connections: one description of a cluster for librdkafka, the Java client and Spark."""

from penstock.config.connection import Connection
from penstock.config.places import cache_dir, config_dir, data_dir, log_dir
from penstock.config.references import resolve_references
from penstock.config.secrets import MaskingFilter, mask, mask_event, mask_mapping
from penstock.config.settings import Settings, find_connection, settings_paths

__all__ = [
    "Connection",
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
