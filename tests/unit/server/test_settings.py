"""Settings with which others could use the server are refused before it listens."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.server.settings import OidcSettings, ServerSettings

OIDC: dict[str, Any] = {
    "issuer": "https://id",
    "audience": "penstock",
    "jwks_url": "https://id/keys",
}


@pytest.mark.parametrize(
    ("settings", "users", "words"),
    [
        ({"host": "0.0.0.0"}, 1, "is not a loopback address"),
        ({"host": "::"}, 1, "give a certificate and its key"),
        ({"host": "example.com"}, 1, "--behind-proxy"),
        ({"host": "0.0.0.0", "tls": True}, 0, "needs users"),
        ({"host": "0.0.0.0", "behind_proxy": True}, 0, "needs users"),
        ({"behind_proxy": True}, 0, "needs users"),
        ({"login": True}, 0, "add one with the role admin first"),
        ({"allowed_hosts": frozenset({"*"})}, 0, "allowed_hosts is '*'"),
    ],
)
def test_unsafe_settings_are_refused(settings: Any, users: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("*", r"\*")):
        ServerSettings(**settings).require_safe(users)


@pytest.mark.parametrize(
    ("settings", "users"),
    [
        ({}, 0),
        ({"host": "localhost"}, 0),
        ({"host": "::1"}, 0),
        ({"host": "0.0.0.0", "tls": True}, 1),
        ({"host": "0.0.0.0", "behind_proxy": True}, 1),
        ({"host": "0.0.0.0", "tls": True, "oidc": OidcSettings(**OIDC)}, 0),
    ],
)
def test_safe_settings_are_accepted(settings: Any, users: int) -> None:
    ServerSettings(**settings).require_safe(users)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"issuer": ""}, "issuer of OIDC is empty"),
        ({"audience": ""}, "audience"),
        ({"jwks_url": "http://id.example/keys"}, "over https"),
        ({"jwks_url": "file:///keys"}, "over https"),
        ({"grants": {"team": ("operatr",)}}, "did you mean 'operator'"),
    ],
)
def test_wrong_options_of_oidc_are_refused(changed: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OidcSettings(**(OIDC | changed))


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, False),
        ({"login": True}, True),
        ({"behind_proxy": True}, True),
        ({"host": "10.0.0.1"}, True),
    ],
)
def test_a_login_is_needed_wherever_others_can_send_requests(settings: Any, needed: bool) -> None:
    assert ServerSettings(**settings).needs_login is needed
