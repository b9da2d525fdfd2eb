"""The option `registry` of decodes and sinks."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from penstock.formats.registry.registry_options import RegistryOptions

URL = "https://schemas.example"


def test_an_address_alone_is_enough() -> None:
    assert RegistryOptions.model_validate(URL) == RegistryOptions(url=URL)


def test_a_process_has_one_client_for_the_same_options() -> None:
    first, second = (RegistryOptions(url=URL, username="app", password="x") for _ in range(2))
    assert first.client() is second.client()
    assert RegistryOptions(url=URL).client() is not first.client()
    assert first.fresh_client() is not first.client()


def test_secrets_are_shown_nowhere() -> None:
    options = RegistryOptions(url=URL, username="app", password="hunter2-registry")
    assert "hunter2" not in f"{options!r} {options.model_dump()} {options.client()!r}"


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("ftp://x", "ftp"),
        ({"url": URL, "username": "app"}, "password"),
        ({"url": URL, "pasword": "x"}, "pasword"),
        ({}, "url"),
    ],
)
def test_mistakes_are_reported(given: object, reported: str) -> None:
    with pytest.raises(ValidationError, match=reported):
        RegistryOptions.model_validate(given)


def test_tokens_and_a_password_exclude_each_other() -> None:
    oauth = {"token_url": URL, "client_id": "app", "client_secret": "s"}
    given = {"url": URL, "username": "app", "password": "x", "oauth": oauth}
    with pytest.raises(ValidationError, match="give one of them"):
        RegistryOptions.model_validate(given)
