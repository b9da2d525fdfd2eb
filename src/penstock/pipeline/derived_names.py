"""Names that are derived from a pipeline's name, and names that no pipeline can have because of them."""

from __future__ import annotations

import re

# `NAME.sink`: the group in which the sink `kafka` commits its marks; its transactions begin with it, too.
# `NAME.dead-letters`: the topic of dead letters, and the name of their marks in any sink.
# Not reserved: `NAME.in`, the topic of an import, and `NAME.import`, with which its transactions begin.
_DERIVED = re.compile(r"(?P<pipeline>.+?)\.(?:sink|dead-letters)(?:\..*)?")

# The property of Spark in which the tasks of a batch find its epoch and its number.
TASK_BATCH = "penstock.batch"


def imported_into(pipeline: str) -> str:
    """Return the topic between an import and the steps of its pipeline.

    >>> imported_into("orders")
    'orders.in'
    """
    return f"{pipeline}.in"


def dead_letters_of(pipeline: str) -> str:
    """Return the name under which a pipeline's dead letters are written, with separate marks.

    >>> dead_letters_of("orders")
    'orders.dead-letters'
    """
    return f"{pipeline}.dead-letters"


def reserved_by(name: str) -> str | None:
    """Return the pipeline from whose name this one is derived; None where the name is free.

    >>> reserved_by("orders.sink"), reserved_by("orders.dead-letters.sink"), reserved_by("sink.orders")
    ('orders', 'orders', None)
    """
    match = _DERIVED.fullmatch(name)
    return match["pipeline"] if match else None
