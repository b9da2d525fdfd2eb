"""The options of Kafka in flows, each under its documented meaning and default.

An option without an effect on this engine is accepted, and says so: in its description, and in
`penstock flows check` where a definition gives it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import Self

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.flows.definition.model import FlowModel, build, refused

_FETCHES = frozenset({"fetch_default_bytes", "fetch_max_mb", "fetch_wait_ms"})
_SPARK = "the engine assigns partitions itself and is not a member of a group"


def option(default: Any, description: str, key: str = "", without: str = "", **limits: Any) -> Any:
    """Return a field: `key` is the setting of Kafka's client, `without` why it has no effect."""
    text = f"{description} No effect: {without}." if without else description
    return Field(
        default=default,
        description=text,
        json_schema_extra={"key": key, "no_effect": without},
        **limits,
    )


class KafkaConnection(FlowModel):
    """How to reach a Kafka cluster."""

    addresses: str = Field(min_length=1, description="The brokers, as `host:port,host:port`.")
    version: str = option(
        "1.1",
        "The version of the cluster.",
        without="the client finds the version out when it connects",
        pattern=r"^\d+\.\d+(\.\d+)?$",
    )
    sasl: Literal["plaintext", "plain", "scram"] = Field(
        default="plaintext", description="How to log in: not at all, SASL/PLAIN or SASL/SCRAM."
    )
    username: str | None = Field(default=None, description="The user, for `plain` and `scram`.")
    password: SecretStr | None = Field(default=None, description="Its password.")
    scram: Literal["SHA-256", "SHA-512"] | None = Field(
        default=None, description="The hash of `sasl: scram`; default with it: SHA-256."
    )
    tls: bool = Field(default=False, description="Whether connections are encrypted.")
    client_certificate: str | None = Field(
        default=None, description="PEM file of the client's certificate; with `tls`."
    )
    client_key: str | None = Field(default=None, description="PEM file of its key; with `tls`.")
    server_certificate: str | None = Field(
        default=None, description="PEM file of the authority of the servers; with `tls`."
    )

    @field_validator("version", mode="before")
    @classmethod
    def _may_be_a_number(cls, version: Any) -> Any:
        return str(version) if isinstance(version, float) else version

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.sasl != "plaintext" and (not self.username or self.password is None):
            raise refused(f"'sasl: {self.sasl}' needs 'username' and 'password'")
        if self.sasl == "plaintext" and (self.username or self.password):
            raise refused("'username' and 'password' need 'sasl: plain' or 'sasl: scram'")
        if self.scram and self.sasl != "scram":
            raise refused("'scram' needs 'sasl: scram'")
        for name in ("client_certificate", "client_key", "server_certificate"):
            if getattr(self, name) and not self.tls:
                raise refused(f"{name!r} needs 'tls: true'")
        if (self.client_certificate is None) != (self.client_key is None):
            raise refused(
                "'client_certificate' and 'client_key' belong together: give both or neither"
            )
        self.connection()
        return self

    def connection(self) -> Connection:
        """Return the connection of the client and the engine."""
        mechanism = {"plain": "PLAIN", "scram": f"SCRAM-{self.scram or 'SHA-256'}"}.get(self.sasl)
        protocol = ("sasl_" if mechanism else "") + ("ssl" if self.tls else "plaintext")
        given = {
            "bootstrap.servers": self.addresses,
            "security.protocol": protocol,
            "sasl.mechanisms": mechanism,
            "sasl.username": self.username,
            "sasl.password": self.password.get_secret_value() if self.password else None,
            "ssl.certificate.location": self.client_certificate,
            "ssl.key.location": self.client_key,
            "ssl.ca.location": self.server_certificate,
        }
        try:
            return Connection.from_config({name: value for name, value in given.items() if value})
        except ConfigError as error:
            raise refused(str(error)) from None


def _read_connection(given: Any) -> str | KafkaConnection:
    if isinstance(given, str | KafkaConnection):
        return given
    if not isinstance(given, Mapping):
        raise refused(
            f"given {given!r:.60}; give the name of a connection, or a mapping with 'addresses'"
        )
    made: KafkaConnection = build(KafkaConnection, "", given, None)
    return made


