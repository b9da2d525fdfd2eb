"""The tables of the control plane, as they are after the newest migration.

Times are seconds by the database's clock. A row of `RUNS` outlives its deployment: its token must never
be used twice for a name.
"""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()
TOOK = tuple(f"took_{number}" for number in range(11))
"""The columns of the histogram of batch durations."""
NAME = sa.String(200)


def _text(name: str, length: int = 200) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=False, server_default="")


def _number(name: str, start: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=str(start))


def _real(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False, server_default="0")


SEQUENCE = sa.Table(
    "penstock_sequence",
    METADATA,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)
DEPLOYMENTS = sa.Table(
    "penstock_deployments",
    METADATA,
    sa.Column("name", NAME, primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    sa.Column("desired", sa.String(20), nullable=False),
    # Increases with each change of the spec, and with each request for a restart.
    _number("generation"),
    _number("round"),
    # The number of the event of the last change: never the same for two states of a name.
    _number("revision"),
    _real("created"),
    _text("created_by"),
    _real("changed"),
    _text("changed_by"),
)
SPECS = sa.Table(
    "penstock_specs",
    METADATA,
    sa.Column("deployment", NAME, primary_key=True),
    sa.Column("generation", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    _real("at"),
    _text("by"),
)
RUNS = sa.Table(
    "penstock_runs",
    METADATA,
    sa.Column("deployment", NAME, primary_key=True),
    sa.Column("state", sa.String(20), nullable=False),
    _number("generation"),
    _number("round"),
    _text("worker"),
    _number("token"),
    _real("lease_until"),
    # Counts the renewals of one lease, so that a watcher sees without a clock that its holder lives.
    _number("renewals"),
    _real("claimed"),
    # How often in a row a lease ended because its holder did, without one batch in between.
    _number("lapses"),
    _number("restarts"),
    sa.Column("error", sa.Text),
    sa.Column("failed", sa.Double),
    # How often a worker claimed it from one that had not given it back.
    _number("takeovers"),
    # The duration of the holder's lease, in seconds: a watcher may have another one.
    sa.Column("lease_length", sa.Double, nullable=False, server_default="15"),
    sa.Index("penstock_runs_worker", "worker"),
)
COUNTERS = sa.Table(
    "penstock_counters",
    METADATA,
    sa.Column("deployment", NAME, primary_key=True),
    _number("epoch", -1),
    _number("batch", -1),
    _number("batches"),
    _number("records"),
    _number("rows"),
    _number("failed"),
    _number("lost"),
    _real("rate"),
    sa.Column("last_batch", sa.Double),
    sa.Column("last_error", sa.Text),
    sa.Column("last_failed", sa.Double),
    # Seconds of the batches, and how many took how long: `durations.py` has the bounds.
    _real("seconds"),
    *(_number(name) for name in TOOK),
)
SAMPLES = sa.Table(
    "penstock_samples",
    METADATA,
    sa.Column("deployment", NAME, primary_key=True),
    sa.Column("resolution", sa.Integer, primary_key=True),
    sa.Column("at", sa.BigInteger, primary_key=True),
    _number("batches"),
    _number("records"),
    _number("rows"),
    _number("failed"),
    _number("lost"),
    _number("lag"),
    _number("most_lag"),
    sa.Index("penstock_samples_at", "resolution", "at"),
)
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
EVENTS = sa.Table(
    "penstock_events",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("deployment", NAME, nullable=False),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    _real("at"),
    sa.Index("penstock_events_deployment", "deployment", "number"),
)
WORKERS = sa.Table(
    "penstock_workers",
    METADATA,
    sa.Column("id", NAME, primary_key=True),
    _text("host", 255),
    _number("pid"),
    _real("capacity"),
    _real("load"),
    _real("started"),
    _real("seen"),
    sa.Column("draining", sa.Boolean, nullable=False, server_default=sa.false()),
    # The identity of the process (`control.liveness`): on its machine others see when it has ended.
    _text("process"),
    _number("renewals"),
    # Of the process and its children, in bytes, seconds and queries; the heap is that of Java.
    sa.Column("heap_used", sa.BigInteger),
    sa.Column("heap_max", sa.BigInteger),
    _number("memory"),
    _real("cpu_seconds"),
    _number("queries"),
)
USERS = sa.Table(
    "penstock_users",
    METADATA,
    sa.Column("name", NAME, primary_key=True),
    sa.Column("password", sa.Text, nullable=False),
    sa.Column("grants", sa.Text, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
    _real("created"),
)
TOKENS = sa.Table(
    "penstock_tokens",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("id", sa.String(20), nullable=False, unique=True),
    sa.Column("user", NAME, nullable=False, index=True),
    _text("name"),
    sa.Column("grants", sa.Text, nullable=False),
    _real("created"),
    sa.Column("expires", sa.Double),
    sa.Column("used", sa.Double),
)
LOGINS = sa.Table(
    "penstock_logins",
    METADATA,
    sa.Column("key", sa.String(300), primary_key=True),
    _number("attempts"),
    _real("until"),
)
AUDIT = sa.Table(
    "penstock_audit",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    _real("at"),
    _text("who"),
    _text("action", 40),
    sa.Column("target", NAME, nullable=False, index=True),
    sa.Column("detail", sa.Text, nullable=False),
)
LOGS = sa.Table(
    "penstock_logs",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    # Empty for a line of the worker itself.
    sa.Column("deployment", NAME, nullable=False),
    sa.Column("worker", NAME, nullable=False),
    sa.Column("level", sa.String(10), nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("fields", sa.Text, nullable=False),
    _real("at"),
    sa.Index("penstock_logs_deployment", "deployment", "number"),
    sa.Index("penstock_logs_worker", "worker", "deployment", "number"),
)
REPLAYS = sa.Table(
    "penstock_replays",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("deployment", NAME, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    # Which dead letters, as JSON; the corrected value of one is sealed, and removed at the end.
    sa.Column("wanted", sa.Text, nullable=False),
    sa.Column("value", sa.Text),
    _real("at"),
    _text("by"),
    _text("worker"),
    _number("attempts"),
    sa.Column("started", sa.Double),
    sa.Column("ended", sa.Double),
    sa.Column("outcome", sa.Text),
    sa.Column("error", sa.Text),
    sa.Index("penstock_replays_deployment", "deployment", "number"),
    sa.Index("penstock_replays_state", "state"),
)
