"""The base of everything in a definition of a flow, and the reading of parts that are given by a name."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from datetime import date
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from penstock.config.models import SafeModel
from penstock.config.secrets import MASK, is_secret_key, mask
from penstock.errors import Problem, nearest

_LONGEST_GIVEN = 60
# The types of errors of pydantic, in the words of YAML.
_EXPECTED = {
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "string": "a text",
    "int": "a whole number",
    "int_from_float": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
_READY = "flow_problem"


class FlowModel(SafeModel):
    """A part of a definition: a value, read once, never changed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, serialize_by_alias=True
    )

    def unused(self) -> dict[str, str]:
        """Return the given options that have no effect next to the others, each with the reason."""
        return {}

    def _unless(self, is_used: bool, reason: str, *names: str) -> dict[str, str]:
        """Return those of these options that are given, with the reason, unless they are used."""
        return {} if is_used else {n: reason for n in names if n in self.model_fields_set}


def build(cls: type[BaseModel], name: str, options: Any, main_option: str | None) -> Any:
    """Return a part that is given by its name and options; errors have their place below the name."""
    is_alone = False
    if not isinstance(options, Mapping) or (
        main_option and _is_plain_value(cls, main_option, options)
    ):
        if main_option is None:
            raise PydanticCustomError(
                _READY,
                "{reason}",
                {
                    "reason": f"the options of {name!r} are a mapping, given {_kind(options)}; "
                    f"allowed: {', '.join(options_of(cls))}"
                },
            )
        options = {cls.model_fields[main_option].alias or main_option: options}
        is_alone = True
    try:
        return cls.model_validate(dict(options))
    except ValidationError as error:
        inner = (
            cls.model_fields[main_option].alias or main_option if main_option and is_alone else ""
        )
        lines = [_below(name, line, cls, inner) for line in _errors(error)]
        raise ValidationError.from_exception_data(error.title, lines) from None  # type: ignore[arg-type]


def _is_plain_value(cls: type[BaseModel], main_option: str, options: Mapping[str, Any]) -> bool:
    """Return whether a mapping is the main option itself: an object of expressions, say."""
    field = cls.model_fields[main_option]
    takes_mapping = (field.json_schema_extra or {}).get("takes_mapping")  # type: ignore[union-attr]
    return bool(takes_mapping) and not (set(options) & set(options_of(cls)))


def options_of(cls: type[BaseModel]) -> list[str]:
    """Return the names of a model's options, as a definition writes them."""
    return [field.alias or name for name, field in cls.model_fields.items()]


def problems_in(error: ValidationError, cls: type[BaseModel]) -> list[Problem]:
    """Return each error with its place, what was given and what is allowed."""
    return [
        Problem(_place(line), mask(_sentence(line, cls)))
        for line in error.errors(include_url=False)
    ]


def _place(line: Any) -> tuple[str | int, ...]:
    at = str((line.get("ctx") or {}).get("at", ""))
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", at)
    return (*line["loc"], *(int(number) if number else name for number, name in parts))


def refused(reason: str, at: str = "") -> PydanticCustomError:
    """Return an error whose text is complete; `at` is its place, where the model does not know it."""
    return PydanticCustomError(_READY, "{reason}", {"reason": reason, "at": at})


def _errors(error: ValidationError) -> list[Any]:
    """Return the errors; a list is not too short because its elements are wrong."""
    lines = error.errors(include_url=False)
    places = {line["loc"][:n] for line in lines for n in range(len(line["loc"]))}
    return [line for line in lines if line["type"] != "too_short" or line["loc"] not in places]


def _below(name: str, line: Any, cls: type[BaseModel], inner: str) -> dict[str, Any]:
    """Return an error below a name; an option that is given without its own name has no place."""
    loc = line["loc"]
    if inner and loc[:1] == (inner,) and line["type"] != "missing":
        loc = loc[1:]
    return {
        "type": refused(_sentence(line, cls), (line.get("ctx") or {}).get("at", "")),
        "loc": (name, *loc) if name else loc,
        "input": None,
    }


def _sentence(line: Any, cls: type[BaseModel]) -> str:
    message = str(line["msg"]).removeprefix("Value error, ")
    if line["type"] == _READY:
        return message
    allowed = _allowed_at(cls, line["loc"][:-1])
    if line["type"] == "too_short":
        least = line["ctx"]["min_length"]
        return (
            "is empty; give at least one" if least == 1 else f"is too short; give at least {least}"
        )
    if line["type"] == "missing":
        return f"is required; allowed here: {', '.join(allowed)}" if allowed else "is required"
    if line["type"] == "extra_forbidden":
        return f"is not an option here; {nearest(str(line['loc'][-1]), allowed)}"
    expected = _EXPECTED.get(line["type"].removesuffix("_type").removesuffix("_parsing"))
    if expected is None:
        return _with_given(message, line)
    inner = _allowed_at(cls, line["loc"]) if expected == "a mapping" else []
    of = f", of: {', '.join(inner)}" if inner else ""
    return _with_given(f"{expected} is expected{of}", line)


def _with_given(message: str, line: Any) -> str:
    given = line.get("input")
    if any(is_secret_key(str(part)) for part in line["loc"]):
        return message.replace(str(given), MASK) if given else message
    shown = repr(given)
    if isinstance(given, str) and shown in message:
        return message
    if isinstance(given, str | int | float | bool) and not message.startswith("given"):
        shown = shown if len(shown) <= _LONGEST_GIVEN else f"{shown[:_LONGEST_GIVEN]}..."
        return f"given {shown}; {message[0].lower()}{message[1:]}"
    if "given" not in message:
        return f"given {_kind(given)}; {message[0].lower()}{message[1:]}"
    return message


def _allowed_at(cls: type[BaseModel] | None, path: tuple[Any, ...]) -> list[str]:
    for part in path:
        if cls is None:
            return []
        if isinstance(part, int):
            continue
        field = next((f for n, f in cls.model_fields.items() if part in (n, f.alias)), None)
        cls = _model_in(field.annotation) if field else None
    return options_of(cls) if cls else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, list, tuple):
        return next((m for m in map(_model_in, get_args(annotation)) if m), None)
    return None


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, date):
        return f"the date {value}, which is a text in quotes"
    names: dict[type, str] = {list: "a list", dict: "a mapping", str: "a text"}
    return names.get(type(value), f"{value!r:.40}")
