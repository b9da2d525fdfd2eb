"""What starts a flow: Kafka, HTTP, a timer, RabbitMQ, JMS, files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import Self

from penstock.errors import nearest
from penstock.flows.definition.cron import Cron
from penstock.flows.definition.kafka_options import AnyKafkaConnection, ConsumerAdvanced
from penstock.flows.definition.model import FlowModel, build, refused
from penstock.flows.expressions import Expression
from penstock.http.http_options import BasicAuth, BearerAuth, HeaderName
from penstock.imports.http_listener.listener_options import ListenerTls, is_loopback
from penstock.pipeline import Source
from penstock.pipeline.registry import component
from penstock.pipeline.values import Duration

_TEN_YEARS = 10 * 366 * 86_400
_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")


class Trigger(FlowModel):
    """The base of the triggers that are not sources of pipelines."""

    name: ClassVar[str]
    main_option: ClassVar[str | None] = None

    def summary(self) -> str:
        """Return what starts the flow, in a few words."""
        return str(getattr(self, self.main_option or "", ""))


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


class KafkaTrigger(Trigger):
    """Records of topics: the value is the payload; topic, partition and offset are attributes."""

    name = "kafka"
    main_option = "topics"

    connection: AnyKafkaConnection | None = Field(
        default=None, description="A named connection, or how to reach the cluster."
    )
    group: str = Field(
        default="", max_length=249, description="The consumer group; default: the flow's name."
    )
    topics: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        min_length=1, description="The topics; one that begins with ^ is a regular expression."
    )
    metadata: tuple[Literal["key", "timestamp"], ...] = Field(
        default=(),
        description="More attributes of the record: its `key` (bytes), its `timestamp` (milliseconds "
        "since 1970).",
    )
    consumers: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="How many partitions are read at the same time; more than one must be less than the "
        "partitions of the topics, which is checked.",
    )
    advanced: ConsumerAdvanced = Field(
        default_factory=ConsumerAdvanced, description="The advanced options of the consumer."
    )

    @field_validator("topics")
    @classmethod
    def _are_topics(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        from penstock.flows.expressions import ExpressionError  # noqa: PLC0415
        from penstock.flows.publish.operations import topic_name  # noqa: PLC0415 - a cycle of imports

        for topic in topics:
            try:
                re.compile(topic) if topic.startswith("^") else topic_name(topic)
            except re.error as error:
                raise refused(
                    f"given {topic!r:.60}, which is not a regular expression: {error}"
                ) from None
            except ExpressionError as error:
                raise refused(f"{error}, or a regular expression that begins with ^") from None
        return topics

    def summary(self) -> str:
        """Return the topics."""
        return ", ".join(self.topics)


class TimerTrigger(Trigger):
    """A message at each time: after an interval, or at the times of a cron expression."""

    name = "timer"
    main_option = "interval"

    interval: Duration | None = Field(
        default=None, ge=0.1, le=_TEN_YEARS, description="The time between two messages."
    )
    cron: str | None = Field(
        default=None,
        description="Five fields: minute, hour, day, month, weekday; as `0 8 * * mon-fri`.",
    )
    zone: str = Field(default="UTC", description="The time zone of `cron`, as `Europe/Berlin`.")
    payload: Expression = Field(
        default=Expression("{time: now()}"),
        validate_default=True,
        description="The payload of each message, made when it is due.",
    )
    missed: Literal["one", "all"] = Field(
        default="one",
        description="What comes after an outage: `one` message for all times that were missed "
        "(`attribute.missed` says how many more there were), or `all` of them.",
    )

    @field_validator("cron")
    @classmethod
    def _is_a_cron(cls, cron: str | None) -> str | None:
        if cron is not None:
            try:
                Cron.read(cron)
            except ValueError as error:
                raise refused(str(error)) from None
        return cron

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, zone: str) -> str:
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - it reads files

        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            raise refused(
                f"given {zone!r:.60}; a zone is written as UTC or Europe/Berlin"
            ) from None
        return zone

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.interval is None) == (self.cron is None):
            raise refused("give 'interval' or 'cron', and not both")
        return self

    def unused(self) -> dict[str, str]:
        """Return what is for a cron expression alone."""
        return self._unless(self.cron is not None, "it is for 'cron'", "zone")

    def summary(self) -> str:
        """Return when."""
        return self.cron or f"every {self.interval:g} s"


class HmacAuth(FlowModel):
    """A signature of the body: HMAC with a key that both sides know, in hexadecimal."""

    secret: SecretStr = Field(min_length=16, description="The key, at least 16 characters.")
    header: HeaderName = Field(default="X-Signature", description="The header with the signature.")
    algorithm: Literal["sha256", "sha512"] = Field(default="sha256", description="The hash.")


class HttpTriggerAuth(FlowModel):
    """Who may send: exactly one of these."""

    token: BearerAuth | None = None
    basic: BasicAuth | None = None
    hmac: HmacAuth | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise refused("give exactly one of: token, basic, hmac")
        return self


class HttpTrigger(Trigger):
    """Requests to a path: the body as payload; id, method, path, query and headers as attributes.

    A request is in Kafka before it is answered.
    """

    name = "http"
    main_option = "path"

    path: str = Field(description="The path, as /orders.")
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = Field(
        default="POST", description="The method."
    )
    host: str = Field(
        default="127.0.0.1", min_length=1, description="The address on which it listens."
    )
    port: int = Field(
        default=8085,
        ge=0,
        le=65535,
        description="The port, which flows of one process may share; 0: any that is free.",
    )
    tls: ListenerTls | None = Field(
        default=None, description="The files `certificate` and `key` (PEM) of https."
    )
    auth: HttpTriggerAuth | None = Field(
        default=None,
        description="Who may send, one of: `token: TOKEN`, `basic: {username, password}`, `hmac: "
        "{secret}` with `header` (default: X-Signature) and `algorithm` (`sha256`, the default, or "
        "`sha512`).",
    )
    allow_anyone: bool = Field(
        default=False, description="Listen without `auth` where other machines can send."
    )
    format: Literal["bytes", "json", "form"] = Field(
        default="bytes",
        description="What a body must be: any `bytes`, `json`, or a `form`, which becomes an object.",
    )
    max_bytes: int = Field(
        default=900_000,
        ge=1,
        le=100_000_000,
        description="The largest body; a larger one gets 413.",
    )
    reply: Literal["accepted", "result"] = Field(
        default="accepted",
        description="`accepted`: 202 with an id as soon as the request is in Kafka; `result`: the "
        "payload at the end of the flow, with the status in `variable.status` or `attribute.status`.",
    )
    timeout: Duration = Field(
        default=30.0, gt=0, le=600, description="How long a request waits for its result; then 504."
    )
    accept_timeout: Duration = Field(
        default=10.0,
        ge=1,
        le=300,
        description="How long Kafka may take for a request; then 503.",
    )
    max_waiting: int = Field(
        default=500,
        ge=1,
        le=10_000,
        description="The most requests that wait at the same time, for Kafka or for their result; "
        "more get 429.",
    )
    idempotency_header: HeaderName = Field(
        default="Idempotency-Key",
        description="The header by which a repeated request is recognized.",
    )

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        if not _PATH.fullmatch(path):
            raise refused(f"given {path!r:.60}; a path is /NAME, with letters, digits and . _ ~ -")
        return path

    @model_validator(mode="after")
    def _is_protected(self) -> Self:
        if not is_loopback(self.host) and self.auth is None and not self.allow_anyone:
            raise refused(
                f"other machines can send to {self.host}: give 'auth', or 'allow_anyone: true' where "
                "that is what you want"
            )
        return self

    def unused(self) -> dict[str, str]:
        """Return what is for results alone."""
        return self._unless(self.reply == "result", "it is for 'reply: result'", "timeout")

    def summary(self) -> str:
        """Return method and path."""
        return f"{self.method} {self.path}"


TRIGGERS: dict[str, type[Trigger]] = {
    cls.name: cls for cls in (KafkaTrigger, HttpTrigger, TimerTrigger)
}
SOURCES = {"rabbitmq": "rabbitmq", "jms": "jms", "file": "files"}
"""Triggers that have the options of a source of pipelines, and its name."""


def read_trigger(given: Any) -> Trigger | Source:
    """Read `{NAME: options}`."""
    if isinstance(given, Trigger | Source):
        return given
    names = sorted([*TRIGGERS, *SOURCES])
    if not isinstance(given, Mapping) or len(given) != 1:
        what = " and ".join(map(str, given)) if isinstance(given, Mapping) else f"{given!r:.60}"
        raise refused(
            f"given {what or 'none'}; a flow has exactly one trigger, as in 'kafka: orders'; known: "
            f"{', '.join(names)}"
        )
    ((name, options),) = given.items()
    if name not in names:
        raise refused(f"there is no trigger {name!r:.60}; {nearest(str(name), names)}")
    cls: Any = TRIGGERS.get(name) or component("source", SOURCES[name])
    made: Trigger | Source = build(
        cls, str(name), {} if options is None else options, cls.main_option
    )
    return made


def trigger_name(trigger: Trigger | Source) -> str:
    """Return the name of a trigger, as a definition writes it."""
    if isinstance(trigger, Trigger):
        return trigger.name
    return next(name for name, source in SOURCES.items() if source == trigger.name)


class _TriggerReader:
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            read_trigger,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda made, info: {
                    trigger_name(made): made.model_dump(
                        mode="json", exclude_unset=True, context=info.context
                    )
                },
                info_arg=True,
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "propertyNames": {"enum": sorted([*TRIGGERS, *SOURCES])}}


AnyTrigger = Annotated[Trigger | Source, _TriggerReader()]
