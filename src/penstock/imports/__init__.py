"""Sources that are not Kafka: their records are imported into topics, on Spark, in rounds.

One folder a system; around them the positions topic, the task that reads a part, and the rounds. The
names are loaded when they are first used: who only reads a definition needs no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy_imports import loads_late

if TYPE_CHECKING:
    from penstock.imports.import_running import ImportRunning as ImportRunning
    from penstock.imports.import_running import start as start

_PLACES = {"ImportRunning": "import_running", "start": "import_running"}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
