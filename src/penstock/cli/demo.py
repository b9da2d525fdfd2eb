"""`penstock demo`: a broker, generated trades, a pipeline into a Parquet table, and the result."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import orjson
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.jar_progress import fetch_shown
from penstock.cli.live_progress import summary, watch
from penstock.cli.output import say
from penstock.config import Connection
from penstock.config.directories import data_dir
from penstock.embedded import Broker, jars
from penstock.engine import Running, start, stop_session
from penstock.kafka import Admin, Producer
from penstock.pipeline import read_pipeline

TOPIC = "trades"
SYMBOLS = {"AAPL": 227.0, "MSFT": 415.0, "NVDA": 138.0, "TSLA": 321.0, "AMZN": 202.0}

_DEFINITION = """\
name: demo
connection: {{bootstrap.servers: "{brokers}"}}
source:
  kafka: {{topics: trades}}
decode:
  json:
    schema: symbol string not null, price double not null, size int not null, at timestamp
steps:
  - sql: SELECT *, round(price * size, 2) AS amount FROM rows
sink:
  files: {{path: "{table}"}}
dead_letters: trades.dead-letters
state: "{state}"
"""


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long to stream.")] = 10.0,
    rate: Annotated[int, typer.Option(min=1, help="Trades per second.")] = 5000,
) -> None:
    """Start a broker, stream generated trades into a Parquet table, and show the table."""
    folder = data_dir() / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fetch_shown(("broker", *jars.SPARK_GROUPS))
    say("1/4  starting a Kafka broker (Apache Kafka, in a separate process)")
    with Broker() as broker:
        _stream(broker, folder, seconds, rate)
    say(_NEXT.format(table=folder / "table", definition=folder / "demo.yaml"))


def _stream(broker: Broker, folder: Path, seconds: float, rate: int) -> None:
    definition = folder / "demo.yaml"
    definition.write_text(
        _DEFINITION.format(
            brokers=broker.bootstrap_servers, table=folder / "table", state=folder / "state"
        )
    )
    with Admin(broker.connection) as admin:
        admin.create_topic(TOPIC, 2)
        try:
            _run(definition, broker.connection, seconds, rate)
        finally:
            stop_session()
        _show_table(folder / "table")
        _show_lag(admin)


def _run(definition: Path, connection: Connection, seconds: float, rate: int) -> None:
    say(f"2/4  starting the pipeline {definition} on Spark")
    with start(read_pipeline(definition)) as running:
        say(f"3/4  producing {rate:,} trades per second into the topic {TOPIC!r}")
        with _trades(connection, rate):
            watch(running, until=_for_seconds(running, seconds))
        watch(running, until=lambda: running.refresh_lag().total_lag == 0)
    say(f"     {summary(running.progress())}")


def _for_seconds(running: Running, seconds: float) -> Callable[[], bool]:
    """Return a clock that starts with the first batch, when there is something to see."""
    began: list[float] = []

    def over() -> bool:
        if not began and running.progress().batches:
            began.append(time.monotonic())
        return bool(began) and time.monotonic() - began[0] >= seconds

    return over


@contextmanager
def _trades(connection: Connection, rate: int) -> Iterator[None]:
    """Produce trades in the background until the block ends; then all of them are in the topic."""
    stop = Event()

    def make() -> None:
        with Producer(connection) as producer:
            while not stop.wait(0.1):
                for _ in range(rate // 10):
                    producer.produce(TOPIC, *_trade())

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def _trade() -> tuple[bytes, bytes]:
    symbol = random.choice(list(SYMBOLS))  # noqa: S311
    price = round(random.gauss(SYMBOLS[symbol], 1.5), 2)
    trade = {
        "symbol": symbol,
        "price": price,
        "size": random.randint(1, 500),  # noqa: S311
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    return symbol.encode(), orjson.dumps(trade)


def _show_table(folder: Path) -> None:
    table = ds.dataset(folder, format="parquet")
    say(f"4/4  the table {folder}: {table.count_rows():,} rows; the first of them:")
    _print(table.head(5).to_pylist())
    trades = pq.read_table(folder, columns=["symbol", "size", "amount"])
    totals = trades.group_by("symbol").aggregate(
        [("symbol", "count"), ("size", "sum"), ("amount", "sum")]
    )
    say("     and per symbol:")
    _print(
        {
            "symbol": row["symbol"],
            "trades": f"{row['symbol_count']:,}",
            "shares": f"{row['size_sum']:,}",
            "amount": f"{row['amount_sum']:,.2f}",
        }
        for row in totals.sort_by("symbol").to_pylist()
    )


def _show_lag(admin: Admin) -> None:
    group = admin.describe_group("demo")
    say(f"     the consumer group {group.name!r} as Kafka sees it: lag {group.lag}")
    columns = ("topic", "partition", "committed", "end", "lag")
    _print({name: getattr(position, name) for name in columns} for position in group.positions)


def _print(rows: Iterable[dict[str, object]]) -> None:
    listed = list(rows)
    table = Table(*listed[0], box=None, pad_edge=False, header_style="bold")
    for row in listed:
        table.add_row(*map(str, row.values()))
    Console(highlight=False).print(table)


_NEXT = """
What to try next
  penstock broker start --detach      a broker that keeps running
  penstock topics create trades       then: penstock produce trades, penstock consume trades
  penstock check {definition}
                                      change the definition and check it
  penstock run FILE                   run it; Ctrl-C stops it, the next run resumes
  python -c "import pyarrow.parquet as pq; print(pq.read_table('{table}').to_pandas())"
"""
