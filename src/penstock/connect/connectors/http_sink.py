"""Confluent's HTTP sink: records as requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.config_definition import Key
from penstock.connect.connector_class import Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Rows
from penstock.connect.connectors import document_keys, http_keys
from penstock.connect.connectors.request_bodies import (
    batch_options,
    body_obstacle,
    braces,
    statuses,
)
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import MappedClass, given


class HttpSink(MappedClass):
    """Requests to an HTTP service, one for each record or for several."""

    names: ClassVar[tuple[str, ...]] = ("io.confluent.connect.http.HttpSinkConnector",)
    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "documents"
    component: ClassVar[str] = "http"
    differences: ClassVar[tuple[str, ...]] = (
        "Each request has the header `Idempotency-Key`, the place of its record.",
        "Statuses 408, 425, 429 and 5xx are waited for, without a limit; other statuses make "
        "bad records, as `errors.tolerance` says.",
        "Replies are not written to topics.",
        "Bodies have the content type `application/json`, unless `headers` has another.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": "http.api.url",
        "headers": "headers",
        "batch": "batch.max.size",
        "retry_statuses": "retry.on.status.codes",
        "auth": http_keys.AUTH,
    }
    keys: ClassVar[tuple[Key, ...]] = http_keys.KEYS
    without_effect: ClassVar[KeyTable] = http_keys.WITHOUT_EFFECT
    refused: ClassVar[KeyTable] = http_keys.REFUSED

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield bodies that are none, credentials that are missing, and errors that are not tolerated."""
        readers: dict[str, Callable[[], Any]] = {
            "retry.on.status.codes": lambda: statuses(config["retry.on.status.codes"]),
            "headers": lambda: self._headers(config),
        }
        for key, read in readers.items():
            try:
                read()
            except ValueError as error:
                yield key, f"Invalid value for configuration {key}: {error}"
        if why := body_obstacle(*self._joined(config)):
            yield "batch.separator", f"Invalid value for configuration batch.separator: {why}"
        for key in _CREDENTIALS[config[http_keys.AUTH].upper()]:
            if not config[key]:
                why = f"{http_keys.AUTH} is {config[http_keys.AUTH]}, which needs it"
                yield key, f"Invalid value for configuration {key}: {why}"
        yield from document_keys.user_obstacle(
            "http.api.url",
            [config["http.api.url"]],
            "give auth.type=BASIC with connection.user and connection.password",
        )
        yield from document_keys.tolerance_obstacle(config, http_keys.ERRORS, ("ignore", "log"))

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that sends the requests."""
        method, seconds = config["request.method"].upper(), config["http.request.timeout.ms"]
        options = {
            "url": _template(config["http.api.url"]),
            "method": method,
            "headers": self._headers(config),
            "value": "value" if method != "DELETE" else None,
            **batch_options(*self._joined(config)[:3]),
            "auth": _auth(config),
            "retry_statuses": statuses(config["retry.on.status.codes"]),
            "timeout": seconds / 1000 if seconds else None,
            "ca": config["penstock.ca"],
        }
        ignores = config[http_keys.NULLS].lower() == "ignore"
        return {
            "steps": [document_keys.WITH_VALUE] if ignores else [],
            "sink": {"http": given(options)},
        }

    def _joined(self, config: ConnectorConfig) -> tuple[int, str, str, str]:
        if config["batch.json.as.array"]:
            return config["batch.max.size"], "[", "]", ","
        names = ("batch.max.size", "batch.prefix", "batch.suffix", "batch.separator")
        size, prefix, suffix, separator = (config[name] for name in names)
        return size, prefix, suffix, config.get("batch.separator") or separator

    def _headers(self, config: ConnectorConfig) -> dict[str, str]:
        found = {}
        for part in config["headers"].split(config["header.separator"] or "|"):
            name, colon, value = part.partition(":")
            if part.strip() and not colon:
                raise ValueError("a header is name:value")
            if name.strip():
                found[name.strip()] = braces(value.strip())
        return found


_CREDENTIALS = {
    "NONE": (),
    "BASIC": ("connection.user",),
    "OAUTH2": ("oauth2.token.url", "oauth2.client.id", "oauth2.client.secret"),
}


def _auth(config: ConnectorConfig) -> dict[str, Any] | None:
    match config[http_keys.AUTH].upper():
        case "BASIC":
            basic = {
                "username": config["connection.user"],
                "password": config["connection.password"],
            }
            return {"basic": basic}
        case "OAUTH2":
            names = {
                "token_url": "token.url",
                "client_id": "client.id",
                "client_secret": "client.secret",
            }
            found = {option: config[f"oauth2.{name}"] for option, name in names.items()}
            return {"oauth": {**found, "scope": config["oauth2.client.scope"]}}
    return None


def _template(url: str) -> str:
    """Return an address with columns in place of ${topic} and ${key}.

    >>> _template("http://host/${topic}/${key}?at={x}")
    'http://host/{topic}/{key}?at={{x}}'
    """
    parts = re.split(r"\$\{(topic|key)\}", url)
    return "".join(f"{{{part}}}" if at % 2 else braces(part) for at, part in enumerate(parts))
