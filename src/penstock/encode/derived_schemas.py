"""What the derivations of schemas share: the name of a record, and the refusal of a type."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.errors import ConfigError


def derived_name(topic: str, part: str) -> str:
    """Return the name of the record for a part of a topic's records: stable, and valid in every format.

    >>> derived_name("shop.orders-v1", "value"), derived_name("2024", "key")
    ('shop_orders_v1_value', '_2024_key')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", f"{topic}_{part}")
    return f"_{name}" if name[0].isdigit() else name


def no_form(format_name: str, type_: pa.DataType, path: str) -> ConfigError:
    """Return the error for a column whose type a format lacks."""
    return ConfigError(
        f"{format_name} has no type for the column {path!r} of type {type_}; a step can cast it"
    )
