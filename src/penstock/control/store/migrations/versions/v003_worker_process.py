"""The identity of a worker's process."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "003"
down_revision = "002"


def upgrade() -> None:
    """Add the column."""
    column = sa.Column("process", sa.String(200), nullable=False, server_default="")
    op.add_column("penstock_workers", column)
