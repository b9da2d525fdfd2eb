"""Records in the topic between that wait for steps which the pipeline of an import no longer has."""

from __future__ import annotations

from penstock.errors import ConfigError
from penstock.kafka import Admin, Consumer
from penstock.kafka.consuming.loops import read_span
from penstock.pipeline import Pipeline
from penstock.pipeline.derived_names import imported_into


def require_processed(pipeline: Pipeline) -> None:
    """Refuse an import alone while records wait that steps of an earlier definition have not processed.

    Their positions are committed: neither the import nor anything else would read them again.
    """
    own, connection = imported_into(pipeline.name), pipeline.find_connection()
    with Admin(connection) as admin:
        names = [each.name for each in admin.topics()]
        between = [name for name in names if name == own or name.startswith(f"{own}.")]
        places = admin.partitions(between) if between else []
        committed = admin.committed(pipeline.group_id, places) if places else {}
        oldest, ends = admin.earliest(committed), admin.latest(committed)
    begins = {place: max(offset, oldest[place]) for place, offset in committed.items()}
    left = {place: offset for place, offset in begins.items() if offset < ends[place]}
    if not left:
        return
    with Consumer(connection) as consumer:
        # What is between may be marks of transactions alone.
        for records in read_span(consumer, left, ends, max_records=1):
            if records:
                raise ConfigError(
                    f"the topic {records[0].topic!r} has records that the transforms or steps of "
                    f"{pipeline.name!r} have not processed, and without any they would be lost: give it "
                    "the former ones until its lag is 0, or delete the topic to drop these records"
                )
