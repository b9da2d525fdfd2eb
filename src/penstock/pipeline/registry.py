"""Finds components by kind and name. Built-ins and third parties come through the same door:
the entry-point group `penstock.components`, each entry named `kind.name`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from penstock.errors import missing_extra, nearest
from penstock.pipeline.component import Component, Decode, Sink, Source, Step
from penstock.pipeline.stateful import Stateful

GROUP = "penstock.components"


@cache
def _entries() -> dict[tuple[str, str], EntryPoint]:
    found = {}
    for entry in entry_points(group=GROUP):
        kind, _, name = entry.name.partition(".")
        found[kind, name] = entry
    return found


def names(kind: str) -> list[str]:
    """Return the names of the components of a kind.

    >>> "kafka" in names("source")
    True
    """
    return sorted(name for found, name in _entries() if found == kind)


@cache
def component(kind: str, name: str) -> type[Component]:
    """Return the class of a component.

    >>> component("source", "kafka").__name__
    'KafkaSource'
    """
    entry = _entries()[kind, name]
    try:
        loaded: type[Component] = entry.load()
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, f"the {kind} {name!r}", "spark") from missing
    return loaded


class _ByName:
    """Reads `name`, `{name: options}` or a ready component into a component of one kind."""

    def __init__(self, kind: str, without: type[Component] | None = None) -> None:
        self.kind = kind
        self.without = without

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(_written)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        classes = [component(self.kind, name) for name in names(self.kind)]
        allowed = [cls for cls in classes if not (self.without and issubclass(cls, self.without))]
        return {"oneOf": [_json_schema(cls) for cls in allowed]}

    def read(self, given: Any) -> Component:
        """Return the component, or raise what pydantic turns into an error with its place."""
        if isinstance(given, Component):
            if given.kind == self.kind:
                return given
            raise PydanticCustomError("kind", f"given a {given.kind}, wanted a {self.kind}")
        name, options = self._name_and_options(given)
        if name not in names(self.kind):
            hint = nearest(name, names(self.kind))
            raise PydanticCustomError("unknown", f"there is no {self.kind} {name!r}; {hint}")
        return _build(component(self.kind, name), options)

    def _name_and_options(self, given: Any) -> tuple[str, Any]:
        if isinstance(given, str):
            return given, {}
        if isinstance(given, Mapping) and len(given) == 1:
            ((name, options),) = given.items()
            return str(name), {} if options is None else options
        raise PydanticCustomError(
            "shape",
            f"a {self.kind} is written as one name with its options, as in "
            f"'{names(self.kind)[0]}: {{...}}'; known: {', '.join(names(self.kind))}",
        )


def _build(cls: type[Component], options: Any) -> Component:
    if not isinstance(options, Mapping):
        if cls.main_option is None:
            raise PydanticCustomError(
                "shape", f"the options of {cls.name!r} are a mapping, given {options!r}"
            )
        options = {cls.main_option: options}
    try:
        return cls.model_validate(dict(options))
    except ValidationError as error:
        raise ValidationError.from_exception_data(
            error.title, [_under(cls.name, line) for line in error.errors(include_url=False)]
        ) from None


def _under(name: str, line: Any) -> Any:
    """Put the component's name in front of an error's place, so that the place is that of the file."""
    message = line["msg"].removeprefix("Value error, ")
    given = line.get("input")
    kind = line["type"]
    if kind in ("missing", "extra_forbidden"):
        return {"type": kind, "loc": (name, *line["loc"]), "input": given}
    custom = PydanticCustomError(kind, message.replace("{", "{{").replace("}", "}}"))
    return {"type": custom, "loc": (name, *line["loc"]), "input": given}


def _written(value: Component) -> dict[str, Any]:
    return {value.name: value.model_dump(mode="json", exclude_unset=True)}


def _json_schema(cls: type[Component]) -> JsonSchemaValue:
    options = _inlined(cls.model_json_schema(), {})
    forms: list[JsonSchemaValue] = [options]
    if cls.main_option:
        forms.append(options["properties"][cls.main_option])
    elif not options.get("required"):
        forms.append({"type": "null"})
    written: JsonSchemaValue = {
        "type": "object",
        "properties": {cls.name: {"anyOf": forms}},
        "required": [cls.name],
        "additionalProperties": False,
        "description": (cls.__doc__ or "").strip().splitlines()[0],
    }
    if options.get("required"):
        return written
    return {"oneOf": [written, {"const": cls.name}]}


def _inlined(schema: Any, known: Mapping[str, Any]) -> Any:
    """Put definitions in place of references: a reference means something else in a larger schema."""
    if isinstance(schema, list):
        return [_inlined(item, known) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    known = schema.get("$defs", known)
    if "$ref" in schema:
        return _inlined(known[schema["$ref"].rpartition("/")[2]], known)
    return {key: _inlined(item, known) for key, item in schema.items() if key != "$defs"}


AnySource = Annotated[Source, _ByName("source")]
AnyDecode = Annotated[Decode, _ByName("decode")]
AnyStep = Annotated[Step, _ByName("step")]
AnyPlainStep = Annotated[Step, _ByName("step", without=Stateful)]
"""A step without state; that a definition keeps to it is checked where its steps are."""
AnySink = Annotated[Sink, _ByName("sink")]
