"""One Java process with Connect's own converters for the tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services.connect_converters import Converters, running_converters


@pytest.fixture(scope="session")
def java() -> Iterator[Converters]:
    with running_converters() as started:
        yield started
