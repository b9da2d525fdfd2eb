"""Job definitions as data that can be kept: components, connections and functions become JSON and back.

A function is kept by its import path. One without a path (of a notebook, a script, a lambda) is kept by
value, which only a file of the user's own may hold: reading such a value runs code.
"""

from __future__ import annotations

import base64
import importlib
import platform
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.pipeline.component import Component
from penstock.pipeline.values import Function

FUNCTION = "$function"
_PYTHON = ".".join(platform.python_version_tuple()[:2])


def kept(value: Any) -> Any:
    """Return the value as data for JSON, secrets included, or refuse it with the reason.

    >>> kept({"decode": {"python": {"function": "json:loads"}}})
    {'decode': {'python': {'function': 'json:loads'}}}
    """
    if isinstance(value, SecretStr):
        return _plain(value.get_secret_value())
    if isinstance(value, BaseModel):
        return _kept_model(value)
    if isinstance(value, Mapping):
        return {str(name): kept(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [kept(item) for item in value]
    if isinstance(value, Function) or callable(value):
        return _kept_function(Function.read(value))
    return value


def restored(data: Any) -> Any:
    """Return the definition that was kept; functions are loaded."""
    if isinstance(data, Mapping):
        if FUNCTION in data:
            return _restored_function(data)
        return {name: restored(item) for name, item in data.items()}
    if isinstance(data, list):
        return [restored(item) for item in data]
    return data


def by_value(data: Any) -> bool:
    """Say whether something in it is kept by value.

    >>> by_value([{"a": 1}]), by_value([{"$function": "m:f", "value": "..."}])
    (False, True)
    """
    if isinstance(data, Mapping):
        return (FUNCTION in data and "value" in data) or any(map(by_value, data.values()))
    return isinstance(data, list) and any(map(by_value, data))


def shown(data: Any) -> Any:
    """Return what was kept as a person may see it: functions by their names alone."""
    if isinstance(data, Mapping):
        if FUNCTION in data:
            return data[FUNCTION]
        return {name: shown(item) for name, item in data.items()}
    return [shown(item) for item in data] if isinstance(data, list) else data


def _plain(value: Any) -> Any:
    """A value that is no reference must not become one when it is read again."""
    return value.replace("${", "$${") if isinstance(value, str) else value


def _kept_model(model: BaseModel) -> dict[str, Any]:
    if isinstance(model, Connection):
        return {name: _plain(item) for name, item in model.to_config().items()}
    return {model.name: _fields(model)} if isinstance(model, Component) else _fields(model)


def _fields(model: BaseModel) -> dict[str, Any]:
    kept_fields = {}
    for name in model.model_fields_set:
        value = getattr(model, name)
        alias = type(model).model_fields[name].alias or name
        if not isinstance(value, (Function, SecretStr, BaseModel)):
            value = model.model_dump(mode="json", include={name}, by_alias=True)[alias]
        kept_fields[alias] = kept(value)
    return kept_fields


def _kept_function(function: Function) -> dict[str, Any]:
    if function.value is None or _importable(function.path, function.value):
        found = Function.read(function.path) if not function.folders else function
        return {FUNCTION: found.path, "folders": list(found.folders)}
    from pyspark import cloudpickle  # noqa: PLC0415 - Spark is there where jobs run

    try:
        value = cloudpickle.dumps(function.value)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever a user's object raises when it is taken apart
        raise ConfigError(
            f"the function {function.path!r} cannot be kept for the next start: "
            f"{type(error).__name__}: {error}; put it into a module of its own and give it as "
            "'module:function', or make what it needs inside of it"
        ) from None
    text = base64.b64encode(value).decode()
    return {FUNCTION: function.path, "value": text, "python": _PYTHON}


def _importable(path: str, value: Callable[..., Any]) -> bool:
    module, _, name = path.partition(":")
    if module == "__main__" or "<" in name:
        return False
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return found is value


def _restored_function(data: Mapping[str, Any]) -> Function:
    path = data[FUNCTION]
    if "value" not in data:
        return Function(path, folders=tuple(data.get("folders", ())))
    if data["python"] != _PYTHON:
        raise ConfigError(
            f"the function {path!r} was kept by Python {data['python']}, and this is {_PYTHON}: "
            "create the job anew, with the function in a module of its own"
        )
    from pyspark import cloudpickle  # noqa: PLC0415

    return Function(path, value=cloudpickle.loads(base64.b64decode(data["value"])))
