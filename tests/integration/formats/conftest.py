"""One real schema registry for all tests here; each test has topics and subjects of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.embedded import SchemaRegistry
from penstock.formats.registry import Registry


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as started:
        yield started


@pytest.fixture(scope="session")
def registry(schema_registry: SchemaRegistry) -> Registry:
    return Registry(schema_registry.url, timeout=30)
