"""The address of a schema registry as an option of decodes and sinks; a process has one client for it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, Field, SecretStr, model_validator

from penstock.config.models import SafeModel
from penstock.errors import ConfigError
from penstock.formats.registry.http import Tls
from penstock.formats.registry.oauth import OAuth
from penstock.formats.registry.registry_client import Registry


class OAuthOptions(SafeModel):
    """Tokens of an OAuth 2.0 provider, instead of a user with a password."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token_url: str = Field(description="Where tokens are fetched.")
    client_id: str = Field(min_length=1)
    client_secret: SecretStr
    scope: str = ""


class RegistryOptions(SafeModel):
    """A schema registry: its address alone, or a mapping with user and certificates.

    >>> RegistryOptions.model_validate("http://localhost:8081").client()
    Registry('http://localhost:8081')
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str = Field(description="The address; several of one registry with commas between them.")
    username: str | None = None
    password: SecretStr | None = None
    oauth: OAuthOptions | None = Field(default=None, description="Tokens instead of a password.")
    ca: str | None = Field(default=None, description="PEM file of the authorities to trust.")
    certificate: str | None = Field(default=None, description="PEM file of the own certificate.")
    key: str | None = Field(default=None, description="PEM file of the own key.")
    key_password: SecretStr | None = None
    timeout: float = Field(
        default=10.0, gt=0, description="Seconds for one request, retries included."
    )

    @model_validator(mode="before")
    @classmethod
    def _address_alone(cls, given: Any) -> Any:
        return {"url": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _can_be_used(self) -> RegistryOptions:
        try:
            self.client()
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def client(self) -> Registry:
        """Return the client of this process for the registry; what it has read it remembers."""
        return _client(self)

    def fresh_client(self) -> Registry:
        """Return a new client, which asks for everything again."""
        return _client.__wrapped__(self)


@lru_cache(maxsize=64)
def _client(options: RegistryOptions) -> Registry:
    oauth = options.oauth
    return Registry(
        options.url,
        options.username,
        options.password,
        oauth=OAuth(oauth.token_url, oauth.client_id, oauth.client_secret, oauth.scope)
        if oauth
        else None,
        tls=Tls(options.ca, options.certificate, options.key, options.key_password),
        timeout=options.timeout,
    )
