"""`make bench`: every case against its raw counterpart in one run. ARGS="--rows 1000000 throughput".

Not among the default cases, as they take long and some need peers or a PostgreSQL: ARGS=sinks, ARGS=jobs,
ARGS=formats, ARGS=latency, ARGS=files-source, ARGS="growth --grow backlog pipelines".
"""

from __future__ import annotations

import argparse
import signal

from bench import client, growth, latency, memory, startup, throughput
from bench.harness import Result, report
from penstock import Broker
from penstock.engine import stop_session

SINKS = ("parquet", "json", "lines", "delta", "iceberg", "postgresql", "kafka")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...")
    parser.add_argument("cases", nargs="*", default=["client", "throughput", "startup", "memory"])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sinks", nargs="+", choices=SINKS, default=SINKS, metavar="SINK")
    parser.add_argument(
        "--grow", nargs="+", choices=growth.DIMENSIONS, default=growth.DIMENSIONS, metavar="WHAT"
    )
    given = parser.parse_args()
    for end in (signal.SIGINT, signal.SIGTERM):  # both leave by the same door, past every clean-up
        signal.signal(end, signal.default_int_handler)
    results = (
        _plain(given)
        if set(given.cases) - {"sinks", "jobs", "formats", "latency", "growth", "files-source"}
        else []
    )
    if "sinks" in given.cases:
        results += _sinks(given)
    if "jobs" in given.cases:
        results += _jobs(given)
    if "formats" in given.cases:
        results += _formats(given)
    if "latency" in given.cases:
        results += latency.run()
    if "files-source" in given.cases:
        results += _files_source(given)
    if "growth" in given.cases:
        growth.run(given.grow)
    if results:
        report(results)


def _sinks(given: argparse.Namespace) -> list[Result]:
    # Only here: the peers need what the other cases do not.
    from bench import sinks

    try:
        return sinks.run(given.rows, given.rounds, given.sinks)
    finally:
        stop_session()


def _jobs(given: argparse.Namespace) -> list[Result]:
    from bench import jobs

    try:
        return jobs.run(given.rows, given.rounds)
    finally:
        stop_session()


def _formats(given: argparse.Namespace) -> list[Result]:
    from bench import format_decodes

    with Broker() as broker:
        try:
            return format_decodes.run(broker.connection, given.rows, given.rounds)
        finally:
            stop_session()


def _files_source(given: argparse.Namespace) -> list[Result]:
    from bench import files_source

    with Broker() as broker:
        try:
            return files_source.run(broker.connection, given.rows, given.rounds)
        finally:
            stop_session()


def _plain(given: argparse.Namespace) -> list[Result]:
    results: list[Result] = []
    with Broker() as broker:
        if "client" in given.cases:
            results += client.run(broker.connection, given.rows // 3, given.rounds)
        if "throughput" in given.cases:
            results += throughput.run(broker.connection, given.rows, given.rounds)
            stop_session()
        if "startup" in given.cases:
            results.append(startup.run(broker.connection, given.rounds))
        if "memory" in given.cases:
            memory.run(broker.connection, small=given.rows // 3, factor=10)
    return results


if __name__ == "__main__":
    main()
