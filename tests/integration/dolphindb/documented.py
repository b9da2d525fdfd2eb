"""Marks for tests: which function or error of the DolphinDB plugin's documentation a test shows.

tests/contract/test_dolphindb_functions.py reads them from the files and fails where one is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def documented(*names: str) -> Callable[[Test], Test]:
    """The test shows what these functions do."""
    return lambda test: test


def documented_error(*names: str) -> Callable[[Test], Test]:
    """The test shows these errors."""
    return lambda test: test
