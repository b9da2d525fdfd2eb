"""From the configuration of a connector to a function of the columns of its records."""

from __future__ import annotations

from penstock.connect.transforms.configured_chain import configured_chain
from penstock.connect.transforms.plugin_keys import Config
from penstock.formats.connect import Schema
from penstock.steps.connect_transforms.binding import Bound, bind_chain


def bind(config: Config, key_schema: Schema | None, value_schema: Schema | None) -> Bound:
    """Return the transforms of a configuration, for records with these schemas.

    `None` in place of a schema is for records without one: their column is a VARIANT.
    """
    return bind_chain(configured_chain(config), key_schema, value_schema)
