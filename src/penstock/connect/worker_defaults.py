"""What connectors get from their worker: the cluster, converters, and the providers of references.

A server and its workers read it from the same property file, whose path is in one environment variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.config import Connection, find_connection
from penstock.connect.common_keys import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from penstock.connect.config_providers import USUAL, resolved

CONNECT_WORKER = "PENSTOCK_CONNECT_WORKER"
"""The variable with the path of a worker's property file: its cluster and converters are the defaults."""
CONVERTERS = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)


@dataclass(frozen=True)
class WorkerDefaults:
    """The defaults of connectors; without any they use the default connection and StringConverter."""

    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    converters: Mapping[str, str] = field(default_factory=dict, repr=False)
    providers: Mapping[str, str] = field(default_factory=lambda: dict(USUAL))

    def completed(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration with the worker's converters where it names none of its own.

        >>> worker = WorkerDefaults(converters={"value.converter": "Json", "value.converter.a": "1"})
        >>> worker.completed({"value.converter": "String"})
        {'value.converter': 'String'}
        >>> worker.completed({"name": "x"})
        {'name': 'x', 'value.converter': 'Json', 'value.converter.a': '1'}
        """
        made = dict(config)
        for key in CONVERTERS:
            if not config.get(key) and self.converters.get(key):
                # As in Connect: keys of a converter count only next to its class.
                own = {name for name in made if name == key or name.startswith(f"{key}.")}
                made = {name: value for name, value in made.items() if name not in own}
                made |= {
                    name: value
                    for name, value in self.converters.items()
                    if name == key or name.startswith(f"{key}.")
                }
        return made

    def readable(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration as a connector is started with it: completed, with its secrets."""
        return resolved(self.completed(config), self.providers)

    def placed(self, definition: dict[str, Any]) -> dict[str, Any]:
        """Return the definition of a pipeline on the worker's cluster, unless it names one."""
        if not self.connection or "connection" in definition:
            return definition
        return {**definition, "connection": self.find_connection()}

    def find_connection(self) -> Connection:
        """Return the cluster that connectors work with."""
        if self.connection:
            return Connection.from_config(self.connection)
        return find_connection(None)
