"""Configuration keys as Kafka Connect defines, checks and describes them, with its texts of errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from penstock.config.secrets import MASK, is_secret_key, mask

HIDDEN = "[hidden]"
_INTEGERS = {"SHORT": 2**15, "INT": 2**31, "LONG": 2**63}
_TRIMMED = "".join(map(chr, range(33)))
# Python refuses to read a number of thousands of digits.
_INTEGER = re.compile(r"[+-]?\d{1,1000}")


class Type(str, Enum):
    """What the text of a value stands for."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105


class _Required:
    """In place of a default: the key must be given."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()
Check = Callable[[Any], "str | None"]
"""Returns what is wrong with a value, None where nothing is."""


class ConfigError(ValueError):
    """A value that a key does not take, in Kafka's words."""

    def __init__(self, name: str, value: object, why: str) -> None:
        super().__init__(f"Invalid value {_shown(value)} for configuration {name}: {why}")


@dataclass(frozen=True)
class Key:
    """One key: its type, its default, and what user interfaces show of it.

    >>> Key("tasks.max", Type.INT, "1", check=at_least(1)).checked({"tasks.max": "0"}).errors
    ('Invalid value 0 for configuration tasks.max: Value must be at least 1',)
    >>> Key("topic").checked({}).errors
    ('Missing required configuration "topic" which has no default value.',)
    """

    name: str
    type: Type = Type.STRING
    default: str | _Required | None = REQUIRED
    documentation: str = ""
    importance: str = "MEDIUM"
    group: str | None = None
    order: int = -1
    width: str = "NONE"
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()
    check: Check | None = None

    @property
    def required(self) -> bool:
        """Return whether it has no default."""
        return isinstance(self.default, _Required)

    def parsed(self, text: str) -> Any:
        """Return what a text stands for; raise ConfigError where it stands for nothing."""
        return _parsed(self.name, self.type, text)

    def checked(self, given: Mapping[str, str | None]) -> Checked:
        """Return the value of this key in a configuration, with every error."""
        errors: list[str] = []
        value: Any = None
        text = given.get(self.name)
        if text is not None:
            try:
                value = self.parsed(text)
            except ConfigError as error:
                errors.append(str(error))
        elif isinstance(self.default, _Required):
            errors.append(
                f'Missing required configuration "{self.name}" which has no default value.'
            )
        elif self.default is not None:
            value = self.parsed(self.default)
        if self.check is not None:
            try:
                why = self.check(value)
            except ConfigError as error:
                errors.append(str(error))
            else:
                shown = HIDDEN if self.type is Type.PASSWORD else value
                errors += [str(ConfigError(self.name, shown, why))] if why else []
        return Checked(self, value, tuple(errors))

    def described(self) -> dict[str, Any]:
        """Return the definition as the REST API of Connect gives it."""
        default = None if isinstance(self.default, _Required) else self.default
        return {
            "name": self.name,
            "type": self.type.value,
            "required": self.required,
            "default_value": default,
            "importance": self.importance,
            "documentation": self.documentation,
            "group": self.group,
            "order_in_group": self.order,
            "width": self.width,
            "display_name": self.display_name or self.name,
            "dependents": [*self.dependents],
        }


@dataclass(frozen=True)
class Checked:
    """A key with its value in one configuration, and what is wrong with it."""

    key: Key
    value: Any
    errors: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()
    visible: bool = True

    def with_error(self, text: str) -> Checked:
        """Return the same with one more error."""
        errors = (*self.errors, text)
        return Checked(self.key, self.value, errors, self.recommended, self.visible)

    def described(self) -> dict[str, Any]:
        """Return definition and value as the REST API of Connect gives them; secrets are masked."""
        value = {
            "name": self.key.name,
            "value": self._shown(),
            "recommended_values": [*(self.recommended or self.key.recommended)],
            "errors": [*map(mask, self.errors)],
            "visible": self.visible,
        }
        return {"definition": self.key.described(), "value": value}

    def _shown(self) -> str | None:
        text = as_text(self.value, self.key.type)
        if not text or text == HIDDEN:
            return text
        return MASK if is_secret_key(self.key.name) else mask(text)


