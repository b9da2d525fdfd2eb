"""Columns and tables for metrics: batch durations, lag of partitions, restart reasons, workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "004"
down_revision = "003"

METADATA = sa.MetaData()
NAME = sa.String(200)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def _real(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False, server_default="0")


def _columns() -> dict[str, list[sa.Column[int] | sa.Column[float]]]:
    heap: list[sa.Column[int]] = [
        sa.Column(name, sa.BigInteger) for name in ("heap_used", "heap_max")
    ]
    return {
        "penstock_counters": [_real("seconds"), *(_number(f"took_{n}") for n in range(11))],
        "penstock_runs": [_number("takeovers")],
        "penstock_workers": [
            _number("renewals"), *heap, _number("memory"), _real("cpu_seconds"), _number("queries"),
        ],
    }  # fmt: skip


PARTITION_LAG = sa.Table(
    "penstock_partition_lag",
    METADATA,
    sa.Column("deployment", NAME, primary_key=True),
    sa.Column("lag", sa.Text, nullable=False),
    _real("at"),
)
RESTARTS = sa.Table(
    "penstock_restarts",
    METADATA,
    sa.Column("deployment", NAME, primary_key=True),
    sa.Column("reason", sa.String(40), primary_key=True),
    _number("count"),
)


def upgrade() -> None:
    """Add the columns and tables; what was counted before remains."""
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    METADATA.create_all(op.get_bind())
