"""Serialization of job definitions: components, connections and functions to JSON and back.

A function is stored by its import path. One without a path (notebook, script, lambda) is stored by
value, which only a private file of the user may contain: reading such a value runs code.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from penstock.config import Connection
from penstock.config.models import WITH_SECRETS
from penstock.errors import ConfigError
from penstock.pipeline.component import Component
from penstock.pipeline.values import Function

FUNCTION = "$function"
_PYTHON = ".".join(platform.python_version_tuple()[:2])


def serialize(value: Any) -> Any:
    """Return the value as data for JSON, secrets included, or refuse it with the reason."""
    if isinstance(value, SecretStr):
        return _plain(value.get_secret_value())
    if isinstance(value, BaseModel):
        return _serialize_model(value)
    if isinstance(value, Mapping):
        return {str(name): serialize(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [serialize(item) for item in value]
    if isinstance(value, Function) or callable(value):
        return _serialize_function(Function.read(value))
    return value


def deserialize(data: Any, *, trusted: bool = False) -> Any:
    """Return the stored definition. A function by value is loaded only from a trusted store."""
    return _deserialize(data, lambda reference: _load_function(reference, trusted))


def without_code(data: Any) -> Any:
    """Return the stored definition with functions as names only: nothing is loaded."""
    return _deserialize(data, lambda reference: Function(reference[FUNCTION]))


def shown(data: Any) -> Any:
    """Return the stored definition for display: functions as names only."""
    return _deserialize(data, lambda reference: reference[FUNCTION])


def _deserialize(data: Any, function: Callable[[Mapping[str, Any]], Any]) -> Any:
    if isinstance(data, Mapping):
        if FUNCTION in data:
            return function(data)
        return {name: _deserialize(item, function) for name, item in data.items()}
    if isinstance(data, list):
        return [_deserialize(item, function) for item in data]
    return data


def by_value(data: Any) -> bool:
    """Return whether it contains a function that is stored by value.

    >>> by_value([{"a": 1}]), by_value([{"$function": "m:f", "value": "..."}])
    (False, True)
    """
    if isinstance(data, Mapping):
        return (FUNCTION in data and "value" in data) or any(map(by_value, data.values()))
    return isinstance(data, list) and any(map(by_value, data))


def _plain(value: Any) -> Any:
    """Return a value with `${` escaped, so that it is not read as a reference."""
    return value.replace("${", "$${") if isinstance(value, str) else value


def _serialize_model(model: BaseModel) -> dict[str, Any]:
    if isinstance(model, Connection):
        return {name: _plain(item) for name, item in model.to_config().items()}
    return {model.name: _fields(model)} if isinstance(model, Component) else _fields(model)


def _fields(model: BaseModel) -> dict[str, Any]:
    fields = {}
    for name in model.model_fields_set:
        value = getattr(model, name)
        alias = type(model).model_fields[name].alias or name
        if not isinstance(value, (Function, SecretStr, BaseModel)):
            value = model.model_dump(
                mode="json", include={name}, by_alias=True, context=WITH_SECRETS
            )[alias]
        fields[alias] = serialize(value)
    return fields


def _serialize_function(function: Function) -> dict[str, Any]:
    if function.value is None or _importable(function.path, function.value):
        importable = Function.read(function.path) if not function.folders else function
        return {FUNCTION: importable.path, "folders": list(importable.folders)}
    from pyspark import cloudpickle  # noqa: PLC0415 - Spark is installed where jobs run

    try:
        value = cloudpickle.dumps(function.value)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever a user's object raises when it is pickled
        raise ConfigError(
            f"the function {function.path!r} cannot be stored for the next start: "
            f"{type(error).__name__}: {error}; put it into a separate module and give it as "
            "'module:function', or make what it needs inside of it"
        ) from None
    text = base64.b64encode(value).decode()
    return {FUNCTION: function.path, "value": text, "python": _PYTHON}


def _importable(path: str, value: Callable[..., Any]) -> bool:
    module, _, name = path.partition(":")
    if module == "__main__" or "<" in name:
        return False
    try:
        return Function(path).load() is value
    except (ImportError, AttributeError):
        return False


def _load_function(data: Mapping[str, Any], trusted: bool) -> Function:
    path = data[FUNCTION]
    if "value" not in data:
        return Function(path, folders=tuple(data.get("folders", ())))
    if not trusted:
        raise ConfigError(
            f"the function {path!r} was stored by value, which is code, and this store is not "
            "trusted with code; put the function into a module, give it as 'module:function', and create "
            "the job again"
        )
    if data["python"] != _PYTHON:
        raise ConfigError(
            f"the function {path!r} was stored by Python {data['python']}, and this is {_PYTHON}: "
            "create the job again, with the function in a separate module"
        )
    from pyspark import cloudpickle  # noqa: PLC0415

    return Function(path, value=cloudpickle.loads(base64.b64decode(data["value"])))
