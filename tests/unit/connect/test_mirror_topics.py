"""Which topics MirrorSource copies: names, or patterns, without those that are excluded."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.connect.connectors import CATALOG

MIRROR = {
    "name": "m",
    "connector.class": "MirrorSource",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "b:9092",
}


def source(**config: str) -> dict[str, Any]:
    given = {**MIRROR, **{key.replace("_", "."): value for key, value in config.items()}}
    kind = CATALOG.find(given["connector.class"])()
    made: dict[str, Any] = kind.pipeline(CATALOG.config(given))["source"]["mirror"]
    return made


def test_names_are_names() -> None:
    made = source(topics="orders,payments")
    assert made["topics"] == ["orders", "payments"]
    assert "pattern" not in made and "exclude" not in made


@pytest.mark.parametrize(
    ("topics", "exclude"), [("orders,payments", "pay.*"), ("orders,__secret", ""), ("a", "[")]
)
def test_what_is_excluded_is_not_copied_although_it_is_named(topics: str, exclude: str) -> None:
    made = source(topics=topics, **({"topics_exclude": exclude} if exclude else {}))
    assert "topics" not in made
    assert made["pattern"] == "|".join(f"(?:{each})" for each in topics.split(","))
    assert (exclude or "__.*") in made["exclude"]


def test_an_address_may_name_a_listener_as_in_kafka() -> None:
    made = source(source_cluster_bootstrap_servers="PLAINTEXT://b:9092,c:9092")
    assert made["cluster"] == {"bootstrap.servers": "b:9092,c:9092"}
