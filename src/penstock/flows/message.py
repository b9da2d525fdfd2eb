"""The message of a flow: payload, error, attribute and variable. A step returns a changed copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from msgspec import UNSET, Struct, field

from penstock.flows.expressions.value_text import from_json, from_jsons

_UNREAD: Any = UNSET
_FIXED = frozenset({bytes, str, int, float, bool, type(None)})
_DOCUMENTS = frozenset({dict, list, int, float, bool, type(None)})
_PARTS = frozenset({"payload", "attribute", "variable", "error"})


class Message(Struct, eq=False):
    """What a flow carries from step to step.

    Never changed in place: the message before a step is the one that is tried again, traced, or
    written to the dead letters.

    >>> message = Message(b'{"id": 7}', {"topic": "orders"})
    >>> message.document["id"], message.changed(payload="x").attribute
    (7, {'topic': 'orders'})
    """

    payload: Any = None
    attribute: dict[str, Any] = field(default_factory=dict)
    variable: dict[str, Any] = field(default_factory=dict)
    error: dict[str, str] | None = None
    # Which message of the batch, and which part of it after each split: the order of messages.
    place: tuple[int, ...] = ()
    # The message that was split, for the step `join`.
    parent: Message | None = None
    _document: Any = _UNREAD

    @property
    def document(self) -> Any:
        """Return the payload, and the value of its JSON where it is bytes or text."""
        if self._document is _UNREAD:
            payload = self.payload
            is_text = isinstance(payload, bytes | str)
            self._document = from_json(payload, "the payload") if is_text else payload
        return self._document

    def changed(self, **parts: Any) -> Message:
        """Return a copy with other parts: payload, attribute, variable, error."""
        if not parts.keys() <= _PARTS:
            wrong = ", ".join(sorted(parts.keys() - _PARTS))
            raise TypeError(f"a message has no {wrong}; it has {', '.join(sorted(_PARTS))}")
        return Message(
            parts.get("payload", self.payload),
            parts.get("attribute", self.attribute),
            parts.get("variable", self.variable),
            parts.get("error", self.error),
            self.place,
            self.parent,
            _UNREAD if "payload" in parts else self._document,
        )

    def with_payload(self, payload: Any) -> Message:
        """Return a copy with another payload: as `changed`, and quicker."""
        return Message(payload, self.attribute, self.variable, self.error, self.place, self.parent)

    def published(self, receipt: Mapping[str, Any]) -> Message:
        """Return a copy with what a publish operation adds to the attributes, and without an error."""
        attribute = {**self.attribute, **receipt}
        return Message(
            self.payload, attribute, self.variable, None, self.place, self.parent, self._document
        )

    def part(self, number: int, payload: Any, attribute: dict[str, Any]) -> Message:
        """Return one of the messages that this one is split into."""
        return Message(payload, attribute, self.variable, None, (*self.place, number), self)

    def own(self) -> Message:
        """Return a copy that shares nothing: for code that may change what it is given."""
        return Message(
            _copied(self.payload),
            _copied(self.attribute),
            _copied(self.variable),
            _copied(self.error),
            self.place,
            self.parent,
        )

    def shown(self) -> dict[str, Any]:
        """Return the four parts as a mapping."""
        return {
            "payload": self.payload,
            "attribute": self.attribute,
            "variable": self.variable,
            "error": self.error,
        }

    def __repr__(self) -> str:
        return f"Message({self.payload!r:.200}, {self.attribute!r:.200})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.shown() == other.shown()

    __hash__ = None  # type: ignore[assignment]


def _copied(value: Any) -> Any:
    """Return a copy: as `deepcopy`, and quicker for what JSON has."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is dict:
        return {key: each if type(each) in _FIXED else _copied(each) for key, each in value.items()}
    if kind is list:
        return [_copied(each) for each in value]
    return deepcopy(value)


class Messages:
    """Messages of a batch, as expressions see them that are evaluated for many at once."""

    __slots__ = ("_documents", "_messages")

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._documents: list[Any] | None = None

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def documents(self) -> list[Any]:
        """Return the documents of all messages; JSON that is not read yet is read at once."""
        if self._documents is None:
            self._documents = _documents(self._messages)
        return self._documents

    def chosen(self, numbers: Sequence[int]) -> Messages:
        """Return some of the messages, by their numbers."""
        return Messages([self._messages[number] for number in numbers])


def _documents(messages: Sequence[Message]) -> list[Any]:
    payloads = [message.payload for message in messages]
    kinds = set(map(type, payloads))
    if kinds <= _DOCUMENTS:
        return payloads
    if kinds != {bytes} or any(message._document is not _UNREAD for message in messages):
        return [message.document for message in messages]
    found = from_jsons(payloads)
    for message, document in zip(messages, found, strict=True):
        message._document = document
    return found
