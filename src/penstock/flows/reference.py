"""The tables of docs/flows.md, from the models and tables in the code: a test compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from penstock.flows.definition.flow import Flow
from penstock.flows.definition.http_request import HttpOptions
from penstock.flows.definition.kafka_options import (
    ConsumerAdvanced,
    KafkaConnection,
    ProducerAdvanced,
)
from penstock.flows.definition.step_model import KINDS, Handler, Retry, StepOptions
from penstock.flows.definition.test_case import (
    ExampleMessage,
    Expected,
    ExpectedDeadLetter,
    ExpectedMessage,
    ExpectedPublish,
    Reply,
    TestCase,
)
from penstock.flows.definition.triggers import TRIGGERS
from penstock.flows.error_codes import CODES
from penstock.flows.expressions import FUNCTIONS, Expression, Template
from penstock.flows.publish.operation import OPERATIONS


def tables() -> dict[str, str]:
    """Return each table as Markdown by its name.

    >>> sorted(tables())
    ['codes', 'consumer', 'functions', 'options', 'publish', 'steps', 'tests', 'triggers']
    """
    return {name: make() for name, make in _TABLES.items()}


def _functions() -> str:
    rows = (
        f"| `{_cell(each.signature)}` | {_cell(each.description)} | `{_cell(each.examples[0])}` |"
        for each in sorted(FUNCTIONS.values(), key=lambda each: each.name)
    )
    return _table("function", "result", "an example that is true", rows=rows)


def _codes() -> str:
    rows = (f"| `{e.code}` | {e.meaning} | {'yes' if e.passes else ''} |" for e in CODES)
    return _table("code", "meaning", "may pass", rows=rows)


def _options() -> str:
    models: dict[str, type[BaseModel]] = {
        "the flow": Flow,
        "any step": StepOptions,
        "retry": Retry,
        "a handler": Handler,
    }
    return "\n\n".join(_section(f"Options of {name}", model) for name, model in models.items())


def _steps() -> str:
    return "\n\n".join(_section(f"`{name}`", KINDS[name]) for name in sorted(KINDS))


def _publish() -> str:
    return "\n\n".join(_section(f"`{name}`", OPERATIONS[name]) for name in sorted(OPERATIONS))


def _triggers() -> str:
    return "\n\n".join(_section(f"`{name}`", TRIGGERS[name]) for name in sorted(TRIGGERS))


def _consumer() -> str:
    models: dict[str, type[BaseModel]] = {
        "`connection`": KafkaConnection,
        "`advanced` of the trigger": ConsumerAdvanced,
        "`producer` of `publish: kafka`": ProducerAdvanced,
        "`http` of `lookup`": HttpOptions,
    }
    return "\n\n".join(_section(name, model) for name, model in models.items())


def _tests() -> str:
    models: dict[str, type[BaseModel]] = {
        "a test": TestCase,
        "a message of a test": ExampleMessage,
        "a reply": Reply,
        "`expect`": Expected,
        "a result": ExpectedMessage,
        "what is published": ExpectedPublish,
        "a dead letter": ExpectedDeadLetter,
    }
    return "\n\n".join(_section(f"Options of {name}", model) for name, model in models.items())


_TABLES: dict[str, Callable[[], str]] = {
    "functions": _functions,
    "codes": _codes,
    "options": _options,
    "steps": _steps,
    "publish": _publish,
    "triggers": _triggers,
    "consumer": _consumer,
    "tests": _tests,
}


def _section(title: str, model: type[BaseModel]) -> str:
    text = " ".join((model.__doc__ or "").partition(">>>")[0].split())
    return f"### {title}\n\n{text}\n\n{_table('option', 'default', 'meaning', rows=_fields(model))}"


def _fields(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        description = _cell(field.description or _meaning(name))
        yield f"| `{field.alias or name}` | {_default(field.default)} | {description} |"


_MEANINGS = {
    "token": "A token in the header Authorization.",
    "basic": "A user and a password.",
    "hmac": "A signature of the body.",
}


def _meaning(name: str) -> str:
    return _MEANINGS.get(name, "")


def _default(value: object) -> str:
    if value is PydanticUndefined:
        return ""
    value = (
        value.given if isinstance(value, Expression | Template) else getattr(value, "given", value)
    )
    if value in (None, "", ()):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    return f"`{_cell(f'{shown:g}' if isinstance(shown, float) else str(shown))}`"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _table(*head: str, rows: Iterator[str]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows]
    return "\n".join(lines)
