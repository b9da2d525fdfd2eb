"""The socket of a server, opened before anything else is started: a port that is taken is an error."""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import dataclass

from penstock.errors import ConfigError, SetupError

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 is any that is free."""
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise ConfigError(
            f"--host {host!r} is not an address of this machine; give one, as 127.0.0.1"
        ) from None
    family, kind, protocol, _, address = found[0]
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise _refused(host, port, error) from None
    return opened


def _refused(host: str, port: int, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return SetupError(
            f"port {port} of {host} is in use by another program, maybe by another server; "
            "give another one with --port, or stop that program"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return SetupError(f"port {port} may not be opened by this user; give one from 1024 on")
    return ConfigError(f"the server cannot listen at {host} port {port}: {error.strerror}")


@dataclass(frozen=True)
class TlsFiles:
    """A certificate and its key, in PEM files."""

    certificate: str
    key: str

    def check(self) -> None:
        """Raise ConfigError if the files cannot be read or do not belong together."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Never ask for a passphrase: a server starts without anyone at the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
        except (OSError, ValueError) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise ConfigError(
                f"--tls-cert {self.certificate} and --tls-key {self.key} cannot be used: {reason}; give "
                "PEM files of a certificate with its chain, and of its key without a passphrase"
            ) from None


def read_tls(certificate: str | None, key: str | None) -> TlsFiles | None:
    """Return the files of TLS, checked; None where none are given."""
    if not certificate and not key:
        return None
    if not certificate or not key:
        given, other = ("--tls-cert", "--tls-key") if certificate else ("--tls-key", "--tls-cert")
        raise ConfigError(f"{given} is given without {other}; TLS needs both")
    files = TlsFiles(certificate, key)
    files.check()
    return files
