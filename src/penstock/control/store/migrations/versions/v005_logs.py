"""The table of logs. A copy of it as it is at this version: later changes are later migrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "005"
down_revision = "004"

METADATA = sa.MetaData()
LOGS = sa.Table(
    "penstock_logs",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("deployment", sa.String(200), nullable=False),
    sa.Column("worker", sa.String(200), nullable=False),
    sa.Column("level", sa.String(10), nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("fields", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False, server_default="0"),
    sa.Index("penstock_logs_deployment", "deployment", "number"),
    sa.Index("penstock_logs_worker", "worker", "deployment", "number"),
)
SEQUENCE = sa.table("penstock_sequence", sa.column("name"), sa.column("value"))


def upgrade() -> None:
    """Create the table, and the row that its numbers come from."""
    session = op.get_bind()
    METADATA.create_all(session)
    session.execute(SEQUENCE.insert().values(name="logs", value=0))
