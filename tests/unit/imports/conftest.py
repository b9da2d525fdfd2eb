"""An HTTP API for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.json_api import JsonApi


@pytest.fixture
def api() -> Iterator[JsonApi]:
    with JsonApi() as started:
        yield started
