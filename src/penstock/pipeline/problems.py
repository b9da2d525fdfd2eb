"""Turns pydantic's errors into sentences for people: what was given, what is allowed, what to do."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from penstock.config.secrets import MASK, is_secret_key, mask
from penstock.errors import Problem, nearest
from penstock.pipeline import registry

_LONGEST_GIVEN = 60
_KIND_OF_FIELD = {
    "source": "source",
    "decode": "decode",
    "steps": "step",
    "sink": "sink",
    "dead_letters": "sink",
}


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return each error with its path in the definition."""
    return [
        Problem(line["loc"], mask(_message(line, _options_at(line["loc"][:-1], model))))
        for line in error.errors(include_url=False)
    ]


def _message(line: Any, allowed: list[str]) -> str:
    if line["type"] == "missing":
        return "is required"
    if line["type"] == "extra_forbidden":
        return f"is not an option here; {nearest(str(line['loc'][-1]), allowed)}"
    message = str(line["msg"]).removeprefix("Value error, ")
    given = line.get("input")
    if any(is_secret_key(str(part)) for part in line["loc"]):
        return message.replace(str(given), MASK) if given else message
    if isinstance(given, (str, int, float, bool)) and repr(given) not in message:
        return f"given {_short(given)}; {message[0].lower()}{message[1:]}"
    return message


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= _LONGEST_GIVEN else f"{text[:_LONGEST_GIVEN]}..."


def _options_at(path: tuple[Any, ...], model: type[BaseModel]) -> list[str]:
    """Return the options that are allowed at a path, to name the nearest one."""
    if not path:
        return list(model.model_fields)
    kind = _KIND_OF_FIELD.get(str(path[0]))
    if kind:
        name = next((part for part in path[1:] if isinstance(part, str)), "")
        if registry.current_name(kind, name) in registry.names(kind):
            return list(registry.component(kind, name).model_fields)
        return registry.names(kind)
    field = model.model_fields.get(str(path[0]))
    inner = field.annotation if field else None
    return (
        list(inner.model_fields) if isinstance(inner, type) and issubclass(inner, BaseModel) else []
    )
