"""Refuses SQL that runs code or reads files: a step shapes rows, and nothing else.

It is looked for twice, each time in a parsed query and never in its text: by sqlglot when a definition
is read, and by Spark's own parser before Spark analyses the query: the two may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import expressions as sql

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS_CODE = frozenset({"reflect", "try_reflect", "java_method"})
# Others read tables by their paths, or the logs of workers.
_TABLE_FUNCTIONS = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "range",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    }
)
_NOT_A_QUERY = re.compile(r"(Command|Statement|InsertInto\w*|CreateTable\w*)$")
_NODES = {
    "ScriptTransformation": "TRANSFORM, which runs a program",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(), which can name a file",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(), which can name any function",
}
_INSTEAD = "where the definition's author is trusted, the step sql takes 'unsafe: true'"


def unsafe_part(query: sql.Expr) -> str | None:
    """Return what a parsed query does beyond shaping rows, None where it does nothing else.

    >>> import sqlglot
    >>> unsafe_part(sqlglot.parse_one("SELECT reflect('a', 'b') FROM rows", read="spark"))
    'reflect(), which runs Java code'
    """
    if query.find(sql.QueryTransform):
        return _NODES["ScriptTransformation"]
    for function in query.find_all(sql.Anonymous):
        name = function.name.lower()
        if name in _RUNS_CODE:
            return f"{name}(), which runs Java code"
        if name == "identifier":
            return _NODES["PlanWithUnresolvedIdentifier"]
    for table in query.find_all(sql.Table):
        if isinstance(table.this, sql.Func) and (part := _table_function(_name(table.this))):
            return part
    return None


def refuse_unsafe(spark: SparkSession, query: str) -> None:
    """Raise ConfigError for what Spark itself would read as more than shaping rows."""
    session: Any = spark
    plan = session._jsparkSession.sessionState().sqlParser().parsePlan(query)
    if (part := unsafe_in_plan(plan.toJSON())) is not None:
        raise ConfigError(f"the SQL has {part}; {_INSTEAD}: {query:.200}")


def refusal(part: str) -> str:
    """Return the message for an unsafe part of a query.

    >>> refusal("reflect(), which runs Java code")
    "it has reflect(), which runs Java code; where the definition's author is trusted, the step ..."
    """
    return f"it has {part}; {_INSTEAD}"


def unsafe_in_plan(plan: str) -> str | None:
    """Return what a plan, as Spark writes it in JSON, does beyond shaping rows."""
    parts = (_unsafe_node(node) for node in _nodes(json.loads(plan)))
    return next((part for part in parts if part), None)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a plan, those of subqueries included."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _unsafe_node(node: dict[str, Any]) -> str | None:
    kind = str(node.get("class", "")).rpartition(".")[2]
    if kind in _NODES:
        return _NODES[kind]
    if _NOT_A_QUERY.search(kind):
        return f"{kind}, which is not a SELECT"
    if kind == "UnresolvedRelation" and "," in str(node.get("multipartIdentifier")):
        return f"the table or file {node['multipartIdentifier']}"
    function = _last(
        node.get("nameParts") or node.get("functionName") or node.get("funcName") or ""
    )
    if kind != "UnresolvedAttribute" and function in _RUNS_CODE:
        return f"{function}(), which runs Java code"
    if kind == "UnresolvedTableValuedFunction":
        return _table_function(_last(node.get("name", "")))
    return None


def _table_function(name: str) -> str | None:
    if name in _TABLE_FUNCTIONS:
        return None
    return (
        f"the table function {name}(), of which {', '.join(sorted(_TABLE_FUNCTIONS))} are allowed"
    )


def _name(function: sql.Func) -> str:
    return (function.name if isinstance(function, sql.Anonymous) else function.sql_name()).lower()


def _last(parts: Any) -> str:
    """Return the last part of a name as Spark writes it: `[system, builtin, reflect]`."""
    return str(parts).strip("[]").rpartition(",")[2].strip().lower()
