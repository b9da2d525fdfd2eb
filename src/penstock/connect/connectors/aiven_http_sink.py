"""Aiven's HTTP sink: records as requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.config_definition import Key, Type, at_least
from penstock.connect.connector_class import Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Rows
from penstock.connect.connectors import document_keys
from penstock.connect.connectors.jdbc_keys import RETRIES
from penstock.connect.connectors.request_bodies import batch_options, body_obstacle, braces
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import MappedClass, given, only

_TYPE = "http.authorization.type"
_NEEDS = {
    "none": (),
    "static": ("http.authorization.header",),
    "apikey": ("http.authorization.header",),
    "oauth2": ("oauth2.access.token.url", "oauth2.client.id", "oauth2.client.secret"),
}


class AivenHttpSink(MappedClass):
    """Requests to an HTTP service, one for each record or for several."""

    names: ClassVar[tuple[str, ...]] = ("io.aiven.kafka.connect.http.HttpSinkConnector",)
    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "documents"
    component: ClassVar[str] = "http"
    differences: ClassVar[tuple[str, ...]] = (
        "Each request has the header `Idempotency-Key`, the place of its record.",
        "Statuses 408, 425, 429 and 5xx are waited for, without a limit; other statuses make "
        "bad records, as `errors.tolerance` says. So does a record without a value.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": "http.url",
        "headers": "http.headers.additional",
        "batch": "batch.max.size",
        "auth": _TYPE,
    }
    keys: ClassVar[tuple[Key, ...]] = (
        Key("http.url", documentation="The address.", importance="HIGH", group="Connection"),
        Key(
            _TYPE,
            documentation="none, static (a header), apikey (the same) or oauth2.",
            importance="HIGH",
            group="Connection",
            check=only(tuple(_NEEDS), "there are no others", any_case=True),
        ),
        Key(
            "http.authorization.header",
            Type.PASSWORD,
            None,
            "The value of the header Authorization.",
            group="Connection",
        ),
        Key("http.headers.content.type", default=None, documentation="The header Content-Type."),
        Key("http.headers.additional", Type.LIST, "", "More headers, as name:value."),
        Key("oauth2.access.token.url", default=None, documentation="Where tokens are fetched."),
        Key("oauth2.client.id", default=None, documentation="The client of oauth2."),
        Key("oauth2.client.secret", Type.PASSWORD, None, "The secret of that client."),
        Key("oauth2.client.scope", default=None, documentation="The scope of tokens."),
        Key(
            "oauth2.response.token.property",
            default="access_token",
            documentation="Where the token is in the reply.",
            check=only(("access_token",), "the token is read from access_token"),
        ),
        Key(
            "batching.enabled",
            Type.BOOLEAN,
            "false",
            "Whether requests have several records.",
            "HIGH",
        ),
        Key("batch.max.size", Type.INT, "500", "How many at most.", check=at_least(1)),
        Key("batch.prefix", default="", documentation="What is before the records: nothing, or [."),
        Key("batch.suffix", default="", documentation="What is after the records: nothing, or ]."),
        Key(
            "batch.separator",
            default="\\n",
            documentation="What is between records: \\n, or a comma.",
        ),
        Key(
            "http.timeout",
            Type.INT,
            "30",
            "The longest time for a request, in seconds.",
            check=at_least(1),
        ),
        document_keys.CA,
    )
    without_effect: ClassVar[KeyTable] = {
        "max.retries": RETRIES,
        "retry.backoff.ms": RETRIES,
        "kafka.retry.backoff.ms": RETRIES,
        "max.outstanding.records": document_keys.BATCHES,
        "oauth2.client.authorization.mode": "the client is named as RFC 6749 recommends",
    }
    refused: ClassVar[KeyTable] = {
        "http.proxy.*": document_keys.NO_PROXY,
        "http.ssl.*": "certificates are always checked; give the authorities (PEM) in penstock.ca",
        "oauth2.request.*": "requests for tokens are those of RFC 6749",
        "oauth2.grant_type*": "tokens are those of client credentials",
    }

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield bodies that are none, and credentials that are missing."""
        for key in _NEEDS[config[_TYPE].lower()]:
            if not config[key]:
                yield (
                    key,
                    f"Invalid value for configuration {key}: {_TYPE} is {config[_TYPE]}, which needs it",
                )
        yield from document_keys.user_obstacle(
            "http.url",
            [config["http.url"]],
            "give http.authorization.type=static, and the header in http.authorization.header",
        )
        if why := body_obstacle(*self._joined(config)):
            yield "batch.separator", f"Invalid value for configuration batch.separator: {why}"
        if any(":" not in pair for pair in config["http.headers.additional"]):
            yield (
                "http.headers.additional",
                "Invalid value for configuration http.headers.additional: a header is name:value",
            )

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that sends the requests."""
        options = {
            "url": braces(config["http.url"]),
            "headers": _headers(config),
            "value": "value",
            **batch_options(*self._joined(config)[:3]),
            "auth": _auth(config),
            "timeout": config["http.timeout"],
            "ca": config["penstock.ca"],
        }
        return {"sink": {"http": given(options)}}

    def _joined(self, config: ConnectorConfig) -> tuple[int, str, str, str]:
        if not config["batching.enabled"]:
            return 1, "", "", ""
        separator = config["batch.separator"]
        return config["batch.max.size"], config["batch.prefix"], config["batch.suffix"], separator


def _headers(config: ConnectorConfig) -> dict[str, str]:
    pairs = (pair.split(":", 1) for pair in config["http.headers.additional"])
    found = {name.strip(): braces(value.strip()) for name, value in pairs}
    if kind := config["http.headers.content.type"]:
        found["Content-Type"] = kind
    return found


def _auth(config: ConnectorConfig) -> dict[str, Any] | None:
    match config[_TYPE].lower():
        case "none":
            return None
        case "oauth2":
            names = ("client_id", "client_secret")
            found = {name: config[f"oauth2.{name.replace('_', '.')}"] for name in names}
            scope = config["oauth2.client.scope"] or ""
            return {
                "oauth": {"token_url": config["oauth2.access.token.url"], **found, "scope": scope}
            }
    secret = config["http.authorization.header"]
    return {"api_key": {"header": "Authorization", "secret": secret}}
