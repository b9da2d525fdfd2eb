"""The body of a deployment: YAML, which is the definition, or JSON with labels next to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from penstock.control.store.rows import Desired, Kind
from penstock.errors import ConfigError, nearest
from penstock.server.definition_check import read_kind
from penstock.server.definition_limits import refuse_long
from penstock.server.problems import RefusedRequestError

# Far more than a definition may have: JSON escapes letters.
_LARGEST = 500_000
_KEYS = ("definition", "labels", "desired", "kind")
_STATES = {each.value: each for each in Desired if each is not Desired.DELETED}


@dataclass(frozen=True)
class GivenDefinition:
    """A definition as a caller gave it; None where the caller gave nothing."""

    text: str
    labels: dict[str, str] | None = None
    desired: Desired | None = None
    kind: Kind | None = None


def read_definition(body: bytes, media_type: str, labels: list[str]) -> GivenDefinition:
    """Return the definition of a body; `labels` are those of the address (`?label=team=a`).

    >>> read_definition(b"name: orders", "application/yaml", ["team=a"])
    GivenDefinition(text='name: orders', labels={'team': 'a'}, desired=None, kind=None)
    """
    if len(body) > _LARGEST:
        raise RefusedRequestError(
            413, f"the body has {len(body)} bytes; a definition may have {_LARGEST}"
        )
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("the body is not UTF-8 text") from None
    own = read_labels(labels)
    if "json" not in media_type.lower():
        return GivenDefinition(text, own)
    data = read_json(text)
    if not isinstance(data, dict):
        raise ConfigError("the body is not a JSON object; give a definition, or one with labels")
    if "definition" not in data:
        return GivenDefinition(_as_yaml(data), own)
    return _read_envelope(data, own)


def _read_envelope(data: dict[str, Any], labels: dict[str, str] | None) -> GivenDefinition:
    for key in data:
        if key not in _KEYS:
            raise ConfigError(f"the body has an unknown key {key[:100]!r}; {nearest(key, _KEYS)}")
    given = data["definition"]
    if not isinstance(given, (str, dict)):
        raise ConfigError("'definition' is neither a text in YAML nor an object")
    if data.get("labels") is not None:
        labels = {**checked_labels(data["labels"]), **(labels or {})}
    desired = data.get("desired")
    return GivenDefinition(
        given if isinstance(given, str) else _as_yaml(given),
        labels,
        None if desired is None else read_desired(desired),
        read_kind(_text("kind", kind)) if (kind := data.get("kind")) else None,
    )


def read_json(text: str) -> Any:
    """Return the data of a JSON text in which no key is given twice.

    >>> read_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    penstock.errors.ConfigError: the body is not JSON: the key 'a' is given twice
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        problem = "it is nested too deep"
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        problem = str(error)
    raise ConfigError(f"the body is not JSON: {problem}")


def read_labels(texts: list[str]) -> dict[str, str] | None:
    """Return labels of the form key=value; None for none."""
    if not texts:
        return None
    pairs = [text.partition("=") for text in texts]
    if wrong := next((text for text, pair in zip(texts, pairs, strict=True) if not pair[1]), None):
        raise ConfigError(f"{wrong[:100]!r} is not a label; write key=value, as in team=payments")
    return {key: value for key, _, value in pairs}


def read_desired(given: Any) -> Desired:
    """Return a state that can be asked for."""
    text = _text("desired", given)
    if text not in _STATES:
        raise ConfigError(f"'desired' is {text[:100]!r}; {nearest(text, list(_STATES))}")
    return _STATES[text]


def checked_labels(given: Any) -> dict[str, str]:
    """Return labels that are a mapping of texts."""
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in given.values()):
        raise ConfigError('\'labels\' is not an object of texts, as in {"team": "payments"}')
    return dict(given)


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ConfigError(f"{name!r} is not a text")
    return given


def _as_yaml(data: dict[str, Any]) -> str:
    refuse_long(data)
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the key {key[:100]!r} is given twice")
        data[key] = value
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
