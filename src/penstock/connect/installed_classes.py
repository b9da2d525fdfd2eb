"""Classes of connectors in other packages: found by the entry-point group `penstock.connectors`."""

from __future__ import annotations

from importlib.metadata import entry_points

from penstock.config.logs import event_logger
from penstock.connect.connector_class import ConnectorClass

GROUP = "penstock.connectors"
log = event_logger(__name__)


def installed_classes() -> tuple[type[ConnectorClass], ...]:
    """Return the classes of other packages; one that cannot be loaded is logged, and left out."""
    found = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded = entry.load()
        except Exception as error:  # whatever a package of others does when it is imported
            log.warning(
                "connector_not_loaded", connector=entry.name, where=entry.value, reason=str(error)
            )
            continue
        if isinstance(loaded, type) and issubclass(loaded, ConnectorClass):
            found.append(loaded)
        else:
            log.warning(
                "connector_not_loaded", connector=entry.name, where=entry.value, reason=_WRONG
            )
    return tuple(found)


_WRONG = "it is not a class of connectors: a subclass of penstock.connect.ConnectorClass"
