"""From the configuration of a connector to the definition of its pipeline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.config import resolve_references
from penstock.connect.common_keys import CONNECTOR_CLASS
from penstock.connect.connector_class import Catalog
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.converters import WORKER_CONVERTERS, for_connector
from penstock.connect.error_handling import error_handling
from penstock.connect.sink_pipeline import sink_pipeline
from penstock.connect.source_pipeline import source_pipeline
from penstock.connect.transforms.configured_chain import configured_chain

# Others, as ${topic}, are those of connectors and transforms.
_REFERENCE = re.compile(r"\$\{(?:env|file):[^}]*\}")


def definition_of(
    pipeline: str,
    connector: str,
    given: Mapping[str, str],
    catalog: Catalog,
    worker: Mapping[str, str] = WORKER_CONVERTERS,
) -> dict[str, Any]:
    """Return the definition of the pipeline that a connector runs as: options of `Pipeline`.

    `worker` has the converters of connectors that name none.

    >>> from penstock.connect.connectors import CATALOG
    >>> sink = {"connector.class": "FileStreamSink", "topics": "a,b", "file": "/tmp/out"}
    >>> made = definition_of("out", "out", {"name": "out", **sink}, CATALOG)
    >>> made["group"], made["source"], made["dead_letters"].tolerance
    ('connect-out', {'kafka': {'topics': ['a', 'b']}}, 'none')
    """
    given = with_references(given)
    kind = catalog.find(given[CONNECTOR_CLASS])
    config = ConnectorConfig(given, kind.definition())
    converters = for_connector(given, worker)
    chain = configured_chain(given)
    made = (
        source_pipeline(pipeline, kind, config, converters, chain)
        if kind.kind == "source"
        else sink_pipeline(connector, kind, config, converters, chain)
    )
    errors = error_handling(connector, kind, config, converters, chain)
    return {"name": pipeline, **errors, **made}


def with_references(given: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration with the values of its references to variables and files.

    >>> with_references({"a": "${env:PENSTOCK_NO_SUCH:-x} ${topic}"})
    {'a': 'x ${topic}'}
    """
    return {
        key: _REFERENCE.sub(lambda found, key=key: _value(key, found[0]), text)  # type: ignore[misc]
        for key, text in given.items()
    }


def _value(key: str, reference: str) -> str:
    return str(resolve_references({key: reference})[key])
