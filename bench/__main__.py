"""`make bench`: every case against its raw counterpart in one run. ARGS="--rows 1000000 throughput".

The cases that are not among the default ones take long, and some need peers or another server:
ARGS="database-source --rows 2000000", ARGS="growth --grow backlog pipelines".
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable
from importlib import import_module

from bench import growth, memory, startup
from bench.harness import Result, report
from penstock import Broker
from penstock.engine import stop_session

SINKS = ("parquet", "json", "lines", "delta", "iceberg", "postgresql", "kafka")
DEFAULT = ["client", "throughput", "startup", "memory"]
Case = Callable[[argparse.Namespace], "list[Result]"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...")
    parser.add_argument(
        "cases", nargs="*", default=DEFAULT, metavar="CASE", help=f"of {', '.join(CASES)}"
    )
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sinks", nargs="+", choices=SINKS, default=SINKS, metavar="SINK")
    parser.add_argument(
        "--grow", nargs="+", choices=growth.DIMENSIONS, default=growth.DIMENSIONS, metavar="WHAT"
    )
    given = parser.parse_args()
    if unknown := [case for case in given.cases if case not in CASES]:
        parser.error(f"there is no case {unknown[0]!r}; cases: {', '.join(CASES)}")
    for end in (signal.SIGINT, signal.SIGTERM):  # both leave by the same door, past every clean-up
        signal.signal(end, signal.default_int_handler)
    results: list[Result] = []
    for case in given.cases:
        try:
            results += CASES[case](given)
        finally:
            stop_session()
    if results:
        report(results)


def _alone(module: str) -> Case:
    """Return a case that starts what it needs. Only now: some peers are needed by nothing else."""
    return lambda given: import_module(f"bench.{module}").run(given.rows, given.rounds)  # type: ignore[no-any-return]


def _with_broker(module: str, run: str = "run", share: int = 1) -> Case:
    """Return a case that is given a broker, and its share of the rows."""

    def case(given: argparse.Namespace) -> list[Result]:
        function = getattr(import_module(f"bench.{module}"), run)
        with Broker() as broker:
            return function(broker.connection, given.rows // share, given.rounds)  # type: ignore[no-any-return]

    return case


def _sinks(given: argparse.Namespace) -> list[Result]:
    from bench import sinks

    return sinks.run(given.rows, given.rounds, given.sinks)


def _startup(given: argparse.Namespace) -> list[Result]:
    with Broker() as broker:
        return [startup.run(broker.connection, given.rounds)]


def _memory(given: argparse.Namespace) -> list[Result]:
    with Broker() as broker:
        memory.run(broker.connection, small=given.rows // 3, factor=10)
    return []


def _latency(_given: argparse.Namespace) -> list[Result]:
    from bench import latency

    return latency.run()


def _growth(given: argparse.Namespace) -> list[Result]:
    growth.run(given.grow)
    return []


CASES: dict[str, Case] = {
    "client": _with_broker("client", share=3),
    "throughput": _with_broker("throughput"),
    "startup": _startup,
    "memory": _memory,
    "sinks": _sinks,
    "connectors": _alone("connectors"),
    "jobs": _alone("jobs"),
    "formats": _with_broker("format_decodes"),
    "latency": _latency,
    "growth": _growth,
    "database-source": _alone("database_source"),
    "files-source": _with_broker("files_source"),
    "mirror": _alone("mirror"),
    "rabbitmq": _alone("rabbitmq"),
    "flows": _alone("flows"),
    "search": _with_broker("outlets", "run_search", share=10),
    "http": _with_broker("outlets", "run_http", share=10),
    "flow-listener": _with_broker("flow_listener"),
    "takeover": _with_broker("takeover"),
    "fleet": _with_broker("takeover", "fleet"),
}


if __name__ == "__main__":
    main()
