"""The table of replays of dead letters. A copy of it as it is at this version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "007"
down_revision = "006"

METADATA = sa.MetaData()
REPLAYS = sa.Table(
    "penstock_replays",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("deployment", sa.String(200), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("wanted", sa.Text, nullable=False),
    sa.Column("value", sa.Text),
    sa.Column("at", sa.Double, nullable=False, server_default="0"),
    sa.Column("by", sa.String(200), nullable=False, server_default=""),
    sa.Column("worker", sa.String(200), nullable=False, server_default=""),
    sa.Column("attempts", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("started", sa.Double),
    sa.Column("ended", sa.Double),
    sa.Column("outcome", sa.Text),
    sa.Column("error", sa.Text),
    sa.Index("penstock_replays_deployment", "deployment", "number"),
    sa.Index("penstock_replays_state", "state"),
)


def upgrade() -> None:
    """Create the table."""
    METADATA.create_all(op.get_bind())
