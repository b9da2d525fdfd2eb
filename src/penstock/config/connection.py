"""One description of a cluster for librdkafka, the Java client and Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, SecretStr
from pydantic import model_validator as validates

from penstock.config.checks import CALLBACKS, read_keys
from penstock.config.consistency import inconsistencies
from penstock.config.java_settings import to_jvm
from penstock.config.keys import Value, find_key
from penstock.config.native import to_librdkafka
from penstock.config.secrets import is_secret_key, mask_mapping, remember_secret
from penstock.errors import ConfigError

ClientRole = Literal["producer", "consumer", "admin"]
Protocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
Mechanism = Literal["GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

# Spark refuses the first three: it stores the offsets itself, joins no group, has no transactions.
_NOT_FOR_SPARK = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "interceptor.classes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "transactional.id",
    }
)


class Connection(BaseModel):
    """A Kafka cluster and how to reach it, written once.

    Give librdkafka's names in a mapping, or the same names with underscores as keywords.
    Producer and consumer settings go into `options`.

    >>> connection = Connection.from_config({"metadata.broker.list": "localhost", "linger.ms": 5})
    >>> connection.brokers
    'localhost:9092'
    >>> connection == Connection(brokers="localhost", options={"linger.ms": 5})
    True
    >>> connection.librdkafka("producer")
    {'bootstrap.servers': 'localhost:9092', 'linger.ms': 5}
    >>> connection.spark()
    {'kafka.bootstrap.servers': 'localhost:9092', 'kafka.linger.ms': '5'}
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    brokers: str = Field(description="Addresses of brokers; a host without a port means 9092.")
    client_id: str | None = None
    security_protocol: Protocol | None = None
    sasl_mechanism: Mechanism | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_kerberos_service_name: str | None = None
    sasl_kerberos_principal: str | None = None
    sasl_kerberos_keytab: str | None = None
    sasl_oauthbearer_method: Literal["default", "oidc"] | None = None
    sasl_oauthbearer_client_id: str | None = None
    sasl_oauthbearer_client_secret: SecretStr | None = None
    sasl_oauthbearer_scope: str | None = None
    sasl_oauthbearer_token_endpoint_url: str | None = None
    ssl_ca_location: str | None = None
    ssl_ca_pem: str | None = None
    ssl_certificate_location: str | None = None
    ssl_certificate_pem: str | None = None
    ssl_key_location: str | None = None
    ssl_key_pem: SecretStr | None = None
    ssl_key_password: SecretStr | None = None
    ssl_endpoint_identification_algorithm: Literal["none", "https"] | None = None
    options: dict[str, str | int | float | bool | SecretStr] = Field(
        default_factory=dict, description="Any other key of librdkafka, under its own name."
    )

    @classmethod
    def from_config(cls, mapping: Mapping[str, Any]) -> Connection:
        """Read librdkafka's names; raise one ConfigError with all problems."""
        if not isinstance(mapping, Mapping):
            given = type(mapping).__name__
            raise ConfigError(f"a connection is a mapping of keys to values; {given} was given")
        return cls.model_validate(dict(mapping))

    @validates(mode="wrap")
    @classmethod
    def _check(cls, data: Any, build: ModelWrapValidatorHandler[Connection]) -> Connection:
        """Read keywords and keys alike, so that both are checked by the same table."""
        if not isinstance(data, Mapping):
            return build(data)
        values = _checked(list(_items(data)))
        fields: dict[str, Any] = {"options": {}}
        for name, value in values.items():
            kept: Value | SecretStr = value
            if is_secret_key(name):
                remember_secret(value)
                kept = SecretStr(str(value))
            target = fields if _FIELDS.get(name) else fields["options"]
            target[_FIELDS.get(name, name)] = kept
        return build(fields)

    def to_config(self) -> dict[str, Value]:
        """Return every key under its librdkafka name, with real secrets: the inverse of `from_config`."""
        given = {key: getattr(self, field) for key, field in _FIELDS.items()} | self.options
        return {key: _plain(value) for key, value in given.items() if value is not None}

    def describe(self) -> dict[str, Any]:
        """Return every key with secrets masked."""
        return mask_mapping(self.to_config())

    def librdkafka(self, role: ClientRole | None = None, **overrides: Any) -> dict[str, Any]:
        """Return the configuration for confluent-kafka, real secrets included.

        Keys of another role are left out. An override may be written with underscores, may be one
        of confluent-kafka's callbacks, and removes the key when it is None.

        >>> Connection(brokers="localhost").librdkafka("consumer", group_id="readers")
        {'bootstrap.servers': 'localhost:9092', 'group.id': 'readers'}
        """
        callbacks = {name: call for name, call in overrides.items() if name in CALLBACKS}
        changed = {_key_name(name): value for name, value in overrides.items()}
        changed = {_canonical(n): v for n, v in changed.items() if n not in CALLBACKS}
        merged = {n: _plain(v) for n, v in (self.to_config() | changed).items() if v is not None}
        return {**to_librdkafka(_checked(list(merged.items())), role), **callbacks}

    def jvm(self) -> dict[str, str]:
        """Return the configuration for the Java client, real secrets included."""
        return to_jvm(self.to_config())

    def spark(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source and sink, without those that Spark refuses."""
        settings = self.jvm().items()
        return {f"kafka.{name}": value for name, value in settings if name not in _NOT_FOR_SPARK}

    @property
    def group_id(self) -> str | None:
        """Return the consumer group, if one is given."""
        group = self.options.get("group.id")
        return None if group is None else str(group)

    @property
    def max_poll_records(self) -> int | None:
        """Return the maximum number of records of one poll: a Java key that our own consumer supports."""
        count = self.options.get("max.poll.records")
        return count if isinstance(count, int) else None

    def __setattr__(self, name: str, value: Any) -> None:
        # pydantic's own refusal prints the value, which may be a secret.
        raise ConfigError(f"a connection cannot be changed ({name}); make another one instead")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return ((name, value) for name, value in super().__repr_args__() if value)


def _items(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if name == "options" and isinstance(value, Mapping):
            yield from ((key, _plain(item)) for key, item in value.items())
        elif value is not None or name not in Connection.model_fields:
            yield _key_name(name), _plain(value)


def _checked(items: list[tuple[str, Any]]) -> dict[str, Value]:
    checked = read_keys(items)
    problems = checked.problems + list(inconsistencies(checked))
    if len(problems) > 1:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise ConfigError(f"the connection has {len(problems)} problems:{lines}")
    if problems:
        raise ConfigError(problems[0])
    return checked.values


def _plain(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _key_name(name: str) -> str:
    if name in _KEYWORDS:
        return _KEYWORDS[name]
    dotted = str(name).replace("_", ".")
    return dotted if not find_key(name) and find_key(dotted) else name


def _canonical(name: str) -> str:
    key = find_key(name)
    return key.name if key else name


_KEYWORDS = {"brokers": "bootstrap.servers", "sasl_mechanism": "sasl.mechanisms"}
_FIELDS = {
    _KEYWORDS.get(field, field.replace("_", ".")): field
    for field in Connection.model_fields
    if field != "options"
}
