"""A real Prometheus on the loopback, for tests, and its promtool."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import yaml
from tests.services.server import Server, install

_PROGRAM = Path("/usr/bin/prometheus")


def _program() -> Path | None:
    return _PROGRAM if _PROGRAM.exists() else None


def promtool(*arguments: str | Path, given: str | None = None) -> str:
    """Run promtool; return its output, or fail with it."""
    install("prometheus", _program)
    command = [_PROGRAM.with_name("promtool"), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Prometheus(Server):
    """One server with a configuration; `files` are copied next to it."""

    def __init__(self, config: dict[str, Any], files: dict[str, str]) -> None:
        super().__init__("prometheus", "prometheus", "prometheus", _program)
        for name, text in {"prometheus.yml": yaml.safe_dump(config), **files}.items():
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(path, self.user)
        self.url = f"http://{self.host}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        options = [
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={self.host}:{self.port}",
        ]
        self.begin([self.program, *options], self._answers)

    def stop(self) -> None:
        """End it in order."""
        self.end(signal.SIGTERM)

    def get(self, path: str, **query: str) -> Any:
        """Return the data of a reply of its API."""
        reply = httpx.get(f"{self.url}/api/v1/{path}", params=query, timeout=10)
        assert reply.status_code == 200, reply.text
        return reply.json()["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current series of an expression."""
        return list(self.get("query", query=expression)["result"])

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=1).status_code == 200
        except httpx.HTTPError:
            return False
