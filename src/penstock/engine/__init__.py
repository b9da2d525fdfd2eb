"""Spark: the session, the batch loop, delivery, dead letters, progress.

The names are loaded when they are first used: who only looks at a progress needs no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lazy_imports import loads_late

if TYPE_CHECKING:
    from penstock.engine.progress import Done as Done
    from penstock.engine.progress import Progress as Progress
    from penstock.engine.progress import State as State
    from penstock.engine.running import Running as Running
    from penstock.engine.running import start as start
    from penstock.engine.session import session_log as session_log
    from penstock.engine.session import spark_session as spark_session
    from penstock.engine.session import stop_session as stop_session
    from penstock.engine.stream import sink_schema as sink_schema

_PLACES = {
    "Done": "progress",
    "Progress": "progress",
    "Running": "running",
    "State": "progress",
    "session_log": "session",
    "sink_schema": "stream",
    "spark_session": "session",
    "start": "running",
    "stop_session": "session",
}
__all__ = [*_PLACES]  # noqa: PLE0604
__getattr__ = loads_late(__name__, _PLACES)
