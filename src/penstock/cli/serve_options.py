"""What `penstock serve` starts with: options first, then the section `server:` of penstock.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock.cli.jar_progress import fetch_shown
from penstock.config.server_section import read_server_section
from penstock.control.places import WORKER_CONF
from penstock.embedded import jars
from penstock.embedded.java import find_java
from penstock.errors import ConfigError, MissingExtraError
from penstock.formats.registry.registry_options import RegistryOptions
from penstock.server.listening import TlsFiles, read_tls
from penstock.server.settings import OidcSettings, ServerSettings

HOST, PORT, WORKERS = "127.0.0.1", 8083, 1
_EVERYWHERE = ("0.0.0.0", "::", "[::]")  # noqa: S104 - recognized, not opened


@dataclass(frozen=True)
class ServeOptions:
    """The options of a server; None where none was given."""

    host: str | None = None
    port: int | None = None
    workers: int | None = None
    store: str | None = None
    keys: str | None = None
    state: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool | None = None
    allowed_hosts: tuple[str, ...] = ()
    login: bool | None = None
    memory: str | None = None
    conf: tuple[str, ...] = ()
    registry: str | Mapping[str, Any] | None = field(default=None, repr=False)
    oidc: OidcSettings | None = None

    def tls(self) -> TlsFiles | None:
        """Return the files of TLS, checked."""
        return read_tls(self.tls_cert, self.tls_key)

    def settings(self) -> ServerSettings:
        """Return the settings of the API."""
        host = self.host or HOST
        if host in _EVERYWHERE and not self.allowed_hosts:
            raise ConfigError(
                f"the server listens at {host}, and no name is allowed for it; give those by which it "
                "is called with --allowed-host, as in --allowed-host penstock.example"
            )
        return ServerSettings(
            host=host,
            allowed_hosts=frozenset(self.allowed_hosts),
            login=bool(self.login),
            tls=self.tls_cert is not None,
            behind_proxy=bool(self.behind_proxy),
            oidc=self.oidc,
            workers=WORKERS if self.workers is None else self.workers,
            shared_state=self.state,
        )

    def registry_options(self) -> RegistryOptions | None:
        """Return the options of the schema registry, checked."""
        if self.registry is None:
            return None
        try:
            return RegistryOptions.model_validate(self.registry)
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(["registry", *(str(part) for part in problem["loc"])])
            raise ConfigError(
                f"{where}: {problem['msg'].removeprefix('Value error, ')}; give the address of a schema "
                "registry, as in --registry http://localhost:8081, or in the section server: of "
                "penstock.yaml a mapping with url, username and password"
            ) from None

    def worker_options(self) -> list[str]:
        """Return the options of the command `penstock worker`."""
        return ["--memory", self.memory] if self.memory else []

    def worker_environment(self) -> dict[str, str]:
        """Return the variables of a worker: settings may be secret, and options are visible to others.

        A folder is absolute: the next server may be started in another one, and its workers are to find
        the states of earlier ones.
        """
        state = {"PENSTOCK_STATE": _absolute(self.state)} if self.state else {}
        return {**state, WORKER_CONF: json.dumps(self.conf)}

    def url(self, port: int) -> str:
        """Return the address of the server."""
        host = self.host or HOST
        if host in _EVERYWHERE:
            host = next((name for name in self.allowed_hosts if name != "*"), HOST)
        shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"{'https' if self.tls_cert else 'http'}://{shown}:{port}"


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())


def merged(given: ServeOptions) -> ServeOptions:
    """Return the options with those of penstock.yaml where none was given."""
    section, _ = read_server_section()
    names = [each.name for each in fields(ServeOptions) if each.name not in ("conf", "oidc")]
    from_file: dict[str, Any] = {name: getattr(section, name) for name in names}
    from_file["conf"] = tuple(f"{name}={value}" for name, value in section.conf.items())
    from_file["oidc"] = _oidc(section.oidc)
    missing = {
        name: value for name, value in from_file.items() if getattr(given, name) in (None, ())
    }
    chosen = replace(given, **missing)
    for setting in chosen.conf:
        if "=" not in setting.strip("="):
            raise ConfigError(
                f"--conf {setting!r} is not a setting; write it as in --conf spark.executor.memory=2g"
            )
    return replace(chosen, port=PORT if chosen.port is None else chosen.port)


def require_worker() -> None:
    """Raise if no worker could run on this machine; download its jars, with a progress bar."""
    if find_spec("pyspark") is None:
        raise MissingExtraError("spark", "a worker (penstock serve --workers 0 needs none)")
    find_java()
    fetch_shown(jars.SPARK_GROUPS)


def _oidc(given: dict[str, Any] | None) -> OidcSettings | None:
    if given is None:
        return None
    values = dict(given)
    if values.get("grants") is not None:
        values["grants"] = {name: tuple(texts) for name, texts in values["grants"].items()}
    try:
        return OidcSettings(**values)
    except (TypeError, AttributeError):
        allowed = ", ".join(each.name for each in fields(OidcSettings))
        raise ConfigError(f"server: oidc: it needs other keys; allowed: {allowed}") from None
