"""Where RabbitMQ is and how to log in: the options that the source and the sink have in common."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from typing_extensions import Self

from penstock.config.models import SafeModel
from penstock.errors import ConfigError, missing_extra
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from penstock.sinks.rabbitmq.amqp_connection import AmqpConnection

_PORTS = {"amqp": 5672, "amqps": 5671}
_FORMS = "amqp://user@host:5672/vhost, or amqps:// for TLS"
_TLS_ONLY = ("ca", "certificate", "key_file", "key_password")


class BrokerOptions(SafeModel):
    """Where RabbitMQ is, who logs in, and how TLS is verified."""

    url: str = Field(
        description="The server: `amqp://user@host:5672/vhost`, or `amqps://` for TLS. A password in it "
        "is kept apart. Default: the user `guest`, port 5672 (TLS: 5671), the virtual host `/`."
    )
    password: SecretStr | None = Field(
        default=None, description="The password, where it is not part of the address."
    )
    vhost: str = Field(
        default="", description="The virtual host, where it is not part of the address."
    )
    ca: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file of the authorities to trust, on each machine that runs tasks; default: "
        "those of the machine. The certificate and the host name are verified.",
    )
    certificate: str | None = Field(
        default=None, min_length=1, description="PEM file of this client's certificate."
    )
    key_file: str | None = Field(
        default=None, min_length=1, description="PEM file of the certificate's private key."
    )
    key_password: SecretStr | None = Field(
        default=None, description="The password of `key_file`, if it has one."
    )
    heartbeat: Duration = Field(
        default=60.0,
        ge=5,
        le=3600,
        description="How often both sides send a sign of life; a connection without any is closed.",
    )
    timeout: Duration = Field(
        default=30.0, gt=0, le=600, description="The longest time for a connection and for a reply."
    )

    @model_validator(mode="before")
    @classmethod
    def _password_apart(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("url"), str):
            return given
        url, secret, vhost = _split(given["url"])
        given = {**given, "url": url}
        if secret is not None:
            if given.get("password") is not None:
                raise ValueError("the password is in 'url' and in 'password': give it once")
            given["password"] = SecretStr(secret)
        if vhost:
            if given.get("vhost"):
                raise ValueError("the virtual host is in 'url' and in 'vhost': give it once")
            given["vhost"] = vhost
        return given

    @field_validator("vhost")
    @classmethod
    def _short(cls, vhost: str) -> str:
        if len(vhost.encode()) > 255:
            raise ValueError("the virtual host has more than 255 bytes, which AMQP does not allow")
        return vhost

    @model_validator(mode="after")
    def _tls_fits(self) -> Self:
        if not self.url.startswith("amqps:"):
            for name in _TLS_ONLY:
                if getattr(self, name) is not None:
                    raise ValueError(f"{name!r} is about TLS: give an address with amqps://")
        if (self.certificate is None) != (self.key_file is None):
            raise ValueError("'certificate' and 'key_file' belong together: give both or neither")
        if self.key_password is not None and self.key_file is None:
            raise ValueError("'key_password' is given without 'key_file'")
        return self

    def broker(self) -> Broker:
        """Return the server as a connection needs it."""
        parts = urlsplit(self.url)
        secret = self.key_password.get_secret_value() if self.key_password else None
        return Broker(
            host=parts.hostname or "localhost",
            port=parts.port or _PORTS[parts.scheme],
            vhost=self.vhost or "/",
            user=unquote(parts.username) if parts.username else "guest",
            password=self.password.get_secret_value() if self.password else "guest",
            heartbeat=round(self.heartbeat),
            timeout=self.timeout,
            tls=Tls(self.ca, self.certificate, self.key_file, secret)
            if parts.scheme == "amqps"
            else None,
        )


@dataclass(frozen=True)
class Tls:
    """The files of TLS; they are read where the connection is made."""

    ca: str | None = None
    certificate: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Return what verifies the server, and shows it our certificate."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"'ca' names {self.ca!r}, which cannot be used: {error}; give a PEM file with the "
                "certificates of authorities, on every machine that runs tasks"
            ) from None
        if self.certificate:
            try:
                context.load_cert_chain(
                    self.certificate, self.key_file, lambda: self.key_password or ""
                )
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    f"'certificate' {self.certificate!r} with 'key_file' {self.key_file!r} cannot be "
                    f"used: {error}; give PEM files that belong together, and 'key_password' for an "
                    "encrypted key"
                ) from None
        return context


@dataclass(frozen=True)
class Broker:
    """A server, and who logs in; safe to print."""

    host: str
    port: int
    vhost: str
    user: str
    password: str = field(repr=False)
    heartbeat: int = 60
    timeout: float = 30.0
    tls: Tls | None = None

    @property
    def at(self) -> str:
        """Return the server as messages name it.

        >>> Broker("mq", 5672, "/", "app", "hunter2").at
        'RabbitMQ at mq:5672'
        """
        return f"RabbitMQ at {self.host}:{self.port}"

    def connection(self, purpose: str) -> AmqpConnection:
        """Return a connection that is not open yet; `purpose` is its name in RabbitMQ's lists.

        Raises
        ------
        MissingExtraError
            When pika is not installed.
        """
        try:
            from penstock.sinks.rabbitmq import amqp_connection  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, "RabbitMQ") from None
        return amqp_connection.AmqpConnection(self, purpose)


def _split(url: str) -> tuple[str, str | None, str]:
    """Return an address without password and virtual host, and both of these.

    >>> _split("amqp://app:hunter2@mq:5672/shop")
    ('amqp://app@mq:5672', 'hunter2', 'shop')
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the address cannot be read: {error}; allowed: {_FORMS}") from None
    if parts.scheme not in _PORTS or not host:
        shown = f"{parts.scheme}://..." if parts.scheme else "an address without amqp"
        raise ValueError(f"given {shown!r}; allowed: {_FORMS}")
    if parts.query or parts.fragment:
        raise ValueError(
            "the address has something after '?' or '#'; heartbeat, timeout and TLS are own options"
        )
    path = parts.path.removeprefix("/")
    if "/" in path:
        raise ValueError(
            "the virtual host in the address contains '/'; write it as %2F, or give 'vhost'"
        )
    user, _, place = parts.netloc.rpartition("@")
    name, _, secret = user.partition(":")
    clean = urlunsplit((parts.scheme, f"{name}@{place}" if name else place, "", "", ""))
    return clean, unquote(secret) or None, unquote(path)
