"""Kafka's config providers: `${file:PATH:KEY}`, `${directory:PATH:NAME}` and `${env:NAME}`.

References of Penstock (`${env:NAME}`, `${file:PATH}` for a whole file) are left as they are: they are
resolved where the definition of the pipeline is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.config.secrets import is_secret_key, remember_secret
from penstock.connect.properties_files import read_properties
from penstock.errors import ConfigError

_PACKAGE = "org.apache.kafka.common.config.provider."
FILE, DIRECTORY, ENVIRONMENT = (
    f"{_PACKAGE}FileConfigProvider",
    f"{_PACKAGE}DirectoryConfigProvider",
    f"{_PACKAGE}EnvVarConfigProvider",
)
USUAL = {"file": FILE, "directory": DIRECTORY, "dir": DIRECTORY, "env": ENVIRONMENT}
"""The names that workers usually give the providers: those of connectors whose worker is not known."""
_REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")


def references(config: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return each reference of a configuration: its key, its text, the name of its provider.

    >>> references({"password": "${file:/run/db.properties:password}"})
    [('password', '${file:/run/db.properties:password}', 'file')]
    """
    return [
        (key, match[0], match[1])
        for key, value in config.items()
        for match in _REFERENCE.finditer(value)
    ]


def is_resolvable(reference: str, providers: Mapping[str, str] = USUAL) -> bool:
    """Return whether a reference has a value here: one of a provider, or of Penstock.

    >>> [is_resolvable(each) for each in ("${env:A}", "${file:/a:b}", "${vault:a:b}")]
    [True, True, False]
    """
    match = _REFERENCE.fullmatch(reference)
    return match is not None and (match[1] in ("env", "file") or match[1] in providers)


def resolved(
    config: Mapping[str, str], providers: Mapping[str, str], *, own: bool = True
) -> dict[str, str]:
    """Return a configuration with the values of its providers.

    With `own`, references that Penstock resolves as well (`${env:NAME}`) are left to it.
    """
    return {key: _filled(key, value, providers, own) for key, value in config.items()}


def providers_of(worker: Mapping[str, str]) -> dict[str, str]:
    """Return the providers of a worker's properties: name and class; raise for one that is not here.

    >>> providers_of({"config.providers": "env", "config.providers.env.class": ENVIRONMENT}) == {
    ...     "env": ENVIRONMENT}
    True
    """
    names = [each.strip() for each in worker.get("config.providers", "").split(",")]
    found = {}
    for name in filter(None, names):
        key = f"config.providers.{name}.class"
        given = worker.get(key, "").strip()
        if given not in _READERS:
            known = ", ".join(each.removeprefix(_PACKAGE) for each in _READERS)
            raise ConfigError(f"{key} is {given!r}; allowed: {known} (of {_PACKAGE[:-1]})")
        found[name] = given
    return found


def _filled(key: str, value: str, providers: Mapping[str, str], own: bool) -> str:
    def found(match: re.Match[str]) -> str:
        kind = providers.get(match[1])
        if kind is None or (kind == FILE and match[2] is None):
            return match[0]
        if own and kind == ENVIRONMENT and match[1] == "env":
            return match[0]
        text = _READERS[kind](key, match)
        # In an address, as with ?password=${file:PATH:password}, the name in the reference decides.
        if is_secret_key(key) or is_secret_key(match[3]):
            remember_secret(text)
        return text

    return _REFERENCE.sub(found, value)


def _from_file(key: str, match: re.Match[str]) -> str:
    values = read_properties(Path(match[2]))
    if match[3] not in values:
        raise ConfigError(f"{key}: {match[0]}: {match[2]} has no key {match[3]!r}")
    return values[match[3]]


def _from_directory(key: str, match: re.Match[str]) -> str:
    file = Path(match[2] or "") / match[3]
    if Path(match[3]).name != match[3]:
        raise ConfigError(
            f"{key}: {match[0]}: {match[3]!r} is not the name of a file in that folder"
        )
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"{key}: {match[0]}: {file} cannot be read: {reason}") from None


def _from_environment(key: str, match: re.Match[str]) -> str:
    value = os.environ.get(match[3])
    if value is None:
        raise ConfigError(f"{key}: {match[0]}: the environment variable {match[3]} is not set")
    return value


_READERS: dict[str, Callable[[str, re.Match[str]], str]] = {
    FILE: _from_file,
    DIRECTORY: _from_directory,
    ENVIRONMENT: _from_environment,
}
