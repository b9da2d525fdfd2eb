"""The section `server:` of penstock.yaml: where the server is, and what `penstock serve` starts with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from penstock.config.files import read_settings
from penstock.config.models import SafeModel
from penstock.config.references import resolve_references
from penstock.config.settings import comes_with_the_folder, settings_paths
from penstock.errors import ConfigError, nearest

# What a file of the working directory may set: entering a folder must neither publish a server, nor
# run definitions of another store, nor trust another authority.
_OF_A_FOLDER = frozenset({"url", "port", "workers", "memory", "login"})


class ServerContext(SafeModel):
    """A server by a name: its address, and whom its certificate is checked with."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str
    ca: str | None = None


class ServerSection(SafeModel):
    """Settings of a server and of its clients; options of the command line replace them."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str | None = Field(default=None, description="The server that commands use.")
    ca: str | None = Field(default=None, description="Authorities of its certificate (PEM).")
    contexts: dict[str, ServerContext] = Field(
        default_factory=dict, description="Servers by name, for --server NAME."
    )
    context: str | None = Field(default=None, description="The one that commands use.")
    host: str | None = None
    port: int | None = Field(default=None, ge=0, le=65535)
    workers: int | None = Field(default=None, ge=0, le=64)
    store: str | None = None
    keys: str | None = None
    state: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool | None = None
    login: bool | None = None
    allowed_hosts: tuple[str, ...] = ()
    memory: str | None = None
    conf: dict[str, str] = Field(default_factory=dict)
    registry: str | dict[str, Any] | None = Field(
        default=None, description="The schema registry: its address, or its options."
    )
    oidc: dict[str, Any] | None = Field(default=None, description="Tokens of an OpenID provider.")


def read_server_section() -> tuple[ServerSection, bool]:
    """Return the section of the nearest file that has one, and whether that file is the user's own."""
    for path in settings_paths():
        if path.is_file() and (given := read_settings(path).server) is not None:
            is_own = not comes_with_the_folder(path)
            return _checked(path, given, is_own), is_own
    return ServerSection(), True


def read_contexts() -> dict[str, ServerContext]:
    """Return the servers that the user's own files name, whatever the working directory has."""
    found: dict[str, ServerContext] = {}
    for path in settings_paths():
        if not path.is_file() or comes_with_the_folder(path):
            continue
        if (given := read_settings(path).server) is not None:
            found = _checked(path, given, is_own=True).contexts | found
    return found


def _checked(path: Path, given: Mapping[str, Any], is_own: bool) -> ServerSection:
    known = list(ServerSection.model_fields)
    for name in given:
        if name not in known:
            raise ConfigError(f"{path}: server: unknown key {name!r}: {nearest(str(name), known)}")
        if not is_own and name not in _OF_A_FOLDER:
            raise ConfigError(
                f"{path}: server: {name} is not allowed in a file of the working directory, which may "
                "come from someone else; give the option of the command, or write it into the "
                "penstock.yaml of your own configuration folder"
            )
    if given.get("url") is not None and given.get("context") is not None:
        raise ConfigError(f"{path}: server: url and context are both given; give one of them")
    try:
        return ServerSection(**resolve_references(given, path.parent, confined=not is_own))
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(f"{path}: server: {where}: {problem['msg']}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: server: {error}") from None
