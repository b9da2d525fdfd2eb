"""The step `sql`: a query over the payload's own rows, or on a database."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, SecretStr, model_validator
from typing_extensions import Self

from penstock.errors import ConfigError
from penstock.flows.definition.model import refused
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.definition.target import PAYLOAD, Target
from penstock.flows.expressions import Expression
from penstock.flows.expressions.value_text import json_of
from penstock.flows.message import Message
from penstock.flows.publish.database_address import checked_address
from penstock.flows.running.bound_step import Attempt, BoundStep, EachMessage
from penstock.flows.running.flow_run import FlowRun
from penstock.flows.running.payload_rows import PayloadRows, check_query
from penstock.flows.running.stages import Bind
from penstock.pipeline.values import Duration, is_only_checked

# A parameter, or what only looks like one: in quotes, in a comment, a cast.
_PARAMETER = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::|:([A-Za-z_]\w*)", re.DOTALL
)


@step_kind
class SqlStep(FlowStep):
    """Runs a query. Values are given as parameters (`:id`), which are bound: never part of the text.

    Without `database` the query sees the payload as the table `rows`: a list of objects, or one object,
    in SQLite's dialect. With `database` it runs there.
    """

    name = "sql"
    main_option = "query"

    query: str = Field(min_length=1, description="The query, with parameters as `:id`.")
    parameters: dict[str, Expression] = Field(
        default_factory=dict, description="The values of the parameters."
    )
    database: str | None = Field(
        default=None,
        description="The address, as of the sink `database`; default: the rows of the payload.",
    )
    password: SecretStr | None = Field(default=None, description="The user's password.")
    timeout: Duration = Field(
        default=30.0, gt=0, le=3600, description="The longest time of a query."
    )
    most: int = Field(default=10_000, ge=1, le=1_000_000, description="The most rows of a result.")
    into: Target = Field(default=PAYLOAD, description="Where the rows go, a list of objects.")

    @model_validator(mode="after")
    def _parameters_fit(self) -> Self:
        if "${" in self.query:
            raise refused(
                "the query has '${': a value in the text of a query could change the query; write "
                ":name, and give the expression in 'parameters'"
            )
        used = parameters_of(self.query)
        if missing := sorted(used - set(self.parameters)):
            raise refused(
                f"the query has the parameter :{missing[0]}, which 'parameters' does not give"
            )
        if unused := sorted(set(self.parameters) - used):
            raise refused(f"'parameters' gives {unused[0]!r}, and the query has no :{unused[0]}")
        if self.database is not None:
            try:
                checked_address(self.database, self.password)
            except ConfigError as error:
                raise refused(f"'database': {error}") from None
        elif not is_only_checked():  # a few lines of SQL can be much work: not on a server
            self._check_over_payload()
        return self

    def _check_over_payload(self) -> None:
        try:
            check_query(self.query, self.parameters)
        except ValueError as error:
            raise refused(
                f"given {self.query!r:.80}; SQLite: {error}; without 'database' a query is one SELECT "
                "from the table 'rows', which has the rows of the payload"
            ) from None

    def unused(self) -> dict[str, str]:
        """Return what is for a database alone."""
        return self._unless(self.database is not None, "it is for 'database'", "password")

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what runs the query."""
        values = [(name, each.evaluator()) for name, each in self.parameters.items()]

        def bindings(message: Message) -> dict[str, Any]:
            return {name: simple(evaluate(message)) for name, evaluate in values}

        if self.database is None:
            rows = PayloadRows(self.query, self.most, self.timeout)
            return EachMessage(
                lambda m: self.into.applied(m, rows.selected(m.document, bindings(m)))
            )
        return _OnDatabase(self, path, bindings)


class _OnDatabase(BoundStep):
    def __init__(self, step: SqlStep, path: str, bindings: Any) -> None:
        self._step = step
        self._path = path
        self._bindings = bindings

    def attempt(self, messages: Any, run: FlowRun) -> Attempt:
        step, queries = self._step, run.systems.queries

        def apply(message: Message) -> Message:
            found = queries.query(self._path, step, step.query, self._bindings(message))
            return step.into.applied(message, found[: step.most])

        return EachMessage(apply).attempt(messages, run)


def simple(value: Any) -> Any:
    """Return a value that a database takes as a parameter; lists and objects as JSON."""
    return json_of(value) if isinstance(value, list | dict) else value


def parameters_of(query: str) -> set[str]:
    """Return the names of the parameters of a query.

    >>> sorted(parameters_of("SELECT ':no' FROM t WHERE a = :a AND b::text = :b -- :c"))
    ['a', 'b']
    """
    return {found[1] for found in _PARAMETER.finditer(query) if found[1]}


def with_plain_colons(query: str) -> str:
    r"""Return a query in which SQLAlchemy finds the same parameters: it looks into quotes, too.

    >>> print(with_plain_colons("SELECT ':no', a::text FROM t WHERE a = :a"))
    SELECT '\:no', a::text FROM t WHERE a = :a
    """
    return _PARAMETER.sub(
        lambda found: found[0] if found[1] or found[0] == "::" else found[0].replace(":", "\\:"),
        query,
    )
