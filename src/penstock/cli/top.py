"""`penstock top`: deployments with their throughput and lag, live."""

from __future__ import annotations

import re
import sys
import time
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Table

from penstock.api_client.server_client import ServerClient
from penstock.cli.deployment_commands import LabelFilter
from penstock.cli.deployment_table import short, state_of
from penstock.cli.options import JsonOption
from penstock.cli.output import messages, print_json, print_table
from penstock.cli.server_options import CaOption, ServerOption, client_of
from penstock.config.printable import printable
from penstock.errors import TransientError

COLUMNS = ("name", "state", "worker", "rows/s", "lag", "error")
_LAG = re.compile(
    r'^penstock_deployment_lag\{deployment="((?:[^"\\]|\\.)*)"\} (\S+)$', re.MULTILINE
)
_ESCAPE = re.compile(r"\\(.)")


def top(
    *,
    label: LabelFilter = None,
    every: Annotated[
        float, typer.Option(min=0.5, max=60, metavar="SECONDS", help="How often it is updated.")
    ] = 2.0,
    as_json: JsonOption = False,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Show deployments with rows per second and lag until Ctrl-C; into a pipe, once.

    For example: penstock top -l team=payments
    """
    with client_of(server, ca) as client:
        if as_json or not sys.stdout.isatty():
            rows = current(client, label)
            if as_json:
                return print_json(rows)
            return print_table(COLUMNS, [list(row.values()) for row in rows])
        return _live(client, label, every)


def current(client: ServerClient, label: list[str] | None) -> list[dict[str, Any]]:
    """Return the row of each deployment: two requests, however many there are."""
    lag = lags(client.text("/metrics"))
    return [
        {
            "name": each["name"],
            "state": state_of(each),
            "worker": each["run"]["worker"] if each["run"]["held"] else None,
            "rows/s": round(each["counters"]["rate"], 1) if each["run"]["held"] else 0.0,
            "lag": lag.get(each["name"]),
            "error": short(each["run"]["error"] or each["counters"]["last_error"]),
        }
        for each in client.items("/deployments", label=label)
    ]


def lags(metrics: str) -> dict[str, int]:
    r"""Return the lag of each deployment from the text of /metrics.

    >>> lags('penstock_deployment_lag{deployment="a\\"b"} 7.0\n')
    {'a"b': 7}
    """
    return {_ESCAPE.sub(_plain, name): int(float(value)) for name, value in _LAG.findall(metrics)}


def _plain(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _live(client: ServerClient, label: list[str] | None, every: float) -> None:
    console = messages()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                table = _table(current(client, label))
            except TransientError as error:
                table = Table(title=printable(str(error)), box=None)
            live.update(table, refresh=True)
            time.sleep(every)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in ("rows/s", "lag") else "left")
    for row in rows:
        table.add_row(*("" if each is None else _cell(each) for each in row.values()))
    return table


def _cell(value: Any) -> Any:
    from rich.text import Text  # noqa: PLC0415 - text of others is not markup

    return Text(printable(str(value)))
