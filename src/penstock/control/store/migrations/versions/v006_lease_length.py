"""How long a lease is: those of two workers may differ, and a watcher waits as long as the holder's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "006"
down_revision = "005"


def upgrade() -> None:
    """Add the column; leases so far have the default of a worker."""
    op.add_column(
        "penstock_runs", sa.Column("lease_length", sa.Double, nullable=False, server_default="15")
    )
