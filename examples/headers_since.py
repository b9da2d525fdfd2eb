"""Records as they are, with their headers, from a point in time on: for looking into a topic.

The point in time counts at the first start. Later runs go on where the group stands.
"""

import sys

import penstock

SELECT = """
    SELECT timestamp, CAST(key AS string) AS key, CAST(value AS string) AS value,
           CAST(get(filter(headers, h -> h.key = 'trace'), 0).value AS string) AS trace
    FROM rows
"""


def events_since(moment: str, sink: object = "console") -> penstock.Progress:
    """Send every event at or after a moment (ISO-8601) to a sink, with the trace from its headers."""
    pipeline = penstock.Pipeline(
        name="headers-since",
        source={"kafka": {"topics": "events", "headers": True, "start": {"timestamp": moment}}},
        decode="raw",
        steps=[{"sql": SELECT}],
        sink=sink,
        state="out/state",
    )
    with penstock.start(pipeline, once=True) as running:
        running.wait()
        return running.progress()


if __name__ == "__main__":
    done = events_since(sys.argv[1] if len(sys.argv) > 1 else "1970-01-01")
    print(f"{done.records} records, lag {done.total_lag}")
