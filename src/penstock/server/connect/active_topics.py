"""The topics that a connector has used since they were reset: those it names, after a record."""

from __future__ import annotations

from penstock.control.store import ControlStore
from penstock.control.store.events import MOST_EVENTS
from penstock.server.connect.connector_store import Connector
from penstock.server.connect.connector_views import topics

_RESET = "topics_reset"


def active_topics(store: ControlStore, connector: Connector) -> list[str]:
    """Return the topics that a connector names, or whose lag its worker reports; none before a record."""
    name = connector.row.name
    counted = store.counters.get(name)
    if not counted.records or (counted.last_batch or 0.0) <= _last_reset(store, name):
        return []
    lags = store.partition_lag.all().get(name, {})
    return sorted({*topics(connector)} or {topic for topic, _ in lags if topic})


def topics_reset(store: ControlStore, connector: Connector, by: str) -> None:
    """Forget what a connector has used so far."""
    store.events.add(connector.row.name, _RESET, f"the topics were reset by {by}")


def _last_reset(store: ControlStore, name: str) -> float:
    events = store.events.newest(MOST_EVENTS, deployment=name)
    return max((each.at for each in events if each.kind == _RESET), default=0.0)
