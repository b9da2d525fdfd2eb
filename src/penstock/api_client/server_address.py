"""Which server a command uses, and the token that it sends: tokens are stored for each address."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.config.directories import config_dir, make_private, place
from penstock.config.secrets import remember_secret
from penstock.config.server_section import read_contexts, read_server_section
from penstock.errors import ConfigError, SetupError, nearest

DEFAULT_URL = "http://127.0.0.1:8083"
TOKEN = "PENSTOCK_TOKEN"  # noqa: S105 - the name of a variable
_FORM = "write it as in https://penstock.example:8083"


@dataclass(frozen=True)
class ServerAddress:
    """A server, and whom its certificate is checked with.

    An address that a file of the working directory gives is not `trusted`: the token of the
    environment, which may be for another server, is not sent there.
    """

    url: str
    ca: str | None = None
    trusted: bool = True

    @property
    def is_loopback(self) -> bool:
        """Return whether the server is on this machine."""
        host = urlsplit(self.url).hostname or ""
        with suppress(ValueError):
            return ipaddress.ip_address(host).is_loopback
        return host == "localhost"

    def require_private(self) -> None:
        """Refuse to send a password or a token where others could read it."""
        if self.url.startswith("http:") and not self.is_loopback:
            raise ConfigError(
                f"{self.url} is not encrypted, and a password or token would be sent in the clear; "
                "give the https address of the server"
            )


def find_server(url: str | None = None, ca: str | None = None) -> ServerAddress:
    """Return the given server, that of penstock.yaml, or the one of this machine.

    A text without :// is the name of a context of penstock.yaml.
    """
    if url:
        return ServerAddress(checked_url(url), ca) if "://" in url else _of_context(url, ca)
    section, is_own = read_server_section()
    if section.context:
        return _of_context(section.context, ca)
    if section.url:
        return ServerAddress(checked_url(section.url), ca or section.ca, is_own)
    return ServerAddress(DEFAULT_URL, ca)


def _of_context(name: str, ca: str | None) -> ServerAddress:
    contexts = read_contexts()
    if name not in contexts:
        known = nearest(name, sorted(contexts)) if contexts else "it has none"
        raise ConfigError(
            f"{name!r} is not the address of a server; {_FORM}; nor is it a context of your "
            f"penstock.yaml: {known}"
        )
    return ServerAddress(checked_url(contexts[name].url), ca or contexts[name].ca)


def checked_url(url: str) -> str:
    """Return the address of a server in one form.

    >>> checked_url("HTTPS://Penstock.example/team/")
    'https://penstock.example/team'
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise ConfigError(f"{url!r} is not the address of a server; {_FORM}") from None
    if "@" in parts.netloc:
        raise ConfigError("the address of a server has no user and password; run 'penstock login'")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError(f"{url!r} is not the address of a server; {_FORM}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown_port = f":{port}" if port else ""
    return f"{parts.scheme}://{host}{shown_port}{parts.path.rstrip('/')}"


@dataclass(frozen=True)
class Credentials:
    """A token of one server, and the id with which it can be revoked."""

    token: str = field(repr=False)
    user: str | None = None
    id: str | None = None
    scheme: str = "Bearer"


def find_credentials(address: ServerAddress) -> Credentials | None:
    """Return the token of the environment, or the one that `penstock login` stored for the server."""
    found: Credentials | None = None
    if address.trusted and (given := os.environ.get(TOKEN, "").strip()):
        found = Credentials(given)
    else:
        found = _stored(address.url)
    if found is None:
        return None
    if not found.token.isascii() or not found.token.isprintable() or " " in found.token:
        raise ConfigError(f"{TOKEN} is not a token: it has characters that no token has")
    remember_secret(found.token)
    address.require_private()
    return found


def store_credentials(url: str, credentials: Credentials) -> Path:
    """Store the token of a server in a file that only its owner may read; return the file."""
    remember_secret(credentials.token)
    file = _file_of(url)
    content = {
        "url": url,
        "token": credentials.token,
        "user": credentials.user,
        "id": credentials.id,
    }
    try:
        make_private(config_dir() / "tokens")
        # A temporary file has the mode 0600; readers see the old content or the new one.
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".token-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            json.dump(content, output)
        Path(name).replace(file)
    except OSError as error:
        raise SetupError(f"the token cannot be stored in {file}: {error.strerror}") from None
    return file


def remove_credentials(url: str) -> bool:
    """Remove the stored token of a server; return whether there was one."""
    try:
        _file_of(url).unlink()
    except FileNotFoundError:
        return False
    return True


def _stored(url: str) -> Credentials | None:
    file = _file_of(url)
    try:
        content: Any = json.loads(file.read_text("utf-8"))
        return Credentials(str(content["token"]), content.get("user"), content.get("id"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{file} cannot be read; remove it, and run 'penstock login'") from None


def _file_of(url: str) -> Path:
    return place("config") / "tokens" / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json"