class _ConnectionReader:
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _read_connection,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda made, info: (
                    made
                    if isinstance(made, str)
                    else made.model_dump(mode="json", exclude_unset=True, context=info.context)
                ),
                info_arg=True,
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, {"type": "object", "required": ["addresses"]}]}


AnyKafkaConnection = Annotated[str | KafkaConnection, _ConnectionReader()]
"""The name of a connection, or how to reach a cluster."""


class ConsumerAdvanced(FlowModel):
    """The advanced options of the consumer; times in milliseconds."""

    confirm: Literal["after-success", "at-once"] = Field(
        default="after-success",
        description="When a message is confirmed (its offset committed): after the flow succeeded, which "
        "is at-least-once, or as soon as it is read, which is at-most-once.",
    )
    isolation: Literal["read-uncommitted", "read-committed"] = option(
        "read-uncommitted",
        "Whether records of transactions that are not committed are read.",
        "isolation.level",
    )
    retry_backoff_ms: int = option(
        2000,
        "The wait before a failed request is sent again.",
        "retry.backoff.ms",
        ge=0,
        le=300_000,
    )
    request_timeout_ms: int = option(
        30_000, "The longest time for a request.", "request.timeout.ms", ge=1000, le=300_000
    )
    session_timeout_ms: int = option(
        10_000, "After what time without a heartbeat a consumer is given up.", without=_SPARK, ge=1
    )
    heartbeat_ms: int = option(3000, "How often a heartbeat is sent.", without=_SPARK, ge=1)
    rebalance_check_ms: int = option(
        60_000, "How often is checked whether the group must be rebalanced.", without=_SPARK, ge=1
    )
    rebalance_strategy: Literal["range", "round-robin"] = option(
        "range", "How partitions are assigned to consumers.", without=_SPARK
    )
    rebalance_retries: int = option(4, "How often a rebalance is tried.", without=_SPARK, ge=0)
    rebalance_backoff_ms: int = option(2000, "The wait between these tries.", without=_SPARK, ge=0)
    fetch_min_bytes: int = option(
        1, "The least bytes of a fetch.", "fetch.min.bytes", ge=1, le=100_000_000
    )
    fetch_default_bytes: int = option(
        1_048_576,
        "The most bytes of one partition in a fetch; a larger record is fetched alone.",
        "max.partition.fetch.bytes",
        ge=1,
        le=1_000_000_000,
    )
    fetch_max_mb: int = option(
        0,
        "The most megabytes of a fetch; 0: the client's own limit.",
        "fetch.max.bytes",
        ge=0,
        le=2000,
    )
    fetch_wait_ms: int = option(
        250,
        "How long a broker waits for the least bytes.",
        "fetch.max.wait.ms",
        ge=0,
        le=300_000,
    )
    commit_interval_ms: int = option(
        1000,
        "How often offsets are committed.",
        without="offsets are committed after each batch, when its messages are confirmed",
        ge=1,
    )
    initial_offset: Literal["newest", "latest", "oldest"] = Field(
        default="newest",
        description="Where a group without committed offsets begins: with messages that come after the "
        "start (`newest`, or `latest`), or with the first one (`oldest`).",
    )
    offset_retention_s: int = option(
        0,
        "For how many seconds committed offsets are stored; 0: without a limit.",
        without="Kafka 2.1 and later have it as a setting of the brokers (offsets.retention.minutes)",
        ge=0,
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.heartbeat_ms >= self.session_timeout_ms:
            raise refused(
                f"heartbeat_ms ({self.heartbeat_ms}) must be less than session_timeout_ms "
                f"({self.session_timeout_ms})"
            )
        return self

    def settings(self) -> dict[str, Any]:
        """Return the settings of the engine's consumer."""
        return {**self.defaults(), **self.given()}

    def given(self) -> dict[str, Any]:
        """Return the settings of the options that are given."""
        return self._settings(self.model_fields_set)

    def defaults(self) -> dict[str, Any]:
        """Return the settings of the others: the engine has its own sizes and waits of fetches."""
        return self._settings({*type(self).model_fields} - self.model_fields_set - _FETCHES)

    def _settings(self, names: Collection[str]) -> dict[str, Any]:
        found = {key: value for name, key, value in settings_of(self) if name in names}
        if "isolation" in names:
            found["isolation.level"] = self.isolation.replace("-", "_")
        if "retry_backoff_ms" in names:
            # The least wait that the client knows: without the setting it has a longer one.
            found["retry.backoff.ms"] = max(1, self.retry_backoff_ms)
            # A wait that grows: clients cut the first one to the longest, which is a second by default.
            found["retry.backoff.max.ms"] = max(1000, self.retry_backoff_ms)
        if self.fetch_max_mb == 0:
            found.pop("fetch.max.bytes", None)
        elif "fetch_max_mb" in names:
            found["fetch.max.bytes"] = self.fetch_max_mb * 2**20
        return found


class ProducerAdvanced(FlowModel):
    """The advanced options of the producer; 0 leaves a limit of batches to the client."""

    max_message_bytes: int = option(
        1_000_000, "The largest message.", "message.max.bytes", ge=1000, le=1_000_000_000
    )
    acks: Literal["none", "leader", "all"] = option(
        "leader", "Who must have a message before it counts as written.", "acks"
    )
    request_timeout_ms: int = option(
        10_000, "The longest time for a request.", "request.timeout.ms", ge=1, le=900_000
    )
    idempotent: bool = option(
        False,
        "Whether a message that the client sends again is written once; it needs all acknowledgements.",
        "enable.idempotence",
    )
    flush_bytes: int = option(
        0, "After how many bytes a batch is sent.", "batch.size", ge=0, le=2_147_483_647
    )
    flush_messages: int = option(
        0,
        "After how many messages a batch is sent.",
        without="the client sends a batch by its bytes or its time; 'flush_max_messages' limits it",
        ge=0,
    )
    flush_interval_ms: int = option(
        0, "After what time a batch is sent.", "linger.ms", ge=0, le=900_000
    )
    flush_max_messages: int = option(
        0, "The most messages of a batch.", "batch.num.messages", ge=0, le=1_000_000
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.idempotent and "acks" in self.model_fields_set and self.acks != "all":
            raise refused(f"'idempotent: true' needs 'acks: all', given {self.acks!r}")
        return self

    def settings(self) -> dict[str, Any]:
        """Return librdkafka's settings."""
        given = {key: value for _, key, value in settings_of(self)}
        acks = "all" if self.idempotent else self.acks
        given["acks"] = {"none": 0, "leader": 1, "all": "all"}[acks]
        zero = ("batch.size", "linger.ms", "batch.num.messages")
        return {key: value for key, value in given.items() if not (key in zero and value == 0)}


def settings_of(model: FlowModel) -> Iterator[tuple[str, str, Any]]:
    """Yield the options of a model that are settings of Kafka's client: name, setting and value."""
    for name, field in type(model).model_fields.items():
        if key := _extra(field).get("key"):
            yield name, str(key), getattr(model, name)


def without_effect(model: FlowModel) -> dict[str, str]:
    """Return the given options that have no effect on this engine, each with the reason.

    >>> list(without_effect(ConsumerAdvanced(heartbeat_ms=100)))
    ['heartbeat_ms']
    """
    fields = {name: type(model).model_fields[name] for name in model.model_fields_set}
    reasons = {name: str(_extra(field).get("no_effect") or "") for name, field in fields.items()}
    return {name: reason for name, reason in reasons.items() if reason}


def _extra(field: FieldInfo) -> Mapping[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, Mapping) else {}


def check_consumers(consumers: int, partitions: Mapping[str, int]) -> None:
    """Raise where a flow has more consumers than the partitions of its topics allow.

    >>> check_consumers(2, {"orders": 3})
    >>> check_consumers(3, {"orders": 3})
    Traceback (most recent call last):
    penstock.errors.ConfigError: consumers is 3, and must be less than the partitions of its topics, \
which are 3 (orders: 3); give at most 2, or add partitions
    """
    total = sum(partitions.values())
    if consumers > 1 and consumers >= total:
        each = ", ".join(f"{topic}: {count}" for topic, count in sorted(partitions.items()))
        most = max(1, total - 1)
        raise ConfigError(
            f"consumers is {consumers}, and must be less than the partitions of its topics, which are "
            f"{total} ({each}); give at most {most}, or add partitions"
        )
