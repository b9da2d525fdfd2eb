"""A home of its own for each test, and a small Maven repository on loopback."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from penstock.embedded import ivy, jars
from penstock.embedded.jars_lock import Artifact


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PENSTOCK_MAVEN_URL", raising=False)
    return tmp_path / "home"


@pytest.fixture
def no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "find_ivy", lambda: None)


@dataclass
class Repository:
    """What is served, by path, and what was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def repository() -> Iterator[Repository]:
    served = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            self.wfile.write(self.answered())

        def do_HEAD(self) -> None:
            self.answered()

        def answered(self) -> bytes:
            content = served.files.get(self.path.removeprefix("/maven/"))
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            return content or b""

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        served.url = f"http://127.0.0.1:{server.server_port}/maven"
        yield served
        server.shutdown()


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch, repository: Repository) -> list[Artifact]:
    """Two small files that are locked and served."""
    made = [artifact("one", b"first"), artifact("two", b"second")]
    repository.files = {made[0].repository_path: b"first", made[1].repository_path: b"second"}
    monkeypatch.setattr(jars, "artifacts_of", lambda _: made)
    return made


def artifact(name: str, content: bytes) -> Artifact:
    digest = hashlib.sha256(content).hexdigest()
    return Artifact("things", "org.example", name, "1.0", "", "jar", len(content), digest)
