"""The step `validate`: the payload must fit a JSON Schema."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field, PrivateAttr, field_validator

from penstock.errors import FormatError, missing_extra
from penstock.flows.definition.model import refused
from penstock.flows.definition.next_files import named_file
from penstock.flows.definition.step_model import FlowStep, step_kind
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import ExpressionError
from penstock.flows.expressions.linear_regex import check_pattern, is_match
from penstock.flows.message import Message
from penstock.flows.running.bound_step import BoundStep, EachMessage
from penstock.flows.running.stages import Bind
from penstock.pipeline.values import is_only_checked

_LARGEST = 2**20
_SHOWN = 10
_MOST_ELEMENTS = 1000
# Keywords whose values are not schemas.
_VALUES = frozenset({"const", "enum", "default", "examples"})


@step_kind
class ValidateStep(FlowStep):
    """Checks the payload by a JSON Schema; one that does not fit fails with CORE:VALIDATION.

    Patterns are RE2's, whose time is linear. References to other documents are not followed. The dialect
    is that of `$schema` at the top, by default 2020-12.
    """

    name = "validate"
    main_option = "schema_"

    schema_: dict[str, Any] | bool = Field(
        alias="schema",
        description="The JSON Schema: a mapping, or the path of a JSON file, from the folder of the "
        "definition.",
        json_schema_extra={"takes_mapping": True},
    )
    _validator: Any = PrivateAttr(default=None)

    @field_validator("schema_", mode="before")
    @classmethod
    def _from_file(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        if is_only_checked():
            return True
        try:
            data = named_file(given).read_bytes()
        except OSError as error:
            raise refused(
                f"cannot read {given!r}: {error.strerror}; give the path of a JSON Schema"
            ) from None
        try:
            return json.loads(data[: _LARGEST + 1])
        except (ValueError, RecursionError) as error:
            raise refused(f"{given!r} is not JSON of at most {_LARGEST} bytes: {error}") from None

    @field_validator("schema_")
    @classmethod
    def _is_a_schema(cls, given: Any) -> Any:
        _validator_of(given)
        return given

    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what checks."""
        validator = _validator_of(self.schema_)
        from penstock.formats.json_schema import check_document  # noqa: PLC0415 - an extra

        def apply(message: Message) -> Message:
            try:
                check_document(validator, message.document)
            except (FormatError, ExpressionError) as error:
                raise Fault("CORE:VALIDATION", str(error)) from None
            except RecursionError:
                raise Fault("CORE:VALIDATION", "the payload is nested too deep") from None
            return message

        return EachMessage(apply)

    def summary(self) -> str:
        """Return the title of the schema."""
        return str(self.schema_.get("title", "")) if isinstance(self.schema_, dict) else ""


def _validator_of(schema: Any) -> Any:
    try:
        from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - an extra
        from jsonschema.exceptions import SchemaError  # noqa: PLC0415
        from referencing import Registry  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "the step 'validate'") from missing
    base: Any = validators.validator_for(schema, default=Draft202012Validator)
    try:
        _require_short_lists(schema)
        base.check_schema(schema)
        _check_patterns(schema)
    except SchemaError as error:
        raise refused(f"not a valid JSON Schema: {error.json_path}: {error.message:.200}") from None
    except (ExpressionError, RecursionError) as error:
        raise refused(f"not a valid JSON Schema: {error}") from None
    kind: Any = validators.extend(
        base,
        {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "uniqueItems": _unique_items,
        },
    )
    # An empty registry: without one, jsonschema fetches what a `$ref` names from the network.
    return kind(_without_dialect(schema), registry=Registry())


def _without_dialect(schema: Any) -> Any:
    """Return the schema without `$schema`: a `$ref` to a part with it would lead to other keywords."""
    if isinstance(schema, list):
        return [_without_dialect(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: part if name in _VALUES else _without_dialect(part)
        for name, part in schema.items()
        if name != "$schema" or not isinstance(part, str)
    }


def _require_short_lists(schema: Any) -> None:
    """Raise for a list whose elements the check of a schema would compare each with all others."""
    if isinstance(schema, list) and len(schema) > _MOST_ELEMENTS:
        kinds = {type(each) for each in schema}
        if not (kinds <= {str} or kinds <= {int, float}):
            raise ExpressionError(
                f"a list has {len(schema)} elements; allowed are {_MOST_ELEMENTS} where not all are "
                "texts, or all numbers"
            )
    parts = schema.values() if isinstance(schema, dict) else schema
    for part in parts if isinstance(schema, dict | list) else ():
        _require_short_lists(part)


def _check_patterns(schema: Any) -> None:
    if _has(schema, "unevaluatedProperties") and _has(schema, "patternProperties"):
        raise ExpressionError(
            "'unevaluatedProperties' cannot be with 'patternProperties', whose time would not be linear "
            "there; give 'additionalProperties' next to the patterns"
        )
    _check_each_pattern(schema)


def _has(schema: Any, keyword: str) -> bool:
    if isinstance(schema, dict):
        return keyword in schema or any(_has(part, keyword) for part in schema.values())
    return isinstance(schema, list) and any(_has(part, keyword) for part in schema)


def _check_each_pattern(schema: Any) -> None:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            check_pattern(schema["pattern"])
        if isinstance(schema.get("patternProperties"), dict):
            for pattern in schema["patternProperties"]:
                check_pattern(pattern)
        for part in schema.values():
            _check_each_pattern(part)
    elif isinstance(schema, list):
        for part in schema:
            _check_each_pattern(part)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Any:
    from jsonschema import ValidationError  # noqa: PLC0415

    if validator.is_type(instance, "string") and not is_match(instance, pattern):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Any:
    if not validator.is_type(instance, "object"):
        return
    for pattern, part in patterns.items():
        for key, value in instance.items():
            if is_match(key, pattern):
                yield from validator.descend(value, part, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Any:
    """Check the members that no other keyword names; jsonschema's own search is not linear."""
    from jsonschema import ValidationError  # noqa: PLC0415

    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [
        key
        for key in instance
        if key not in named and not any(is_match(key, pattern) for pattern in patterns)
    ]
    if validator.is_type(allowed, "object"):
        for key in extra:
            yield from validator.descend(instance[key], allowed, path=key)
    elif not allowed and extra:
        names = ", ".join(repr(key[:100]) for key in extra[:_SHOWN])
        yield ValidationError(f"Additional properties are not allowed: {names}")


def _unique_items(validator: Any, is_wanted: Any, instance: Any, _schema: Any) -> Any:
    """Compare the elements by their text; jsonschema compares each object with all others."""
    from jsonschema import ValidationError  # noqa: PLC0415

    if not is_wanted or not validator.is_type(instance, "array"):
        return
    seen: dict[str, int] = {}
    for number, element in enumerate(instance):
        text = json.dumps(_comparable(element), sort_keys=True, default=repr)
        first = seen.setdefault(text, number)
        if first != number:
            yield ValidationError(f"the elements {first} and {number} are the same")
            return


def _comparable(value: Any) -> Any:
    """Return a value in which equal numbers are written alike: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items()}
    return value
