"""What clients need to reach an embedded broker: certificates, names and passwords made for the run."""

from __future__ import annotations

from pathlib import Path

from penstock.config import Connection
from penstock.embedded.certificates import Authority, Certificate
from penstock.embedded.home import NodePlace, State
from penstock.embedded.properties import tls_properties
from penstock.embedded.security import OWNER, Security
from penstock.errors import ConfigError


class Access:
    """The keys of one broker: the servers' and the clients'."""

    def __init__(self, folder: Path, state: State, security: Security) -> None:
        self.folder = folder
        self.state = state
        self.security = security
        self._authority = Authority(folder) if security.ssl else None
        self._clients: dict[str, Certificate] = {}

    def server_settings(self, node: NodePlace) -> dict[str, str]:
        """Give a node its certificate; nothing when the listener is not encrypted."""
        if self._authority is None:
            return {}
        made = self._authority.server(f"node-{node.id}")
        # Kafka wants key and certificate in one file.
        made.key.write_bytes(made.key.read_bytes() + made.certificate.read_bytes())
        return tls_properties(made.key, self._authority.ca, self.security)

    def connection(self, brokers: str, user: str = OWNER) -> Connection:
        """Describe how `user` reaches the broker."""
        return Connection.from_config(self.client_settings(brokers, user))

    def client_settings(self, brokers: str, user: str = OWNER) -> dict[str, str]:
        """Give the same in librdkafka's names, with the real secrets."""
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
        return {
            "sasl.mechanisms": self.security.mechanism,
            "sasl.username": user,
            "sasl.password": self.state.users[user],
        }

    def _certificate(self, user: str) -> dict[str, str]:
        assert self._authority is not None  # noqa: S101
        secret = self.security.key_password
        password = secret.get_secret_value() if secret else None
        if user not in self._clients:
            self._clients[user] = self._authority.client(user, password)
        made = self._clients[user]
        return {
            "ssl.certificate.location": str(made.certificate),
            "ssl.key.location": str(made.key),
            **({"ssl.key.password": password} if password else {}),
        }
