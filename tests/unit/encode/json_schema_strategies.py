"""Random JSON Schemas whose values have one clear type each, documents of them, and their rows."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

from hypothesis import strategies as st
from tests.unit.encode.row_strategies import NAMES, TEXTS

Values = st.SearchStrategy[Any]
Typed = tuple[dict[str, Any], Values]
_TIMES = st.datetimes(timezones=st.just(timezone.utc)).map(datetime.isoformat)
_SCALARS: list[Typed] = [
    ({"type": "integer"}, st.integers(-(2**63), 2**63 - 1)),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "string"}, TEXTS),
    ({"type": "string", "format": "date"}, st.dates().map(date.isoformat)),
    ({"type": "string", "format": "date-time"}, _TIMES),
    ({"enum": ["A", "B", ""]}, st.sampled_from(["A", "B", ""])),
]


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> Typed:
    """Return a schema, and a strategy of its values."""
    kinds = ["scalar"] * 3 + ["null", "list", "map", "object"] * (depth > 0)
    kind = draw(st.sampled_from(kinds))
    if kind == "scalar":
        return draw(st.sampled_from(_SCALARS))
    if kind == "object":
        return draw(objects(depth - 1))
    inner, values = draw(types(depth - 1))
    if kind == "list":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    if kind == "map":
        node = {"type": "object", "additionalProperties": inner}
        return node, st.dictionaries(TEXTS, values, max_size=3)
    if "oneOf" in inner:
        return inner, values
    return {"oneOf": [{"type": "null"}, inner]}, st.none() | values


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> Typed:
    """Return the schema of an object with properties, of which some are required."""
    parts = draw(st.dictionaries(NAMES, types(depth), min_size=1, max_size=4))
    needed = {name: values for name, (_, values) in parts.items() if draw(st.booleans())}
    others = {name: values for name, (_, values) in parts.items() if name not in needed}
    schema = {
        "type": "object",
        "properties": {name: node for name, (node, _) in parts.items()},
        "required": list(needed),
        "additionalProperties": False,
    }
    return schema, st.fixed_dictionaries(needed, optional=others)


def row_form(value: Any, node: Any) -> Any:
    """Return a value of a document as the row has it: a property that is missing is null."""
    if value is None:
        return None
    if "oneOf" in node:
        return row_form(value, node["oneOf"][1])
    if "properties" in node:
        parts = node["properties"].items()
        return {name: row_form(value.get(name), inner) for name, inner in parts}
    if "additionalProperties" in node:
        return {key: row_form(item, node["additionalProperties"]) for key, item in value.items()}
    if "items" in node:
        return [row_form(item, node["items"]) for item in value]
    readers = {"date": date.fromisoformat, "date-time": datetime.fromisoformat}
    return readers[node["format"]](value) if "format" in node else value
