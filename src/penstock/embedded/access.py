"""Credentials of clients of an embedded broker: certificates, names and passwords for the run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from penstock.embedded.certificates import LIFETIME as CERTIFICATE_LIFETIME
from penstock.embedded.certificates import Authority, Certificate
from penstock.embedded.home import NodePlace, State
from penstock.embedded.oidc import LIFETIME, Issuer, TokenEndpoint
from penstock.embedded.properties import tls_properties, token_properties
from penstock.embedded.security import Security
from penstock.errors import ConfigError


class Access:
    """The keys of one broker: the servers' and the clients'."""

    def __init__(self, folder: Path, state: State, security: Security) -> None:
        self.folder = folder
        self.state = state
        self.security = security
        self._authority = Authority(folder) if security.ssl else None
        self._clients: dict[str, Certificate] = {}
        self._tokens = _Tokens(folder, state.users) if security.oauth else None

    def close(self) -> None:
        """Stop the token provider, which runs in this process."""
        if self._tokens:
            self._tokens.endpoint.close()

    def server_settings(self, node: NodePlace) -> dict[str, str]:
        """Return the settings of a node for its certificate and the token keys, if it needs them."""
        settings = token_properties(self._tokens.jwks) if self._tokens else {}
        if self._authority:
            made = self._authority.server(f"node-{node.id}")
            # Kafka wants key and certificate in one file.
            made.key.write_bytes(made.key.read_bytes() + made.certificate.read_bytes())
            settings |= tls_properties(made.key, self._authority.ca, self.security)
        return settings

    def server_flags(self) -> list[str]:
        """Return the Java options of a node: it reads only key files that are named there."""
        if self._tokens is None:
            return []
        allowed, jwks = "-Dorg.apache.kafka.sasl.oauthbearer.allowed", self._tokens.jwks
        return [f"{allowed}.urls={jwks.as_uri()}", f"{allowed}.files={jwks}"]

    def token(self, user: str, lifetime: float = LIFETIME) -> str:
        """Sign a token for a user, as the provider would."""
        if self._tokens is None:
            raise ConfigError(
                f"the broker's mechanism is {self.security.mechanism}; tokens need OAUTHBEARER"
            )
        return self._tokens.issuer.token(user, lifetime)

    def client_settings(self, brokers: str, user: str) -> dict[str, str]:
        """Return the connection of `user` in librdkafka's names, with the real secrets."""
        settings = {"bootstrap.servers": brokers, "security.protocol": self.security.protocol}
        if self.security.sasl:
            settings |= self._log_in(user)
        if self._authority:
            settings |= {"ssl.ca.location": str(self._authority.ca)}
        if self.security.client_certificate:
            settings |= self._certificate(user)
        return settings

    def _log_in(self, user: str) -> dict[str, str]:
        if user not in self.state.users:
            raise ConfigError(f"there is no user {user!r}; users: {sorted(self.state.users)}")
        secret = self.state.users[user]
        if self._tokens:
            return {
                "sasl.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": self._tokens.endpoint.url,
                "sasl.oauthbearer.client.id": user,
                "sasl.oauthbearer.client.secret": secret,
            }
        return {
            "sasl.mechanisms": self.security.mechanism,
            "sasl.username": user,
            "sasl.password": secret,
        }

    def renew_certificate(self, user: str, lifetime: timedelta = CERTIFICATE_LIFETIME) -> None:
        """Sign the certificate that `connection` gives this user from now on."""
        if self._authority is None:
            raise ConfigError(
                f"the broker's protocol is {self.security.protocol}; certificates need ssl or sasl_ssl"
            )
        self._clients[user] = self._authority.client(user, self._key_password(), lifetime)

    def _key_password(self) -> str | None:
        secret = self.security.key_password
        return secret.get_secret_value() if secret else None

    def _certificate(self, user: str) -> dict[str, str]:
        if user not in self._clients:
            self.renew_certificate(user)
        made = self._clients[user]
        return {
            "ssl.certificate.location": str(made.certificate),
            "ssl.key.location": str(made.key),
            **({"ssl.key.password": password} if (password := self._key_password()) else {}),
        }


class _Tokens:
    """A provider of tokens, with its public keys in a file for the broker."""

    def __init__(self, folder: Path, users: dict[str, str]) -> None:
        self.issuer = Issuer()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.jwks = folder / "jwks.json"
        if self.jwks.as_uri() != f"file://{self.jwks}":
            raise ConfigError(
                f"{folder}: with OAUTHBEARER, Kafka reads a file only from a path without blanks and "
                "special characters; give another data_dir"
            )
        self.jwks.write_text(self.issuer.jwks(), encoding="utf-8")
        self.endpoint = TokenEndpoint(self.issuer, users)
