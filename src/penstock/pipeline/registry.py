"""Finds components by kind and name. Built-ins and third parties come through the same door:
the entry-point group `penstock.components`, each entry named `kind.name`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from penstock.errors import missing_extra, nearest
from penstock.pipeline.component import Component, Decode, Sink, Source, Step
from penstock.pipeline.stateful import Stateful

GROUP = "penstock.components"
# Earlier names, which definitions may still have, and names of systems that are used in the same way.
ALIASES = {
    ("sink", "jdbc"): "database",
    ("source", "jdbc"): "database",
    ("sink", "elasticsearch"): "opensearch",
}


@cache
def _entries() -> dict[tuple[str, str], EntryPoint]:
    entries = {}
    for entry in entry_points(group=GROUP):
        kind, _, name = entry.name.partition(".")
        entries[kind, name] = entry
    return entries


def names(kind: str) -> list[str]:
    """Return the names of the components of a kind.

    >>> "kafka" in names("source")
    True
    """
    return sorted(name for each, name in _entries() if each == kind)


def current_name(kind: str, name: str) -> str:
    """Return the name of a component that may be given by an earlier one.

    >>> current_name("sink", "jdbc"), current_name("sink", "files")
    ('database', 'files')
    """
    return ALIASES.get((kind, name), name)


@cache
def component(kind: str, name: str) -> type[Component]:
    """Return the class of a component.

    >>> component("source", "kafka").__name__
    'KafkaSource'
    """
    entry = _entries()[kind, current_name(kind, name)]
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
            self.read,
            serialization=core_schema.plain_serializer_function_ser_schema(_written, info_arg=True),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        aliases = [name for kind, name in ALIASES if kind == self.kind]
        known = {name: component(self.kind, name) for name in (*names(self.kind), *aliases)}
        forms = [
            _json_schema(cls, name)
            for name, cls in known.items()
            if not (self.without and issubclass(cls, self.without))
        ]
        return {"oneOf": forms}

    def read(self, given: Any) -> Component:
        """Return the component, or raise what pydantic turns into an error with its place."""
        if isinstance(given, Component):
            if given.kind == self.kind:
                return given
            raise PydanticCustomError("kind", f"given a {given.kind}, wanted a {self.kind}")
        name, options = self._name_and_options(given)
        if current_name(self.kind, name) not in names(self.kind):
            hint = nearest(name, names(self.kind))
            raise PydanticCustomError("unknown", f"there is no {self.kind} {name!r}; {hint}")
        return _build(component(self.kind, name), name, options)

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


def _build(cls: type[Component], name: str, options: Any) -> Component:
    if not isinstance(options, Mapping):
        if cls.main_option is None:
            raise PydanticCustomError(
                "shape",
                f"the options of {name!r} are a mapping, given a {type(options).__name__}",
            )
        options = {cls.main_option: options}
    try:
        return cls.model_validate(dict(options))
    except ValidationError as error:
        raise ValidationError.from_exception_data(
            error.title, [_under(name, line) for line in error.errors(include_url=False)]
        ) from None


def _under(name: str, line: Any) -> Any:
    """Put the component's name in front of an error's place, so that the place is that of the file."""
    message = line["msg"].removeprefix("Value error, ")
    given = line.get("input")
    kind = line["type"]
    if kind in ("missing", "extra_forbidden"):
        return {"type": kind, "loc": (name, *line["loc"]), "input": given}
    custom = PydanticCustomError(kind, "{reason}", {"reason": message})
    return {"type": custom, "loc": (name, *line["loc"]), "input": given}


def _written(value: Component, info: SerializationInfo) -> dict[str, Any]:
    return {value.name: value.model_dump(mode="json", exclude_unset=True, context=info.context)}


def _json_schema(cls: type[Component], name: str) -> JsonSchemaValue:
    options = _inlined(cls.model_json_schema(), {})
    forms: list[JsonSchemaValue] = [options]
    if cls.main_option:
        forms.append(options["properties"][cls.main_option])
    elif not options.get("required"):
        forms.append({"type": "null"})
    written: JsonSchemaValue = {
        "type": "object",
        "properties": {name: {"anyOf": forms}},
        "required": [name],
        "additionalProperties": False,
        "description": (cls.__doc__ or "").strip().splitlines()[0],
    }
    if name != cls.name:
        written["deprecated"] = True
    if options.get("required"):
        return written
    return {"oneOf": [written, {"const": name}]}


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


class _Brief(_ByName):
    """The same, described without its options: a decode in a decode has no end otherwise."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        known = names(self.kind)
        options = {"type": "object", "minProperties": 1, "maxProperties": 1}
        return {"oneOf": [{"enum": known}, options | {"propertyNames": {"enum": known}}]}


AnySource = Annotated[Source, _ByName("source")]
AnyDecode = Annotated[Decode, _ByName("decode")]
AnyKeyDecode = Annotated[Decode, _Brief("decode")]
AnyStep = Annotated[Step, _ByName("step")]
AnyPlainStep = Annotated[Step, _ByName("step", without=Stateful)]
"""A step without state; that a definition keeps to it is checked where its steps are."""
AnySink = Annotated[Sink, _ByName("sink")]
