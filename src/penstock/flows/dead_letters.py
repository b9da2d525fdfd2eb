"""Dead letters of flows: those of pipelines, and headers more for a replay from the failed step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.engine.dead_letters.letter import DeadLetter
from penstock.errors import ConfigError, nearest
from penstock.flows.definition.flow import Flow
from penstock.flows.expressions.value_text import bytes_of, from_json
from penstock.flows.message import Message
from penstock.flows.message_text import message_of_text, text_of_message
from penstock.flows.running.flow_run import DeadLetter as FailedMessage
from penstock.flows.spark.trigger_sources import trigger_source

STEP, TRAIL, MESSAGE = "penstock.flow.step", "penstock.flow.trail", "penstock.flow.message"
# Of a step without id: its place means another step after the definition has changed.
DEFINITION = "penstock.flow.definition"
_ADDED = (STEP, TRAIL, MESSAGE, DEFINITION)
_PARTS = ("payload", "attribute", "variable", "error")
_LONGEST_TRAIL = 2000


class Forms(NamedTuple):
    """A dead letter, and what is written where it is larger than Kafka takes, or JSON cannot have it.

    Those have the records from which the message was made, each with a letter of its own, and not the
    message at the failed step: their replay begins with the first step.
    """

    whole: DeadLetter | None
    short: tuple[DeadLetter, ...]


def letters_of(
    failed: Sequence[FailedMessage], record: Callable[[int], DeadLetter], definition: str
) -> list[Forms]:
    """Return the dead letters of a run; `record` gives what is known of a message of its batch."""
    return [_forms(each, record, definition) for each in failed]


def _forms(failed: FailedMessage, record: Callable[[int], DeadLetter], definition: str) -> Forms:
    number, *place = failed.message.place
    own = record(number)
    error = {"error_type": failed.error["Code"], "error": failed.error["Description"]}
    step = (STEP, failed.from_step.encode())
    short = tuple(
        msgspec.structs.replace(each, **error, headers=[*each.headers, step])
        for each in (record(n) for n in sorted({number, *failed.joined}))
    )
    try:
        text = text_of_message(failed.message, own.value)
    except (
        Exception
    ):  # a number of thousands of digits, a time that no UTC has, what a function made
        return Forms(None, short)
    headers = [
        *own.headers,
        step,
        (DEFINITION, definition.encode()),
        (TRAIL, _shortened(failed.trail).encode()),
        (MESSAGE, text.encode()),
    ]
    part = ".".join(filter(None, [own.part, *map(str, place)]))
    return Forms(msgspec.structs.replace(own, **error, headers=headers, part=part), short)


def _shortened(trail: Sequence[str]) -> str:
    steps = ", ".join(trail)
    if len(steps) <= _LONGEST_TRAIL:
        return steps
    return f"..., {steps[-_LONGEST_TRAIL:].partition(', ')[2]}"


def definition_of(flow: Flow) -> str:
    """Return a text that is another one where the steps are others."""
    document = flow.model_dump(mode="json", include={"steps", "on_error"})
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def step_of(letter: DeadLetter) -> str | None:
    """Return the step that failed; None where the letter has no message of it."""
    headers = _headers(letter)
    if MESSAGE not in headers:
        return None
    return headers.get(STEP, b"").decode(errors="backslashreplace")


def message_of(letter: DeadLetter, flow: Flow) -> Message:
    """Return the message as it was at the failed step, or the record as the flow began with it."""
    text = _headers(letter).get(MESSAGE)
    if text is None:
        return Message(letter.value, _attributes(letter, flow))
    try:
        return message_of_text(text, letter.value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"the dead letter {letter.id!r} cannot be replayed, because its header {MESSAGE} cannot be "
            f"read ({str(error)[:200]}): choose others, or drop it"
        ) from None


def payload_of(letter: DeadLetter, flow: Flow) -> bytes:
    """Return the payload at the failed step, to be edited in a file."""
    return bytes_of(message_of(letter, flow).payload) or b""


def edited(letter: DeadLetter, flow: Flow, value: bytes) -> DeadLetter:
    """Return the letter with another payload at the failed step, of the kind that it had there."""
    message = message_of(letter, flow)
    if MESSAGE not in _headers(letter):
        return msgspec.structs.replace(letter, value=value)
    changed = text_of_message(message.changed(payload=_as_before(message.payload, value)), None)
    headers = [(name, changed.encode() if name == MESSAGE else x) for name, x in letter.headers]
    return msgspec.structs.replace(letter, headers=headers)


def text_of(letter: DeadLetter, flow: Flow) -> str:
    """Return the message at the failed step as JSON, to be edited in a file."""
    empty: dict[str, Any] = {"payload": None, "attribute": {}, "variable": {}}
    parts = json.loads(text_of_message(message_of(letter, flow), None))
    return json.dumps({**empty, **parts}, indent=2) + "\n"


def rewritten(letter: DeadLetter, text: bytes) -> DeadLetter:
    """Return the letter with another message at the failed step, in the form of `text_of`."""
    if MESSAGE not in _headers(letter):
        raise ConfigError(
            f"the dead letter {letter.id!r} has the record alone: only its value can be another one"
        )
    try:
        given = json.loads(text)
        message = message_of_text(text, letter.value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"the new message cannot be read ({str(error)[:200]}); show the dead letter's own with "
            "--message, and change that"
        ) from None
    if unknown := next((name for name in given if name not in _PARTS), None):
        raise ConfigError(f"a message has no {unknown!r}; {nearest(unknown, _PARTS)}")
    changed = text_of_message(message, letter.value).encode()
    headers = [(name, changed if name == MESSAGE else x) for name, x in letter.headers]
    return msgspec.structs.replace(letter, headers=headers)


def with_step(letter: DeadLetter, flow: Flow, step: str) -> DeadLetter:
    """Return the letter with another step to begin with: one that the flow has."""
    known = [name for path, each in flow.all_steps() for name in (each.id, path) if name]
    if step not in known:
        raise ConfigError(f"there is no step {step!r} in {flow.name!r}; {nearest(step, known)}")
    if step_of(letter) is None:
        raise ConfigError(
            f"the dead letter {letter.id!r} has the record alone: its replay begins with the first step"
        )
    changed = {STEP: step.encode(), DEFINITION: definition_of(flow).encode()}
    headers = [(name, changed.get(name, value)) for name, value in letter.headers]
    return msgspec.structs.replace(letter, headers=headers)


def first_step(letter: DeadLetter, flow: Flow) -> str | None:
    """Return the step with which a replay begins; None: with the first one.

    Raises
    ------
    ConfigError
        When the flow does not have that step any more.
    """
    step = step_of(letter)
    if step is None:
        return None
    ids = {each.id or path: each.id for path, each in flow.all_steps()}
    known = ids | {path: each.id or path for path, each in flow.all_steps()}
    advice = "name the step to begin with: --from-step"
    if step not in known:
        raise ConfigError(
            f"the dead letter {letter.id!r} failed at the step {step!r}, which {flow.name!r} does not "
            f"have any more; {nearest(step, [*known])}; {advice}"
        )
    if ids.get(step) is None and _headers(letter).get(DEFINITION) != definition_of(flow).encode():
        raise ConfigError(
            f"the dead letter {letter.id!r} failed at {step}, and the steps of {flow.name!r} have "
            f"changed since: another step may be there now; {advice}"
        )
    return step


def _as_before(payload: Any, value: bytes) -> Any:
    if isinstance(payload, bytes | None):
        return value
    try:
        return value.decode() if isinstance(payload, str) else from_json(value, "the new value")
    except ValueError as error:
        raise ConfigError(
            f"the new value does not fit: the payload at that step is text or JSON ({error})"
        ) from None


def _headers(letter: DeadLetter) -> dict[str, bytes]:
    return {name: value or b"" for name, value in letter.headers}


def without_flow(letter: DeadLetter) -> DeadLetter:
    """Return the record of a letter, without what the flow added to its headers."""
    headers = [*letter.headers]
    while headers and headers[-1][0] in _ADDED:
        headers.pop()
    return msgspec.structs.replace(letter, headers=headers)


def _attributes(letter: DeadLetter, flow: Flow) -> dict[str, Any]:
    """Return the attributes with which the flow began."""
    trigger, at = trigger_source(flow), letter.timestamp
    headers = [{"key": name, "value": value} for name, value in without_flow(letter).headers]
    time = round(at.timestamp() * 1000) if at else None
    known = {"key": letter.key, "timestamp": time, "headers": headers}
    place = {"topic": letter.topic, "partition": letter.partition, "offset": letter.offset}
    return {**trigger.attributes({name: known[name] for name in trigger.columns}), **place}
