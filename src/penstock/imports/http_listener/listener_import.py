"""The source `http_listener`: its options."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from penstock.http.http_options import HeaderName
from penstock.imports.http_listener.listener_options import (
    ListenerAuth,
    ListenerTls,
    RecordKey,
    is_loopback,
)
from penstock.pipeline.importing import Listener, ListeningImport, filled
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from penstock.config import Connection

_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,200}")


class HttpListenerImport(ListeningImport):
    """Requests that other programs send: each body, or each element or line of it, becomes a record.

    A reply with status 200 comes when all records of the request are in the topic, on all replicas in
    sync: what was acknowledged is not lost. A client that gets no reply, or 503, sends the request again:
    at-least-once. The header `Idempotency-Key` of a request becomes a header of its records, by which
    repeated ones are recognized.

    It listens in the process of the pipeline, not in Spark's tasks.
    """

    name = "http_listener"
    main_option = "port"
    topic_names = frozenset({"path"})

    host: str = Field(
        default="127.0.0.1", min_length=1, description="The address on which it listens."
    )
    port: int = Field(default=0, ge=0, le=65535, description="The port; 0: any that is free.")
    path: str = Field(default="/", description="The path that requests are sent to.")
    paths: list[str] = Field(
        default_factory=list,
        description="Names after `path`, each one accepted; `{path}` in the topic is the name.",
    )
    format: Literal["bytes", "json", "json_array", "json_lines", "lines"] = Field(
        default="bytes",
        description="What a body is: one record as it is (`bytes`) or checked to be `json`, or a record "
        "for each element of a `json_array` or for each of the `json_lines` or `lines`.",
    )
    key: RecordKey | None = Field(
        default=None, description="The key: a `header`, a JSON `pointer`, or the `path`'s name."
    )
    headers: list[HeaderName] = Field(
        default_factory=list,
        description="Headers of the request that become headers of the records.",
    )
    auth: ListenerAuth | None = Field(
        default=None, description="Who may send: `bearer`, `basic` or `api_key`."
    )
    allow_anyone: bool = Field(
        default=False, description="Listen without `auth` where other machines can send."
    )
    tls: ListenerTls | None = Field(
        default=None, description="The `certificate` and the `key` of https."
    )
    max_body: int = Field(default=900_000, ge=1, description="The most bytes of a body.")
    max_waiting: int = Field(
        default=64 * 2**20,
        ge=1,
        description="The most bytes of all requests that are not answered yet; more get 503.",
    )
    max_connections: int = Field(
        default=1000, ge=1, description="The most connections at the same time; more get 503."
    )
    timeout: Duration = Field(
        default=20.0, ge=1, description="How long Kafka may take for the records of a request."
    )
    patience: Duration = Field(
        default=30.0, gt=0, description="How long a client may take for a head, a body or a pause."
    )

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, given: str) -> str:
        if not _PATH.fullmatch(given):
            raise ValueError(
                f"{given!r} is not a path; give /NAME, with letters, digits and . _ ~ -"
            )
        return given.rstrip("/") or "/"

    @field_validator("paths")
    @classmethod
    def _are_names(cls, given: list[str]) -> list[str]:
        for name in given:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} cannot be a name in a path: letters, digits and . _ ~ -"
                )
        if len(set(given)) < len(given):
            raise ValueError(f"{', '.join(given)}: a name is there twice")
        return given

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if not is_loopback(self.host) and self.auth is None and not self.allow_anyone:
            raise ValueError(
                f"other machines can send to {self.host}: give 'auth', or 'allow_anyone: true' where "
                "that is what you want"
            )
        uses_json = self.format.startswith("json")
        if self.key and self.key.pointer is not None and not uses_json:
            raise ValueError(f"a key at a JSON pointer needs a format of JSON, not {self.format!r}")
        if self.key and self.key.path and not self.paths:
            raise ValueError("the path's name is the key: give the names in 'paths'")
        if self.max_waiting < self.max_body:
            raise ValueError(
                f"max_waiting ({self.max_waiting}) has no room for one body (max_body: {self.max_body})"
            )
        return self

    @model_validator(mode="after")
    def _topic_has_a_name(self) -> Self:
        if "{path}" in self.topic and not self.paths:
            raise ValueError("the topic has {path} in its name: give the names in 'paths'")
        return self

    def topic_at(self, name: str) -> str:
        """Return the topic of a name in `paths`; an empty one for `path` itself."""
        return filled(self.topic, {"path": name})

    def names(self) -> list[str]:
        """Return the names that are accepted; an empty one for `path` itself."""
        return self.paths or [""]

    def topics(self) -> list[str]:
        """Return the topics that it writes to."""
        return sorted({self.topic_at(name) for name in self.names()})

    def listener(self, connection: Connection, is_full: Callable[[], bool]) -> Listener:
        """Return the server."""
        # Only here: who reads a definition needs no client.
        from penstock.imports.http_listener.listener_thread import ListenerThread  # noqa: PLC0415

        return ListenerThread(self, connection, is_full)
