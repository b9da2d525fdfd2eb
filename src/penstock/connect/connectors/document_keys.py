"""What the connectors of search indexes and of HTTP services share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.connect.common_keys import TOLERANCE
from penstock.connect.config_definition import Key
from penstock.connect.connector_config import ConnectorConfig

CA = Key(
    "penstock.ca",
    default=None,
    documentation="PEM file of the authorities to trust, on each worker; default: those of the machine.",
    group="Security",
)
WITH_VALUE: dict[str, Any] = {"sql": "SELECT * FROM rows WHERE value IS NOT NULL"}
"""The step that leaves out tombstones."""
NO_JAVA_STORES = (
    "there are no Java key stores; give the authorities (PEM) in penstock.ca, and leave it out"
)
NO_PROXY = "there are no proxies; leave it out"
BATCHES = "a batch has all records that have come; each task sends one request after the other"
_USER = re.compile(r"\s*[a-zA-Z]+://[^/?#]*@")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def tolerance_obstacle(
    config: ConnectorConfig, key: str, tolerant: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield a key that asks for bad records to be left out, where the connector tolerates none."""
    value = str(config[key]).lower()
    if value in tolerant and config[TOLERANCE] == "none":
        yield (
            key,
            f"Invalid value {config[key]} for configuration {key}: records that are refused end the "
            f"connector, because {TOLERANCE} is none: give {TOLERANCE}=all, with or without a dead "
            "letter queue",
        )


def user_obstacle(key: str, urls: Iterable[str], instead: str) -> Iterator[tuple[str, str]]:
    """Yield that an address has a user, whose place is in other keys.

    >>> [text for _, text in user_obstacle("url", ["http://app:x@host"], "give it in user")]
    ['Invalid value for configuration url: the address contains a user; give it in user']
    """
    if any(_USER.match(url) for url in urls):
        yield key, f"Invalid value for configuration {key}: the address contains a user; {instead}"


def renaming(pairs: list[str]) -> dict[str, str]:
    """Return new names of topics; raise ValueError where it is not topic:name.

    >>> renaming(["orders:shop", "b:c"])
    {'orders': 'shop', 'b': 'c'}
    """
    found = {}
    for pair in pairs:
        topic, _, name = (part.strip() for part in pair.partition(":"))
        if not _NAME.fullmatch(topic) or not _NAME.fullmatch(name):
            raise ValueError(f"{pair!r} is not topic:name")
        found[topic] = name
    return found


def renaming_step(names: Mapping[str, str], columns: tuple[str, ...]) -> dict[str, Any]:
    """Return the step that gives topics other names."""
    cases = " ".join(f"WHEN '{topic}' THEN '{name}'" for topic, name in names.items())
    topic = f"CASE topic {cases} ELSE topic END AS topic"
    return {"sql": " ".join(("SELECT", ", ".join((*columns, topic)), "FROM rows"))}
