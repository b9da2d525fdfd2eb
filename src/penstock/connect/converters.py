"""Converters by the names that Connect has for them, and those of a connector: its own, or the worker's.

A converter here is data: a name, the keys that it takes, and from a configuration the options with which
`decode/connect_decode.py` reads records and `encode/connect_encodes.py` writes them.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from penstock.connect.common_keys import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from penstock.connect.config_definition import Checked, Definition
from penstock.connect.converter_keys import (
    AUTH_SOURCE,
    AUTO_REGISTER,
    BEARER,
    CONVERTER_TYPE,
    DECIMAL_FORMAT,
    ENCODING,
    JSON,
    OLD_USER_INFO,
    PLAIN,
    REGISTRY,
    REGISTRY_URL,
    REPLACE_NULL,
    SCHEMA_CONTENT,
    SCHEMAS_ENABLE,
    STRATEGIES,
    STRING,
    USE_LATEST,
    USER_INFO,
)
from penstock.errors import ConfigError, nearest
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.json_schemas import from_document
from penstock.formats.registry.registry_options import RegistryOptions

Config = Mapping[str, "str | None"]
_APACHE = "org.apache.kafka.connect."
_CONFLUENT = "io.confluent.connect."
SIMPLE_HEADERS = f"{_APACHE}storage.SimpleHeaderConverter"
STRING_CONVERTER = f"{_APACHE}storage.StringConverter"
WORKER_CONVERTERS: Mapping[str, str] = {
    KEY_CONVERTER: STRING_CONVERTER,
    VALUE_CONVERTER: STRING_CONVERTER,
}
"""The converters of connectors that name none, where their worker names none either."""
_Options = Callable[[dict[str, Any], str], dict[str, Any]]


@dataclass(frozen=True)
class Converter:
    """One class of converters: what it is called, what it can be used for, and the keys that it takes."""

    name: str
    form: str
    definition: Definition = PLAIN
    uses: tuple[str, ...] = ("key", "value", "header")
    is_apache: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Return its names in configurations: the full one, the last part, and that without Converter."""
        last = self.name.rpartition(".")[2]
        suffix = "HeaderConverter" if last.endswith("HeaderConverter") else "Converter"
        return self.name, last, last.removesuffix(suffix)

    def checked(self, config: Config, use: str) -> list[Checked]:
        """Return the keys of the converter with their values in a configuration without prefix."""
        return self.definition.checked({**config, CONVERTER_TYPE: use})

    def unknown(self, config: Config) -> list[str]:
        """Return the keys of a configuration without prefix that have no effect here."""
        return [name for name in config if name not in self.definition.by_name]


CONVERTERS = (
    Converter(f"{_APACHE}json.JsonConverter", "json", JSON),
    Converter(STRING_CONVERTER, "string", STRING),
    Converter(f"{_APACHE}converters.ByteArrayConverter", "bytes"),
    Converter(f"{_APACHE}converters.ShortConverter", "short"),
    Converter(f"{_APACHE}converters.IntegerConverter", "int"),
    Converter(f"{_APACHE}converters.LongConverter", "long"),
    Converter(f"{_APACHE}converters.FloatConverter", "float"),
    Converter(f"{_APACHE}converters.DoubleConverter", "double"),
    Converter(f"{_APACHE}converters.BooleanConverter", "boolean"),
    Converter(SIMPLE_HEADERS, "simple", Definition(), ("header",)),
    Converter(f"{_CONFLUENT}avro.AvroConverter", "avro", REGISTRY, ("key", "value"), False),
    Converter(
        f"{_CONFLUENT}protobuf.ProtobufConverter", "protobuf", REGISTRY, ("key", "value"), False
    ),
    Converter(
        f"{_CONFLUENT}json.JsonSchemaConverter", "json_schema", REGISTRY, ("key", "value"), False
    ),
)
_BY_NAME = {name: each for each in reversed(CONVERTERS) for name in each.names}


def find_converter(name: str, use: str = "value") -> Converter:
    """Return a converter by its class name or a short name; raise ConfigError for an unknown one.

    >>> find_converter("JsonConverter").name, find_converter("Avro").form
    ('org.apache.kafka.connect.json.JsonConverter', 'avro')
    """
    known = _BY_NAME.get(name.strip())
    if known is None:
        last = name.strip().rpartition(".")[2]
        raise ConfigError(
            f"Invalid value {name} for configuration {use}.converter: Class {name} could not be found. "
            f"{nearest(last, [each.names[1] for each in CONVERTERS])}"
        )
    if use not in known.uses:
        raise ConfigError(
            f"Invalid value {name} for configuration {use}.converter: {known.names[1]} is for "
            f"{' and '.join(known.uses)} only"
        )
    return known


@dataclass(frozen=True)
class Chosen:
    """A converter with its configuration; `options` is None for headers of SimpleHeaderConverter."""

    converter: Converter
    config: Mapping[str, str]
    options: ConverterOptions | None


@dataclass(frozen=True)
class Converters:
    """The converters of one connector, and remarks on keys that have no effect."""

    key: Chosen
    value: Chosen
    header: Chosen
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[ConverterOptions, ConverterOptions]:
        """Return the options for keys and for values."""
        key, value = self.key.options, self.value.options
        assert key is not None and value is not None  # noqa: S101 - only headers may have none
        return key, value


