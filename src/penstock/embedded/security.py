"""How clients reach an embedded broker: the protocol, the users and what they may do."""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import b64encode
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

Protocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

OWNER = "penstock"
"""The user that always exists and is a super user."""
NODE_USER = "penstock-node"
SCRAM_ROUNDS = 4096


class Security(BaseModel):
    """The client listener of an embedded broker.

    >>> Security(protocol="sasl_ssl", mechanism="SCRAM-SHA-512", acls=True).protocol
    'sasl_ssl'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Protocol = Field(default="plaintext", description="The security protocol of clients.")
    mechanism: Mechanism = Field(default="PLAIN", description="The SASL mechanism of clients.")
    users: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Passwords by user (client secrets), in addition to 'penstock', which always exists.",
    )
    acls: bool = Field(default=False, description="Deny what no ACL allows.")
    client_certificate: bool = Field(
        default=False, description="With SSL: ask clients for a certificate of the run's CA."
    )
    key_password: SecretStr | None = Field(
        default=None, description="With a client certificate: a password for its key."
    )

    @field_validator("users")
    @classmethod
    def _plain_names(cls, users: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name in users:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or name == NODE_USER:
                raise ValueError(f"user name {name!r} must be letters, digits, '_' and '-'")
        return users

    @model_validator(mode="after")
    def _fits_together(self) -> Security:
        if self.client_certificate and not self.ssl:
            raise ValueError("client_certificate needs the protocol ssl or sasl_ssl")
        if self.users and not self.sasl:
            raise ValueError("users need the protocol sasl_plaintext or sasl_ssl")
        if self.acls and not (self.sasl or self.client_certificate):
            raise ValueError("acls need clients with a name: use SASL or client_certificate")
        return self

    @property
    def sasl(self) -> bool:
        """Return whether clients log in with a name."""
        return self.protocol.startswith("sasl")

    @property
    def ssl(self) -> bool:
        """Return whether the listener is encrypted."""
        return self.protocol.endswith("ssl")

    @property
    def scram(self) -> bool:
        """Return whether the cluster itself keeps the users, from the moment its storage is formatted."""
        return self.sasl and self.mechanism.startswith("SCRAM")

    @property
    def oauth(self) -> bool:
        """Return whether clients show tokens, which a provider on this machine gives them."""
        return self.sasl and self.mechanism == "OAUTHBEARER"

    @property
    def guarded(self) -> bool:
        """Return whether the nodes, too, must log in to each other."""
        return self.protocol != "plaintext"


def new_password() -> str:
    """Return a new password that needs no quoting anywhere."""
    return secrets.token_urlsafe(18)


def scram_credential(mechanism: Mechanism, name: str, password: str) -> str:
    """Write a user for StorageTool, salted here so that no file has the password."""
    algorithm = "sha256" if mechanism == "SCRAM-SHA-256" else "sha512"
    salt = secrets.token_bytes(18)
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, SCRAM_ROUNDS)
    return (
        f'{mechanism}=[name="{name}",iterations={SCRAM_ROUNDS},salt="{b64encode(salt).decode()}",'
        f'saltedpassword="{b64encode(salted).decode()}"]'
    )
