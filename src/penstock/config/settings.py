"""Lookup of named connections: penstock.yaml here, then the user's, then the embedded broker's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config.connection import Connection
from penstock.config.directories import place
from penstock.config.files import SettingsFile, read_settings
from penstock.config.keys import KEYS, find_key
from penstock.config.references import resolve_references
from penstock.config.trust import refuse_untrusted
from penstock.errors import ConfigError, nearest

FILE_NAME = "penstock.yaml"
EMBEDDED = "embedded"
_PICK = "PENSTOCK_CONNECTION"
_PREFIX = "PENSTOCK_KAFKA_"
_VARIABLES = {
    _PREFIX + name.upper().replace(".", "_"): name
    for key in KEYS
    for name in (key.name, *key.aliases)
}


ConnectionLike = str | Mapping[str, Any] | Connection | None
"""A connection, its name, its keys and values, a broker's address; None is the default one."""


def find_connection(what: ConnectionLike = None) -> Connection:
    """Find a connection by its name, read one from a mapping, or take the default.

    A text with a colon is a broker's address rather than a name.

    >>> find_connection({"bootstrap.servers": "localhost"}).brokers
    'localhost:9092'
    >>> find_connection("kafka-1:9093").brokers
    'kafka-1:9093'
    """
    if isinstance(what, Connection):
        return what
    if isinstance(what, Mapping):
        return Connection.from_config(resolve_references(what))
    if isinstance(what, str) and ":" in what:
        return Connection(brokers=what)
    if what is not None and not isinstance(what, str):
        raise ConfigError(
            f"a connection is a Connection, a mapping of keys, the name of one, or 'host:port'; "
            f"{type(what).__name__} was given"
        )
    settings = Settings.read()
    return settings.default() if what is None else settings.named(what)


def settings_paths() -> list[Path]:
    """List the files that may contain connections, the nearest first."""
    user = place("config") / FILE_NAME
    return [Path.cwd() / FILE_NAME, user, place("data") / f"{EMBEDDED}.yaml"]


@dataclass(frozen=True)
class Settings:
    """The settings of the files, the nearest first, and of the environment."""

    files: tuple[SettingsFile, ...]
    overrides: Mapping[str, str]

    @classmethod
    def read(cls) -> Settings:
        """Read the files that exist, and the environment."""
        files = tuple(read_settings(path) for path in settings_paths() if path.is_file())
        return cls(files, _environment())

    def names(self) -> list[str]:
        """List the names of all connections, the nearest file's first."""
        return list(dict.fromkeys(name for file in self.files for name in file.connections))

    def default_name(self) -> str | None:
        """Return the name of the default connection, or None if there is none."""
        if chosen := os.environ.get(_PICK):
            return chosen
        if chosen := next((file.default for file in self.files if file.default), None):
            return chosen
        names = [name for name in self.names() if name != EMBEDDED]
        if len(names) > 1:
            raise ConfigError(
                f"there are several connections ({', '.join(names)}) and no default; "
                f"write `default: NAME` into {self.files[0].path}, or set {_PICK}"
            )
        if names:
            return names[0]
        # Brokers in the environment are another cluster than the embedded broker.
        makes_one = "bootstrap.servers" in self.overrides
        return EMBEDDED if EMBEDDED in self.names() and not makes_one else None

    def default(self) -> Connection:
        """Return the default connection, with the overrides of the environment."""
        name = self.default_name()
        if name is not None:
            return self.named(name)
        if self.overrides:
            try:
                return Connection.from_config(self.overrides)
            except ConfigError as error:
                raise ConfigError(f"environment variables {_PREFIX}*: {error}") from None
        raise ConfigError(
            f"no connection is configured (looked in {_listed(settings_paths())}); run `penstock broker "
            f"start`, or set {_PREFIX}BOOTSTRAP_SERVERS, or write a {FILE_NAME} with "
            "`connections: {NAME: {bootstrap.servers: HOST}}`"
        )

    def named(self, name: str) -> Connection:
        """Return the connection of this name; the nearest file wins."""
        for file in self.files:
            if name in file.connections:
                return self._from_file(file, name)
        read = _listed([file.path for file in self.files]) or "none"
        names = self.names()
        hint = nearest(name, names) if names else "there are no connections"
        # Without a similar name the hint already lists them all.
        known = f" (known: {', '.join(names)})" if hint.startswith("did you") else ""
        raise ConfigError(f"no connection is named {name!r}: {hint}{known}; files read: {read}")

    def _from_file(self, file: SettingsFile, name: str) -> Connection:
        folder, foreign = file.path.parent, comes_with_the_folder(file.path)
        overrides = self.overrides if name == self._default_name_or_none() else {}
        try:
            mapping = resolve_references(file.connections[name], folder, confined=foreign)
            kept = {
                key: value for key, value in mapping.items() if _canonical(key) not in overrides
            }
            connection = Connection.from_config({**kept, **overrides})
            if foreign:
                refuse_untrusted(connection.to_config(), overrides, folder)
        except ConfigError as error:
            raise ConfigError(f"connection {name!r} in {file.path}: {error}") from None
        return connection

    def _default_name_or_none(self) -> str | None:
        # A connection asked for by its name must not fail because no default was chosen.
        try:
            return self.default_name()
        except ConfigError:
            return None


def comes_with_the_folder(path: Path) -> bool:
    """Return whether a file belongs to the working directory rather than to the user."""
    return path.parent.resolve() not in (place("config").resolve(), place("data").resolve())


def _environment() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name.startswith(_PREFIX)}
    if unknown := sorted(set(variables) - set(_VARIABLES)):
        hint = nearest(unknown[0], list(_VARIABLES))
        if not hint.startswith("did"):
            hint = f"allowed: {_PREFIX} and a key, dots as underscores"
        raise ConfigError(f"unknown environment variable {unknown[0]}: {hint}")
    return {_canonical(_VARIABLES[name]): value for name, value in variables.items()}


def _canonical(name: str) -> str:
    key = find_key("bootstrap.servers" if name == "brokers" else name)
    return key.name if key else name


def _listed(paths: list[Path]) -> str:
    return ", ".join(str(path) for path in paths)
