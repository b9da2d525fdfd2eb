"""The grouped options of the source `http_listener`: who may send, and what a record's key is."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from typing import Literal

from pydantic import Field

from penstock.http.http_options import (
    ApiKey,
    BasicAuth,
    BearerAuth,
    HeaderName,
    HttpOptions,
    OneOf,
)
from penstock.imports.http.paging_options import JsonPointer


class ListenerAuth(OneOf):
    """Who may send: exactly one of these."""

    basic: BasicAuth | None = None
    bearer: BearerAuth | None = None
    api_key: ApiKey | None = None


class RecordKey(OneOf):
    """What the key of a record is: exactly one of these."""

    header: HeaderName | None = Field(default=None, description="A header of the request.")
    pointer: JsonPointer | None = Field(default=None, description="A place in the JSON document.")
    path: Literal[True] | None = Field(default=None, description="The name in `paths`.")


class ListenerTls(HttpOptions):
    """The certificate with which the listener shows itself."""

    certificate: Path = Field(description="The file with the certificate and its chain (PEM).")
    key: Path = Field(description="The file with its private key (PEM), without a password.")

    def context(self) -> ssl.SSLContext:
        """Return the settings of connections: TLS 1.2 or later."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.minimum_version = ssl.TLSVersion.TLSv1_2
        found.load_cert_chain(self.certificate, self.key)
        return found


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
