"""Reads one file of settings; an error names the file and the line, and shows no value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import ConfigError, nearest

# PyYAML raises the last four for a value that does not have the form of its tag, or is nested too deep.
NOT_YAML = (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError)
_ALLOWED = ("connections", "default", "server")


@dataclass(frozen=True)
class SettingsFile:
    """What one file says: connections by name and the server, not yet checked, and the default."""

    path: Path
    connections: Mapping[str, Mapping[str, Any]]
    default: str | None = None
    server: Mapping[str, Any] | None = None


def read_settings(path: Path) -> SettingsFile:
    """Read a file of the form `connections: {name: {key: value}}`, `default: name`, `server: {}`."""
    content = _load(path)
    if content is None:
        return SettingsFile(path, {})
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: {_kind(content)} given; allowed: a mapping with `connections`")
    for name in content:
        if name not in _ALLOWED:
            raise ConfigError(f"{path}: unknown key {name!r}: {nearest(str(name), _ALLOWED)}")
    connections, default = _connections(path, content), content.get("default")
    if default is not None and not isinstance(default, str):
        raise ConfigError(f"{path}: default: {_kind(default)} given; allowed: a connection's name")
    server = content.get("server")
    if server is not None and not isinstance(server, Mapping):
        raise ConfigError(
            f"{path}: server: {_kind(server)} given; allowed: a mapping, for example `url: http://host`"
        )
    return SettingsFile(path, connections, default, server)


def _connections(path: Path, content: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    connections = content.get("connections") or {}
    if not isinstance(connections, Mapping):
        raise ConfigError(f"{path}: connections: {_kind(connections)} given; allowed: a mapping")
    for name, mapping in connections.items():
        if not isinstance(name, str) or ":" in name:
            raise ConfigError(f"{path}: connection {name!r}: allowed: a name without a colon")
        if not isinstance(mapping, Mapping):
            raise ConfigError(
                f"{path}: connection {name!r}: {_kind(mapping)} given; "
                "allowed: a mapping of keys, for example `bootstrap.servers: localhost`"
            )
    return connections


def _load(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except NOT_YAML as error:
        line, problem = yaml_problem(error)
        problem = f"line {line}: {problem}" if line else problem
    # Raised out here, so that the YAML error, which quotes the file, is not chained to it.
    raise ConfigError(f"{path}: {problem}")


def yaml_problem(error: Exception) -> tuple[int | None, str]:
    """Return the line of an error of YAML, and the error without any value that it quotes."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        # What YAML quotes may be a password that begins with * or !; a single character may stay.
        problem = re.sub(r"'(?!\\.')[^']{2,}'", "...", error.problem or "it is not YAML")
        advice = "a text that begins with * & ! % @ or holds ': ' must be in quotes"
        return (mark.line + 1 if mark else None), f"{problem}; {advice}"
    if isinstance(error, yaml.YAMLError):
        return None, "it has a character that YAML does not allow"
    if isinstance(error, RecursionError):
        return None, "it is nested too deep"
    return (
        None,
        "a value looks like a date, a number or a binary value, and is none: put it in quotes",
    )


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", type(None): "nothing"}.get(type(value), "a plain value")
