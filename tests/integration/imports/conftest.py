"""Fixtures of the tests of imports."""

from tests.integration.imports.database_target import place

__all__ = ["place"]
