"""The store of a test."""

from __future__ import annotations

import pytest

from penstock.control.store import ControlStore


@pytest.fixture
def store(control_store: ControlStore) -> ControlStore:
    return control_store
