"""A real S3 API on the loopback, for tests: moto's server as a process, which checks the credentials."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import s3fs
from typing_extensions import Self

from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child

KEY, SECRET = "test-key", "test-secret-1"


class S3Server:
    """A store of its own; stopped and started again at its port, it has lost its objects."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-s3-"))
        (self.port,) = free_ports(1)
        self._child: Child | None = None
        self.start()

    @property
    def options(self) -> dict[str, Any]:
        """The options of a connection."""
        return {
            "key": KEY,
            "secret": SECRET,
            "endpoint_url": f"http://{HOST}:{self.port}",
            "client_kwargs": {"region_name": "eu-central-1"},
            "config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 2},
        }

    def client(self) -> s3fs.S3FileSystem:
        """Return a file system without caches."""
        return s3fs.S3FileSystem(**self.options, use_listings_cache=False, skip_instance_cache=True)

    def refuse_everyone(self, refuse: bool) -> None:
        """Let it know no credentials any more, or all."""
        url = f"http://{HOST}:{self.port}/moto-api/reset-auth"
        plain = {"Content-Type": "text/plain"}
        request = Request(url, b"0" if refuse else b"inf", plain)
        urlopen(request, timeout=10).close()

    def start(self) -> None:
        program = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)]
        self._child = Child(program, log=self.folder / "log", remove=self.folder)
        self._child.wait_until(self._answers, timeout=60, what="moto's server")

    def stop(self) -> None:
        """End it hard."""
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait(30)
            self._child = None

    def signal(self, number: signal.Signals) -> None:
        """Suspend it, or let it go on."""
        assert self._child is not None
        os.kill(self._child.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port), 1):
            return True
        return False