@dataclass(frozen=True)
class Definition:
    """The keys of one kind of configuration, in the order in which they are shown and checked."""

    keys: tuple[Key, ...] = ()
    by_name: dict[str, Key] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index the keys."""
        self.by_name.update({key.name: key for key in self.keys})

    def plus(self, *more: Key) -> Definition:
        """Return a definition with more keys; the later one of a name counts."""
        names = {key.name for key in more}
        return Definition((*(key for key in self.keys if key.name not in names), *more))

    def checked(self, given: Mapping[str, str | None]) -> list[Checked]:
        """Return every key with its value in a configuration, and what is wrong with it."""
        return [key.checked(given) for key in self.keys]

    @property
    def groups(self) -> list[str]:
        """Return the groups in the order of their first keys."""
        return [*dict.fromkeys(key.group for key in self.keys if key.group is not None)]


def as_text(value: Any, kind: Type) -> str | None:
    """Return a value as Connect prints it.

    >>> as_text(["a", "b"], Type.LIST), as_text(True, Type.BOOLEAN), as_text("x", Type.PASSWORD)
    ('a,b', 'true', '[hidden]')
    """
    if value is None:
        return None
    if kind is Type.PASSWORD:
        return HIDDEN
    if kind is Type.LIST:
        return ",".join(value)
    return _shown(value)


def _parsed(name: str, kind: Type, text: str) -> Any:
    plain = trimmed(text)
    match kind:
        case Type.PASSWORD:
            return text
        case Type.BOOLEAN:
            if plain.lower() in ("true", "false"):
                return plain.lower() == "true"
            raise ConfigError(name, text, "Expected value to be either true or false")
        case Type.INT | Type.SHORT | Type.LONG:
            limit = _INTEGERS[kind.value]
            if _INTEGER.fullmatch(plain) and -limit <= int(plain) < limit:
                return int(plain)
            raise ConfigError(name, text, f"Not a number of type {kind.value}")
        case Type.DOUBLE:
            try:
                return float(plain)
            except ValueError:
                raise ConfigError(name, text, "Not a number of type DOUBLE") from None
        case Type.LIST:
            return re.split(r"\s*,\s*", plain) if plain else []
        case _:
            return plain


def trimmed(text: str) -> str:
    """Return a text without blanks and control characters at its ends, as Java trims it.

    >>> trimmed(" a\\x07"), trimmed("a\\xa0")
    ('a', 'a\\xa0')
    """
    return text.strip(_TRIMMED)


def _shown(value: object) -> str:
    """Return a value as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)


def at_least(least: int) -> Check:
    """Refuse smaller numbers."""

    def check(value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        return f"Value must be at least {least}" if value < least else None

    return check


def one_of(*names: str) -> Check:
    """Refuse every other text."""

    def check(value: Any) -> str | None:
        return None if value in names else f"String must be one of: {', '.join(names)}"

    return check


def one_of_any_case(*names: str) -> Check:
    """Refuse every other text; the case does not count."""
    known = {name.upper() for name in names}

    def check(value: Any) -> str | None:
        if value is not None and str(value).upper() in known:
            return None
        return f"String must be one of (case insensitive): {', '.join(names)}"

    return check


def not_empty(value: Any) -> str | None:
    """Refuse an empty text."""
    return "String must be non-empty" if value == "" else None


def printable(value: Any) -> str | None:
    """Refuse an empty text and control characters, as the name of a connector does."""
    if value is None:
        return None
    if value == "":
        return "String may not be empty"
    signs = [str(ord(sign)) for sign in value if ord(sign) < 32 or 127 <= ord(sign) < 160]
    if not signs:
        return None
    return (
        "String may not contain control sequences but had the following ASCII chars: "
        f"{', '.join(signs)}"
    )