def for_connector(config: Config, worker_defaults: Config) -> Converters:
    """Return the converters of a connector; raise ConfigError where there is none, or a key is wrong.

    As in Connect, keys `value.converter.*` of a connector count only where it names `value.converter`,
    too: without it both the class and its keys are those of the worker.

    >>> worker = {"key.converter": "StringConverter", "value.converter": "JsonConverter"}
    >>> own = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    >>> found = for_connector(own, worker)
    >>> found.key.options.form, found.value.options.schemas
    ('string', False)
    """
    notes: list[str] = []
    key = _chosen(KEY_CONVERTER, config, worker_defaults, notes)
    value = _chosen(VALUE_CONVERTER, config, worker_defaults, notes)
    simple = {HEADER_CONVERTER: SIMPLE_HEADERS}
    header = _chosen(HEADER_CONVERTER, config, {**simple, **worker_defaults}, notes)
    return Converters(key, value, header, tuple(notes))


def _chosen(prefix: str, config: Config, worker: Config, notes: list[str]) -> Chosen:
    use = prefix.partition(".")[0]
    given, own = (config, True) if config.get(prefix) else (worker, False)
    if not given.get(prefix):
        raise ConfigError(f'Missing required configuration "{prefix}" which has no default value.')
    converter = find_converter(str(given[prefix]), use)
    keys = _under(prefix, given)
    if not own and (ignored := _under(prefix, config)):
        names = ", ".join(f"{prefix}.{name}" for name in ignored)
        notes.append(
            f"{names}: no effect without {prefix}, as in Connect; add it to this connector"
        )
    notes += [f"{prefix}.{name}: no effect here" for name in converter.unknown(keys)]
    return Chosen(converter, keys, _options(converter, keys, use))


def _under(prefix: str, config: Config) -> dict[str, str]:
    """Return the keys below a prefix, without it."""
    start = f"{prefix}."
    return {
        name.removeprefix(start): value
        for name, value in config.items()
        if name.startswith(start) and value is not None and name != f"{prefix}.plugin.version"
    }


def _options(converter: Converter, config: Config, use: str) -> ConverterOptions | None:
    checked = converter.checked(config, use)
    errors = [text for each in checked for text in each.errors]
    if errors:
        raise ConfigError(f"{use}.converter ({converter.names[1]}): {'; '.join(errors)}")
    if converter.form == "simple":
        return None
    values = {each.key.name: each.value for each in checked}
    try:
        return ConverterOptions.model_validate(
            {"form": converter.form, **_READERS.get(converter.form, _nothing)(values, use)}
        )
    except ValidationError as error:
        reasons = "; ".join(each["msg"].removeprefix("Value error, ") for each in error.errors())
        raise ConfigError(f"{use}.converter ({converter.names[1]}): {reasons}") from None


def _nothing(_values: dict[str, Any], _use: str) -> dict[str, Any]:
    return {}


def _string(values: dict[str, Any], use: str) -> dict[str, Any]:
    try:
        codecs.lookup(values[ENCODING])
    except LookupError:
        raise ConfigError(
            f"{use}.converter.{ENCODING}: the character set {values[ENCODING]!r:.60} is not known; "
            "for example UTF-8, ISO-8859-1, UTF-16BE"
        ) from None
    return {"encoding": values[ENCODING]}


def _json(values: dict[str, Any], use: str) -> dict[str, Any]:
    made = {
        "schemas": values[SCHEMAS_ENABLE],
        "decimals": values[DECIMAL_FORMAT].lower(),
        "replace_null": values[REPLACE_NULL],
    }
    if values[SCHEMA_CONTENT] and values[SCHEMAS_ENABLE]:
        made["schema"] = _schema_content(values[SCHEMA_CONTENT], use)
    return made


def _schema_content(text: str, use: str) -> Any:
    try:
        document = json.loads(text)
        from_document(document)
    except (ConfigError, ValueError, RecursionError) as error:
        raise ConfigError(f"{use}.converter.{SCHEMA_CONTENT} is not a schema: {error}") from None
    return document


def _registry(values: dict[str, Any], use: str) -> dict[str, Any]:
    return {
        "registry": _registry_options(values, use),
        "register": values[AUTO_REGISTER],
        "use_latest": values[USE_LATEST],
        "subject": STRATEGIES[values[f"{use}.subject.name.strategy"]],
    }


def _registry_options(values: dict[str, Any], use: str) -> RegistryOptions:
    given: dict[str, Any] = {"url": ",".join(values[REGISTRY_URL])}
    user_info = values[USER_INFO] or values[OLD_USER_INFO]
    if values[AUTH_SOURCE].upper() == "USER_INFO":
        if not user_info or ":" not in user_info:
            raise ConfigError(f"{use}.converter.{USER_INFO} must be of the form USER:PASSWORD")
        given["username"], _, given["password"] = user_info.partition(":")
    if values[f"{BEARER}credentials.source"] == "OAUTHBEARER":
        given["oauth"] = {
            "token_url": values[f"{BEARER}issuer.endpoint.url"],
            "client_id": values[f"{BEARER}client.id"],
            "client_secret": values[f"{BEARER}client.secret"],
            "scope": values[f"{BEARER}scope"] or "",
        }
    return RegistryOptions.model_validate(given)


_READERS: dict[str, _Options] = {
    "json": _json,
    "string": _string,
    "avro": _registry,
    "protobuf": _registry,
    "json_schema": _registry,
}
