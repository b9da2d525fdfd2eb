"""The steps of flows, one file for each; importing them adds them to the table of kinds."""

from penstock.flows.steps import (
    branch_step,
    dedupe_step,
    http_step,
    join_step,
    log_step,
    lookup_step,
    python_function,
    shaping,
    split_step,
    sql_query,
    throttle_step,
    try_step,
    validate_step,
)

__all__ = [
    "branch_step",
    "dedupe_step",
    "http_step",
    "join_step",
    "log_step",
    "lookup_step",
    "python_function",
    "shaping",
    "split_step",
    "sql_query",
    "throttle_step",
    "try_step",
    "validate_step",
]
