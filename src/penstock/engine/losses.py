"""Records that Kafka removed before they were read: who lost how many, and how that is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import DataLossError
from penstock.pipeline import Offsets, Partition

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Spark's name for the number of offsets that a task had to pass over because Kafka had them no more.
_PASSED_OVER = "offsetOutOfRange"


class Loss(NamedTuple):
    """What one partition lost. `oldest` is None where the topic itself is gone."""

    partition: Partition
    stood: int
    oldest: int | None
    records: int

    def __str__(self) -> str:
        """Tell it.

        >>> print(Loss(("t", 0), 3, 8, 5))
        t-0: the pipeline stood at offset 3 and the oldest record is 8: 5 records were removed before \
they were read
        >>> print(Loss(("t", 0), 3, None, 1))
        t-0: the pipeline stood at offset 3 when the topic was deleted: 1 record was removed before it \
was read
        """
        now = "when the topic was deleted" if self.oldest is None else self._oldest()
        were = (
            "record was removed before it was"
            if self.records == 1
            else "records were removed before they were"
        )
        return (
            f"{self.partition[0]}-{self.partition[1]}: the pipeline stood at offset {self.stood} {now}: "
            f"{self.records} {were} read"
        )

    def _oldest(self) -> str:
        return f"and the oldest record is {self.oldest}"


def below(stood: Offsets, oldest: Mapping[Partition, int]) -> list[Loss]:
    """Return what is gone for a reader that stands at these offsets.

    >>> [loss.records for loss in below({("t", 0): 3, ("t", 1): 4}, {("t", 0): 8, ("t", 1): 4})]
    [5]
    """
    return [
        Loss(partition, at, oldest[partition], oldest[partition] - at)
        for partition, at in stood.items()
        if partition in oldest and at < oldest[partition]
    ]


def at_most(losses: Iterable[Loss], records: int) -> list[Loss]:
    """Return the losses, cut down until they are so many records together.

    >>> first, second = Loss(("t", 0), 0, 5, 5), Loss(("t", 1), 0, 5, 5)
    >>> [loss.records for loss in at_most([first, second], 7)]
    [5, 2]
    """
    kept = []
    for loss in losses:
        if part := min(loss.records, records):
            kept.append(loss._replace(records=part))
            records -= part
    return kept


def total(losses: Iterable[Loss]) -> int:
    """Return how many records are gone."""
    return sum(loss.records for loss in losses)


def told(losses: list[Loss]) -> str:
    """Tell the greatest loss, and how much there is beside it.

    >>> told([Loss(("t", 0), 0, 1, 1), Loss(("t", 1), 0, 5, 5)]).partition("; ")[2]
    '1 more in 1 other partition'
    """
    greatest, *others = sorted(losses, key=lambda loss: -loss.records)
    if not others:
        return str(greatest)
    plural = "s" if len(others) > 1 else ""
    return f"{greatest}; {total(others)} more in {len(others)} other partition{plural}"


def counted(losses: list[Loss]) -> tuple[int, str | None]:
    """Return how many records are gone, and how that is told; None where none are."""
    return total(losses), told(losses) if losses else None


def refusal_of(losses: list[Loss], group: str) -> DataLossError:
    """Return the error of a pipeline that may not go on without them."""
    return DataLossError(
        f"{told(losses)}; to go on without them give the source 'on_data_loss: skip', or reset the "
        f"group's offsets to earliest: penstock groups reset {group} --to earliest"
    )


def passed_over(query: StreamingQuery) -> int:
    """Return how many offsets the batch that is under way had to pass over, by Spark's own count.

    Only the tasks know it: what they had fetched ahead is read, though Kafka has it no more.
    """
    running: Any = query._jsq.streamingQuery()
    leaves = running.lastExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(index).metrics() for index in range(leaves.size())]
    return sum(int(m.apply(_PASSED_OVER).value()) for m in metrics if m.contains(_PASSED_OVER))
