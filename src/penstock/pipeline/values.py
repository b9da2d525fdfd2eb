"""Small typed values that options share: durations, sizes of a batch, Python functions, connections."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from penstock.config import Connection, find_connection
from penstock.errors import ConfigError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(given: Any) -> float:
    """Read a duration: a number of seconds, or a number with ms, s, m, h or d.

    >>> seconds("500ms"), seconds("2m"), seconds(3)
    (0.5, 120.0, 3.0)
    """
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return float(given)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", str(given).strip())
    if not match:
        raise ValueError(f"given {given!r}; a duration is a number with ms, s, m, h or d")
    return float(match[1]) * _UNITS[match[2] or "s"]


Duration = Annotated[
    float,
    BeforeValidator(seconds),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]


def _connection(given: Any) -> Connection:
    try:
        return find_connection(given)
    except ConfigError as error:
        raise PydanticCustomError("connection", "{reason}", {"reason": str(error)}) from None


AnyConnection = Annotated[
    Connection,
    BeforeValidator(_connection),
    PlainSerializer(lambda connection: connection.brokers),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
]


@dataclass(frozen=True)
class Function:
    """A Python function that a worker process can have: by import path, or, without one, by value."""

    path: str
    folders: tuple[str, ...] = ()
    value: Callable[..., Any] | None = None

    def load(self) -> Callable[..., Any]:
        """Return the function, imported where needed.

        >>> Function("math:sqrt").load()(9.0)
        3.0
        """
        if self.value is not None:
            return self.value
        add_to_path(self.folders)
        module, _, name = self.path.partition(":")
        loaded: Any = importlib.import_module(module)
        for part in name.split("."):
            loaded = getattr(loaded, part)
        return loaded  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folders in front of the value: its modules are found after its folders are known."""
        return Function, (self.path, _Folders(self.folders), self.value)

    def without_folders(self) -> Function:
        """Return the function as another machine is to have it, on whose disk our folders say nothing."""
        return replace(self, folders=())

    @classmethod
    def read(cls, given: Any) -> Function:
        """Read `module:function` or a callable; one that cannot be had is refused here and now."""
        if isinstance(given, Function):
            return given
        if callable(given):
            path = f"{given.__module__}:{given.__qualname__}"
            return cls(path, folders=tuple(_homes(path)), value=given)
        if not isinstance(given, str) or not re.fullmatch(r"[\w.]+:[\w.]+", given):
            raise ValueError(f"given {given!r}; a function is written as 'module:function'")
        if _only_names.get():
            return cls(given, value=_not_imported)
        function = cls(given, folders=(str(Path.cwd()),))
        if not callable(_loaded(function)):
            raise ValueError(f"{given!r} is not a function")
        return replace(function, folders=(*function.folders, *_homes(given)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.read,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda f: f.path),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": r"^[\w.]+:[\w.]+$"}


_only_names: ContextVar[bool] = ContextVar("only_names", default=False)


@contextmanager
def without_imports() -> Iterator[None]:
    """Read definitions without importing the modules that they name, and without reading their files.

    For a process that only checks a definition: their code must not run in it, and may be elsewhere.

    >>> with without_imports():
    ...     Function.read("no_such_module:parse").path
    'no_such_module:parse'
    """
    token = _only_names.set(True)
    try:
        yield
    finally:
        _only_names.reset(token)


def is_only_checked() -> bool:
    """Return whether a definition is read only to be checked: its files and modules are elsewhere."""
    return _only_names.get()


def _not_imported(_value: Any) -> Any:
    raise ConfigError("the definition was read without its functions, only to check it")


class _Folders(tuple[str, ...]):
    """Folders that are on Python's path as soon as they are unpickled."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return add_to_path, (tuple(self),)


def add_to_path(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Let Python import from these folders, and return them."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return folders


def _homes(path: str) -> list[str]:
    """Return the folders that hold the module: a worker does not share this process's sys.path."""
    package = path.partition(":")[0].partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module without a file, as that of an interactive interpreter
        return []
    if spec is None or not (spec.has_location or spec.submodule_search_locations):
        return []
    places = spec.submodule_search_locations or [str(spec.origin)]
    return [str(Path(place).resolve().parent) for place in places]


def _loaded(function: Function) -> Any:
    module = function.path.partition(":")[0]
    try:
        return function.load()
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ValueError(
                f"there is no module {error.name!r}; looked next to the definition, in "
                f"{function.folders[0]} and on Python's path"
            ) from None
        raise ValueError(f"the module {module!r} cannot be imported: {error}") from error
    except AttributeError as error:
        raise ValueError(f"{function.path!r} cannot be found: {error}") from None
    except Exception as error:
        raise ValueError(
            f"the module {module!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def partitions_of(given: Mapping[str, Mapping[Any, int]]) -> dict[tuple[str, int], int]:
    """Flatten `{topic: {partition: offset}}`.

    >>> partitions_of({"t": {"0": 5}})
    {('t', 0): 5}
    """
    return {
        (topic, int(partition)): int(offset)
        for topic, offsets in given.items()
        for partition, offset in offsets.items()
    }


def offsets_as_json(offsets: Mapping[tuple[str, int], int]) -> str:
    """Write offsets as Spark's connector wants them.

    >>> offsets_as_json({("t", 0): 5, ("t", 1): 7})
    '{"t": {"0": 5, "1": 7}}'
    """
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)


def ranges_as_json(ranges: Mapping[tuple[str, int], tuple[int, int]]) -> str:
    """Write ranges of offsets as a short text, for the mark of a write.

    >>> ranges_as_json({("t", 1): (5, 8), ("t", 0): (0, 0)})
    '{"t":{"0":[0,0],"1":[5,8]}}'
    """
    nested: dict[str, dict[str, tuple[int, int]]] = {}
    for (topic, partition), span in sorted(ranges.items()):
        nested.setdefault(topic, {})[str(partition)] = span
    return json.dumps(nested, separators=(",", ":"))


def ranges_from_json(text: str | None) -> dict[tuple[str, int], tuple[int, int]]:
    """Read what `ranges_as_json` wrote; nothing where nothing was written.

    >>> ranges_from_json('{"t":{"0":[0,7]}}')
    {('t', 0): (0, 7)}
    """
    return {
        (topic, int(partition)): (int(span[0]), int(span[1]))
        for topic, spans in json.loads(text or "{}").items()
        for partition, span in spans.items()
    }
