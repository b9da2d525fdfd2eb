"""The server's API on a port of this machine, in this process, over a store in a file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from typing_extensions import Self

from penstock.control.passwords import Cost
from penstock.control.store import ControlStore
from penstock.control.store.users import Users
from penstock.server.api_server import ApiServer
from penstock.server.app import create_app
from penstock.server.listening import TlsFiles, listen
from penstock.server.settings import ServerSettings

PASSWORD = "correct horse 1"


class PenstockServer:
    """A server; a context manager. `prepared` is a folder with an empty store."""

    def __init__(
        self, folder: Path, prepared: Path, tls: TlsFiles | None = None, **settings: Any
    ) -> None:
        for file in prepared.iterdir():
            shutil.copy(file, folder)
        self.store = ControlStore.at(folder / "control.sqlite", folder / "keys")
        self.store.users = Users(self.store.database, Cost(n=16))
        self._settings = ServerSettings(workers=0, tls=tls is not None, **settings)
        self._tls = tls
        self._api: ApiServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, at the same port as before."""
        app = create_app(self.store, self._settings)
        self._api = ApiServer(app, listen("127.0.0.1", self.port), self._tls)
        self._api.start()
        self.port = self._api.port

    def stop(self) -> None:
        if self._api is not None:
            self._api.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.store.close()
