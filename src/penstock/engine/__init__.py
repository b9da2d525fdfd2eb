"""Spark: the session, the batch loop, delivery, dead letters, progress."""

from penstock.engine.attempt import sink_schema
from penstock.engine.progress import Done, Progress, State
from penstock.engine.running import Running, start
from penstock.engine.session import session_log, spark_session, stop_session

__all__ = [
    "Done",
    "Progress",
    "Running",
    "State",
    "session_log",
    "sink_schema",
    "spark_session",
    "start",
    "stop_session",
]
