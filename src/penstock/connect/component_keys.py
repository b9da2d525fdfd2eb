"""The options of a component as keys of a connector: dots for groups, commas for lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from penstock.config import Connection
from penstock.connect.config_definition import REQUIRED, Key, Type, one_of
from penstock.connect.connector_config import ConnectorConfig

_PLAIN: dict[Any, Type] = {
    bool: Type.BOOLEAN,
    int: Type.LONG,
    float: Type.DOUBLE,
    SecretStr: Type.PASSWORD,
}
_JSON = "Each member is a key below it, or all of them are one JSON object."


@dataclass(frozen=True)
class OptionKey:
    """A key with the option that it sets; `open`: keys below it are members of a mapping."""

    key: Key
    option: tuple[str, ...]
    is_open: bool = False


def option_keys(
    model: type[BaseModel], without: frozenset[str] = frozenset()
) -> tuple[OptionKey, ...]:
    """Return the keys of a model's options, those of groups inside it too."""
    fields = {_name(name, field): field for name, field in model.model_fields.items()}
    return tuple(
        key
        for name, field in fields.items()
        if name not in without
        for key in _keys((name,), field)
    )


def options_of(keys: tuple[OptionKey, ...], config: ConnectorConfig) -> dict[str, Any]:
    """Return the options that a configuration gives, and no others."""
    options: dict[str, Any] = {}
    for each in keys:
        if config.get(each.key.name) is not None:
            _put(options, each.option, _value(each, config))
        if each.is_open and (members := config.below(f"{each.key.name}.")):
            _put(options, each.option, members)
    return options


def _value(each: OptionKey, config: ConnectorConfig) -> Any:
    value = config[each.key.name]
    if each.key.type is Type.STRING and isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _put(options: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Put a value at its place; members of a group are added to it, and count instead of its name."""
    *groups, last = path
    for name in groups:
        inner = options.get(name)
        options[name] = inner if isinstance(inner, dict) else {}
        options = options[name]
    before = options.get(last)
    if isinstance(before, dict) and isinstance(value, Mapping):
        value = {**before, **value}
    options[last] = value


def _keys(path: tuple[str, ...], field: FieldInfo) -> Iterator[OptionKey]:
    parts = [*_parts(field.annotation)]
    models = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
    if Connection in models or any(get_origin(part) is dict for part in parts):
        key = _key(path, field, Type.STRING, f"{field.description or ''} {_JSON}".strip())
        yield OptionKey(key, path, is_open=True)
        return
    for model in models:
        if _has_name(model):
            yield OptionKey(_key(path, field, Type.STRING), path)
        for name, inner in model.model_fields.items():
            yield from _keys((*path, _name(name, inner)), inner)
    if not models:
        yield OptionKey(_key(path, field, _type(field, parts)), path)


def _key(
    path: tuple[str, ...], field: FieldInfo, kind: Type, documentation: str | None = None
) -> Key:
    choices = [*_choices(field.annotation)]
    texts = tuple(str(choice) for choice in choices if isinstance(choice, str))
    is_needed = field.is_required() and len(path) == 1
    check = one_of(*texts) if texts and kind is Type.STRING else None
    has_none = not is_needed and _default(field) is None
    return Key(
        ".".join(path),
        kind,
        REQUIRED if is_needed else _default(field),
        (documentation or field.description or "").replace("`", ""),
        "HIGH" if is_needed else "MEDIUM" if len(path) == 1 else "LOW",
        group=path[0] if len(path) > 1 else None,
        recommended=texts,
        check=None if check is None else (lambda v: None if v is None and has_none else check(v)),
    )


def _type(field: FieldInfo, parts: list[Any]) -> Type:
    if any(get_origin(part) in (list, tuple) for part in parts):
        return Type.LIST
    if any(isinstance(each, BeforeValidator) for each in field.metadata):
        return Type.STRING
    kinds = {_PLAIN.get(type(c)) for c in _choices(field.annotation)} or {
        _PLAIN.get(part) for part in parts
    }
    return (kinds.pop() or Type.STRING) if len(kinds) == 1 else Type.STRING


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, without None; what is annotated counts alone."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for part in get_args(annotation):
            yield from _parts(part)
    elif origin is not None and hasattr(annotation, "__metadata__"):
        yield from _parts(get_args(annotation)[0])
    elif annotation is not NoneType:
        yield annotation


def _choices(annotation: Any) -> Iterator[Any]:
    for part in _parts(annotation):
        if get_origin(part) is Literal:
            yield from get_args(part)


def _default(field: FieldInfo) -> str | None:
    value = field.get_default(call_default_factory=True) if not field.is_required() else None
    if value is None or value is PydanticUndefined or isinstance(value, (BaseModel, Mapping)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def _name(name: str, field: FieldInfo) -> str:
    return field.alias or name


def _has_name(model: type[BaseModel]) -> bool:
    """Return whether a text stands for the model, as the name of a format does."""
    forms = model.model_json_schema().get("anyOf", [])
    return any(form.get("type") == "string" for form in forms)
