"""Steps `sql` on a server: what a query may take, and what its values are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.services.postgres import PASSWORD

from penstock.flows.error_codes import Fault
from penstock.flows.live.databases import Databases


def options(server: Any, password: str, timeout: float) -> SimpleNamespace:
    secret = SimpleNamespace(get_secret_value=lambda: password)
    return SimpleNamespace(database=server.url, password=secret, most=10, timeout=timeout)


def check(server: Any, password: str, sleep: str, numbers: str) -> None:
    databases = Databases()
    try:
        with pytest.raises(Fault) as late:
            databases.query("step", options(server, password, 0.2), sleep, {})
        (row,) = databases.query("step", options(server, password, 60), numbers, {"a": 7})
    finally:
        databases.close()
    assert late.value.code == "CORE:TIMEOUT"
    assert row == {"t": "at :b 100%", "n": 1.5, "a": 7, "d": "2024-05-01"}


def test_postgresql_ends_a_query_and_gives_values_of_json(postgres: Any) -> None:
    numbers = (
        "SELECT 'at :b 100%' AS t, 1.50::numeric AS n, CAST(:a AS integer) AS a, "
        "DATE '2024-05-01' AS d"
    )
    check(postgres, PASSWORD, "SELECT pg_sleep(60)", numbers)
