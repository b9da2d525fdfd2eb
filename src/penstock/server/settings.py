"""What a server is started with: where it listens, who may use it, and its limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from penstock.connect.worker_defaults import WorkerDefaults
from penstock.control.roles import read_grants
from penstock.errors import ConfigError

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine can reach an address.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "[::1]", "0.0.0.0", "example.com")]
    [True, True, True, False, False]
    """
    plain = host.strip("[]").lower()
    if plain == "localhost":
        return True
    try:
        return ipaddress.ip_address(plain).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class OidcSettings:
    """Tokens of an OpenID provider: who issues them, for whom, and what their claims mean.

    The values of `grants_claim` are grants ("operator:team=payments"), or, with `grants`, names of groups
    that it translates: {"payments-team": ("operator:team=payments",)}. A user has the name `oidc:NAME`.
    """

    issuer: str
    audience: str
    jwks_url: str
    user_claim: str = "sub"
    grants_claim: str = "grants"
    grants: Mapping[str, tuple[str, ...]] | None = None
    # Seconds for which the keys of the provider are used before they are requested again.
    keys_for: float = 300.0

    def __post_init__(self) -> None:
        for name in ("issuer", "audience", "jwks_url", "user_claim", "grants_claim"):
            if not getattr(self, name):
                raise ConfigError(f"the option {name} of OIDC is empty; give it, or no OIDC")
        url = urlsplit(self.jwks_url)
        local = url.scheme == "http" and is_loopback(url.hostname or "")
        if url.scheme != "https" and not local:
            raise ConfigError(
                f"jwks_url is {self.jwks_url!r}; the keys of an OpenID provider come over https, "
                "because whoever can replace them can issue tokens"
            )
        for grants in (self.grants or {}).values():
            read_grants(grants)


@dataclass(frozen=True)
class StreamSettings:
    """Streams of events: how many at once, how long one lives, and how often the store is read."""

    most: int = 100
    seconds: float = 900.0
    heartbeat: float = 15.0
    every: float = 1.0


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server.

    Parameters
    ----------
    host
        The address that it listens at.
    allowed_hosts
        Names by which it is called, in addition to `host` and, on a loopback address, those of this
        machine; "*" for any, only with login.
    allowed_origins
        Origins of web pages that may use the API, in addition to its own.
    login
        Whether users have to log in, also at a loopback address.
    behind_proxy
        A proxy with TLS forwards requests; the last address of X-Forwarded-For is the client.
    largest_body
        The largest body of a request, in bytes.
    workers
        How many workers the server starts; with 0 it is ready without any.
    shared_state
        The folder or URI that all workers use for state by default.
    connect
        The cluster and the converters of connectors that name none.
    """

    host: str = "127.0.0.1"
    allowed_hosts: frozenset[str] = frozenset()
    allowed_origins: frozenset[str] = frozenset()
    login: bool = False
    tls: bool = False
    behind_proxy: bool = False
    oidc: OidcSettings | None = None
    largest_body: int = 2_000_000
    body_seconds: float = 30.0
    login_seconds: float = 7 * 86_400.0
    workers: int = 1
    shared_state: str | None = None
    streams: StreamSettings = field(default_factory=StreamSettings)
    connect: WorkerDefaults = field(default_factory=WorkerDefaults)

    @property
    def needs_login(self) -> bool:
        """Return whether requests need a user: wherever other machines can send them."""
        return self.login or self.behind_proxy or not is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """Return the names by which the server may be called, in small letters, without ports."""
        local = _LOOPBACK_NAMES if is_loopback(self.host) else frozenset()
        given = {host.strip("[]").lower() for host in {self.host, *self.allowed_hosts}}
        return local | given

    def require_safe(self, users: int) -> None:
        """Refuse settings with which others could use the server; `users` is how many there are.

        >>> ServerSettings().require_safe(users=0)
        >>> ServerSettings(host="0.0.0.0", tls=True).require_safe(users=1)
        """
        if not is_loopback(self.host) and not (self.tls or self.behind_proxy):
            raise ConfigError(
                f"{self.host!r} is not a loopback address, and passwords would be sent in the clear; "
                "give a certificate and its key, or say that a proxy with TLS is in front "
                "(--behind-proxy), or listen at 127.0.0.1"
            )
        if self.needs_login and not users and self.oidc is None:
            raise ConfigError(
                "the server needs users: other machines can reach it, or it was started with login, and "
                "there are none; add one with the role admin first, or give the options of OIDC"
            )
        if "*" in self.allowed_hosts and not self.needs_login:
            raise ConfigError(
                "allowed_hosts is '*' and no login is needed: a web page could use the server under a "
                "name of its own; give the names, or start it with login"
            )
