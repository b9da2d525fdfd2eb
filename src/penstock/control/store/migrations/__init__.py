"""Migrations of the store's schema, in one transaction each time: applied as a whole or not at all."""
