"""Which topics of a cluster are filled by mirrors from another one: to copy them back would never end."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.imports.positions import every_position
from penstock.kafka import Admin
from penstock.pipeline.importing import POSITIONS


def topics_filled_from(cluster_id: str, here: Admin) -> Mapping[str, str]:
    """Return the topics that mirrors fill from a cluster, each with the name of its mirror."""
    if POSITIONS not in here.topic_ids([POSITIONS]):
        return {}
    filled = {}
    for name, place, position in every_position(here.connection):
        if place.get("cluster") == cluster_id and isinstance(position.get("into"), str):
            filled[position["into"]] = name
    return filled
