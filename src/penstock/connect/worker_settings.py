"""The property file of a Connect worker: what of it is used here, and what stands in for the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from penstock.config import Connection
from penstock.config.secrets import is_secret_key, remember_secret
from penstock.connect.common_keys import KEY_CONVERTER, VALUE_CONVERTER
from penstock.connect.config_providers import USUAL, providers_of, resolved
from penstock.connect.converters import for_connector
from penstock.connect.java_client import plain_addresses
from penstock.connect.java_security import PREFIXES, WrongKeyError, connection_keys
from penstock.connect.properties_files import PropertyFile, read_property_file
from penstock.connect.worker_defaults import CONNECT_WORKER, CONVERTERS, WorkerDefaults
from penstock.connect.worker_keys import CHECKED, CLIENT_KEYS, NOTES, PREFIXED, WITHOUT_EFFECT
from penstock.errors import ConfigError

_BROKERS = "bootstrap.servers"
_LISTENER = re.compile(r"(https?)://([^/:\[\]]*|\[[0-9a-fA-F:.]+\]):(\d{1,5})/?", re.IGNORECASE)
_PROVIDER = re.compile(r"config\.providers\.[^.]+\.class")
_OWN = (_BROKERS, "listeners", "rest.host.name", "rest.port")
_PORT = 8083


@dataclass(frozen=True)
class Listener:
    """Where the REST API listens."""

    host: str
    port: int = _PORT
    tls: bool = False

    @classmethod
    def of(cls, text: str) -> Listener:
        """Read one; without a host it is every address of the machine, as in Connect.

        >>> Listener.of("http://localhost:8083"), Listener.of("HTTPS://:8443")
        (Listener(host='localhost', port=8083, tls=False), Listener(host='0.0.0.0', port=8443, tls=True))
        """
        match = _LISTENER.fullmatch(text.strip())
        if match is None or int(match[3]) > 65535:
            raise ValueError(
                f"{text!r} is not a listener; allowed: http://HOST:PORT, https://HOST:PORT"
            )
        every = "0.0.0.0"  # noqa: S104 - what the file asks for; the server refuses it without a login
        return cls(match[2] or every, int(match[3]), match[1].lower() == "https")


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker's properties mean here; notes and warnings have their keys."""

    file: PropertyFile
    defaults: WorkerDefaults
    listener: Listener | None = None
    offsets_file: Path | None = None
    notes: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)


def worker_from_environment() -> WorkerDefaults:
    """Return the defaults of the worker whose property file the environment names; none without."""
    path = os.environ.get(CONNECT_WORKER)
    return read_worker(Path(path)).defaults if path else WorkerDefaults()


def read_worker(path: Path) -> WorkerSettings:
    """Read the property file of a worker; raise with file and line where a value is wrong."""
    return worker_settings(read_property_file(path))


def worker_settings(file: PropertyFile) -> WorkerSettings:
    """Return what properties mean; raise where the cluster or a converter is missing or wrong.

    >>> lines = {"bootstrap.servers": "b:9092", "key.converter": "String", "value.converter": "String"}
    >>> found = worker_settings(PropertyFile(Path("w"), {**lines, "group.id": "g"}))
    >>> found.notes["group.id"], found.defaults.connection
    ('workers of one store work together: --store, or PENSTOCK_STORE', {'bootstrap.servers': 'b:9092'})
    """
    given = _resolved(file)
    for key in (_BROKERS, KEY_CONVERTER, VALUE_CONVERTER):
        if not given.get(key):
            raise ConfigError(
                f"{file.path} has no {key}; a worker of Kafka Connect has one as well"
            )
    _require_valid(file, given)
    notes, warnings = dict[str, str](), dict[str, str]()
    connection = _connection(file, given, warnings)
    used = {key for key in given if key.startswith((*CONVERTERS, *PREFIXES))}
    used |= {key for key in given if key == "config.providers" or _PROVIDER.fullmatch(key)}
    used |= {*_OWN, *CLIENT_KEYS, *warnings, *_used_of_clients(given)}
    for key in given:
        if key not in used:
            _remark(key, given[key], notes, warnings)
    offsets = given.get("offset.storage.file.filename")
    return WorkerSettings(
        file,
        WorkerDefaults(connection, _converters(file, given, warnings), _providers(given)),
        _listener(file, given, warnings),
        Path(offsets) if offsets else None,
        notes,
        warnings,
    )


def _resolved(file: PropertyFile) -> dict[str, str]:
    try:
        given = resolved(file.values, providers_of(file.values), own=False)
    except ConfigError as error:
        key = str(error).partition(":")[0].partition(" ")[0]
        raise file.wrong(key if key in file.lines else "config.providers", error) from None
    for key, value in given.items():
        if is_secret_key(key) and not key.endswith("jaas.config"):
            remember_secret(value)
    return given


