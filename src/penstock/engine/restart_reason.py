"""Why a run was started again: a small closed set, for counters with a label for each reason."""

from __future__ import annotations

from enum import Enum

from penstock.engine.topic_watcher import MovedError
from penstock.errors import PenstockError, PipelineFailedError, SchemaChangedError, TransientError
from penstock.pipeline.definition import Restart


class RestartReason(str, Enum):
    """The reasons; the last five are those of the control plane."""

    UNAVAILABLE = "unavailable"  # Kafka, the sink's system or the store did not answer
    JAVA_DIED = "java_died"
    TOPICS_CHANGED = "topics_changed"  # or a table that is joined with was to be read again
    SCHEMA_CHANGED = "schema_changed"
    FAILED = "failed"  # anything else: the error is in the events
    CHANGED = "changed"  # another generation of the definition
    REQUESTED = "requested"
    DRAINED = "drained"  # its worker was drained
    BALANCED = "balanced"  # it moved to a worker with less to do
    WORKER_LOST = "worker_lost"  # its worker did not renew the lease


class JavaDiedError(PipelineFailedError):
    """The Java process of Spark ended while a pipeline ran in it."""


class ContendedError(TransientError):
    """Another process noted a batch of this epoch at the same moment; the state says how to go on.

    A process that was suspended has noted one when it wakes up, before it sees that it was taken over
    from. The one that took over starts again with that batch; the other finds that it is not the latest.
    """


def restart_reason(error: PenstockError) -> RestartReason:
    """Return the reason that an error of a pipeline is counted as.

    >>> restart_reason(TransientError("no broker answers")).value
    'unavailable'
    >>> restart_reason(PipelineFailedError("no column 'n'")).value
    'failed'
    """
    for kind, reason in _KINDS.items():
        if isinstance(error, kind):
            return reason
    return RestartReason.FAILED


_KINDS = {
    MovedError: RestartReason.TOPICS_CHANGED,
    SchemaChangedError: RestartReason.SCHEMA_CHANGED,
    JavaDiedError: RestartReason.JAVA_DIED,
    ContendedError: RestartReason.WORKER_LOST,
    TransientError: RestartReason.UNAVAILABLE,
}


def most_failures(error: PenstockError, restart: Restart) -> int:
    """Return how many failures in a row are followed by a restart.

    Java that dies takes every pipeline of its process with it, which says nothing about one of them:
    those that failures do not restart, as most connectors, are restarted after this one as others are.

    >>> none = Restart(limit=0)
    >>> most_failures(PipelineFailedError("no column 'n'"), none)
    0
    >>> most_failures(JavaDiedError("killed by signal 9"), none)
    5
    """
    return (
        max(restart.limit, Restart().limit) if isinstance(error, JavaDiedError) else restart.limit
    )
