"""The store of the control plane, in SQLite or PostgreSQL."""

from __future__ import annotations

from penstock.control.store.control_store import ControlStore, View, Wanted
from penstock.control.store.database import Database

__all__ = ["ControlStore", "Database", "View", "Wanted"]