def _providers(given: Mapping[str, str]) -> dict[str, str]:
    return {**USUAL, **providers_of(given)}


def _require_valid(file: PropertyFile, given: Mapping[str, str]) -> None:
    for each in CHECKED.checked(given):
        if each.key.name in given and each.errors:
            raise file.wrong(each.key.name, each.errors[0])


def _connection(
    file: PropertyFile, given: Mapping[str, str], warnings: dict[str, str]
) -> dict[str, str]:
    """Return the cluster of the clients of connectors: in Connect those with a prefix count."""
    sources = {_BROKERS: _BROKERS, **{key: key for key in CLIENT_KEYS if key in given}}
    for prefix, names in PREFIXED.items():
        sources |= {to: prefix + key for key, to in names.items() if prefix + key in given}
    made = {key: given[source].strip() for key, source in sources.items()}
    made[_BROKERS] = plain_addresses(made[_BROKERS])
    try:
        found, unused = connection_keys(_security(file, given))
    except WrongKeyError as error:
        text = f"{error.key} cannot be used: {error}"
        raise file.wrong(_source_of(error.key, given), text) from None
    for key in unused:
        if not key.startswith(tuple(WITHOUT_EFFECT)):
            warnings[_source_of(key, given)] = "a connection does not use it"
    made |= found
    try:
        Connection.from_config(made)
    except ConfigError as error:
        named = [key for key in made if key in str(error)]
        key = sources.get(named[0], named[0]) if named else _BROKERS
        raise file.wrong(_source_of(key, given), error) from None
    return made


def _security(file: PropertyFile, given: Mapping[str, str]) -> dict[str, str]:
    made = {key: value for key, value in given.items() if key.startswith(PREFIXES)}
    seen: dict[str, str] = {}
    for prefix in PREFIXED:
        for key, value in given.items():
            name = key.removeprefix(prefix)
            if name == key or not name.startswith(PREFIXES):
                continue
            other = seen.setdefault(name, key)
            if given[other] != value:
                raise file.wrong(
                    key,
                    f"{key} and {other} are different; a connector has one connection for all of its "
                    "clients: give them the same value",
                )
            made[name] = value
    return made


def _source_of(key: str, given: Mapping[str, str]) -> str:
    names = (key, *(prefix + key for prefix in PREFIXED))
    return next((name for name in reversed(names) if name in given), key)


def _used_of_clients(given: Mapping[str, str]) -> Iterator[str]:
    for prefix, names in PREFIXED.items():
        for key in given:
            name = key.removeprefix(prefix)
            if name != key and (name in names or name.startswith(PREFIXES)):
                yield key


def _converters(
    file: PropertyFile, given: Mapping[str, str], warnings: dict[str, str]
) -> dict[str, str]:
    made = {key: value for key, value in given.items() if key.startswith(CONVERTERS)}
    try:
        found = for_connector({}, made)
    except ConfigError as error:
        named = [key for key in CONVERTERS if key in str(error)]
        raise file.wrong(named[0] if named else VALUE_CONVERTER, error) from None
    for note in found.notes:
        key, _, text = note.partition(": ")
        warnings[key] = text
    return made


def _listener(
    file: PropertyFile, given: Mapping[str, str], warnings: dict[str, str]
) -> Listener | None:
    texts = [each for each in given.get("listeners", "").split(",") if each.strip()]
    try:
        found = [Listener.of(each) for each in texts]
    except ValueError as error:
        raise file.wrong("listeners", error) from None
    if len(found) > 1:
        warnings["listeners"] = f"there is one listener; the first one is used: {texts[0].strip()}"
    if found:
        return found[0]
    if "rest.port" not in given and "rest.host.name" not in given:
        return None
    return Listener(given.get("rest.host.name") or "127.0.0.1", int(given.get("rest.port", _PORT)))


def _remark(key: str, value: str, notes: dict[str, str], warnings: dict[str, str]) -> None:
    if key == "topic.creation.enable":
        target = notes if value.strip().lower() == "true" else warnings
        target[key] = "topics that do not exist are created"
        return
    for texts, target in ((NOTES, notes), (WITHOUT_EFFECT, warnings)):
        for start, text in texts.items():
            if key.startswith(start):
                target[key] = text
                return
    known = [name.rstrip(".") for name in (*NOTES, *CLIENT_KEYS, *_OWN, *CONVERTERS)]
    near = get_close_matches(key, known, n=1, cutoff=0.8)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    warnings[key] = f"this key is not known, and has no effect{hint}"
