"""The store of jobs, as releases before the control plane created it without any version.

It completes a store that exists: columns may be missing in an older one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "001"
down_revision = None

METADATA = sa.MetaData()
JOBS = sa.Table(
    "penstock_jobs",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("id", sa.String(40), nullable=False),
    sa.Column("user", sa.String(100), nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("batches", sa.BigInteger, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("failed", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Column("last_failed", sa.Double),
    sa.Column("last_batch", sa.Double),
    sa.Column("rate", sa.Double, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("lag", sa.BigInteger, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("host", sa.String(255), nullable=False, server_default=""),
    sa.Column("pid", sa.Integer, nullable=False, server_default="0"),
    sa.Column("owner", sa.String(200), nullable=False, server_default=""),
)
EVENTS = sa.Table(
    "penstock_job_events",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(200), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)


def upgrade() -> None:
    """Create the tables and columns that are missing."""
    session = op.get_bind()
    METADATA.create_all(session)
    existing = {column["name"] for column in sa.inspect(session).get_columns(JOBS.name)}
    for name in ("host", "pid", "owner"):
        if name not in existing:
            op.add_column(JOBS.name, JOBS.c[name]._copy())
