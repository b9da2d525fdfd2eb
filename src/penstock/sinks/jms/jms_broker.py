"""Which broker of JMS destinations, and as whom: options that the source and the sink share."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from typing_extensions import Self

from penstock.config.models import SafeModel
from penstock.config.secrets import remember_secret
from penstock.errors import SetupError
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from penstock.sinks.jms.amqp_connection import AmqpConnection

_PORTS = {"amqp": 5672, "amqps": 5671}


@dataclass(frozen=True)
class Broker:
    """One broker, and how to connect to it; sent to tasks."""

    host: str
    port: int
    tls: bool = False
    username: str | None = None
    password: SecretStr | None = None
    ca: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    timeout: float = 30.0

    def __str__(self) -> str:
        return f"amqp{'s' if self.tls else ''}://{self.host}:{self.port}"

    @property
    def mechanism(self) -> str:
        """Return how to authenticate: by password, by certificate, or not at all.

        >>> Broker("localhost", 5672).mechanism
        'ANONYMOUS'
        """
        if self.username is not None:
            return "PLAIN"
        return "EXTERNAL" if self.certificate else "ANONYMOUS"

    def connect(self, client_id: str | None = None) -> AmqpConnection:
        """Return an open connection; `client_id` is the JMS client id."""
        self.require_client()
        module = import_module("penstock.sinks.jms.amqp_connection")
        connection: AmqpConnection = module.AmqpConnection(self, client_id)
        connection.open()
        return connection

    def require_client(self) -> None:
        """Raise what to install where the client for AMQP 1.0 is missing."""
        if find_spec("proton") is None:
            raise SetupError(
                "JMS needs an extra: pip install 'penstock[jms]'. It compiles python-qpid-proton, which "
                "needs a C compiler and Python's headers (on Debian: apt-get install gcc python3-dev)"
            )


class BrokerOptions(SafeModel):
    """The options that name a broker."""

    url: str = Field(
        description="The broker's address: `amqp://host:5672`, or `amqps://host:5671` for TLS."
    )
    username: str | None = Field(
        default=None,
        description="The user (SASL PLAIN); default: none, that is EXTERNAL where a certificate is "
        "given, otherwise ANONYMOUS.",
    )
    password: SecretStr | None = Field(default=None, description="The user's password.")
    ca: str | None = Field(
        default=None,
        description="PEM file of the authorities to trust, on each machine that runs tasks; default: "
        "those of the machine.",
    )
    certificate: str | None = Field(
        default=None, description="PEM file of the client's certificate, for TLS."
    )
    certificate_key: str | None = Field(
        default=None,
        description="PEM file of its key; default: the key is in the file of the certificate.",
    )
    timeout: Duration = Field(
        default=30.0, gt=0, description="The longest time to wait for any reply of the broker."
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        split = urlsplit(url)
        if split.scheme not in _PORTS:
            raise ValueError(
                f"{url!r} is not the address of a broker: it begins with amqp:// or amqps://"
            )
        if split.username is not None or split.password is not None:
            raise ValueError("give user and password in 'username' and 'password', not in 'url'")
        if not split.hostname or split.path.strip("/") or split.query or split.fragment:
            raise ValueError(
                f"{url!r} is not 'scheme://host:port': destinations are options of their own"
            )
        try:
            _ = split.port
        except ValueError as error:
            raise ValueError(f"{url!r} has no valid port: {error}") from None
        return url

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("'username' and 'password' belong together: give both or none")
        if self.certificate_key and not self.certificate:
            raise ValueError("'certificate_key' is given without 'certificate'")
        for option in ("ca", "certificate"):
            if getattr(self, option) and not self.url.startswith("amqps:"):
                raise ValueError(
                    f"'{option}' is for TLS, and the address is amqp://: give amqps://"
                )
        return self

    def broker(self) -> Broker:
        """Return the broker that the options name."""
        split = urlsplit(self.url)
        if self.password is not None:
            remember_secret(self.password.get_secret_value())
        return Broker(
            str(split.hostname),
            split.port or _PORTS[split.scheme],
            split.scheme == "amqps",
            self.username,
            self.password,
            self.ca,
            self.certificate,
            self.certificate_key,
            self.timeout,
        )
