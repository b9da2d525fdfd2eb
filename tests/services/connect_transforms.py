"""The transforms of Apache Kafka Connect themselves, in one Java process: what ours are compared with."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from penstock.embedded.jars import fetch_artifacts
from penstock.embedded.jars_lock import parse
from penstock.embedded.java import find_java

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("ConnectTransforms.java")


class ConnectTransforms:
    """A process that applies chains of transforms to records, with the published classes."""

    def __enter__(self) -> ConnectTransforms:
        classes = ":".join(map(str, _jars()))
        # Names of months and the first day of a week are those of the locale.
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += ["-Duser.language=en", "-Duser.country=US", "-Duser.timezone=UTC"]
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [find_java().path, *options, "-cp", classes, PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._errors.close()

    def apply(self, config: dict[str, str], records: list[dict[str, Any]]) -> Any:
        """Return each record after the chain; None: it was dropped; an `error`: it was refused."""
        return self._asked({"config": config, "records": records})

    def check(self, class_name: str, config: dict[str, str]) -> Any:
        """Return the `errors` of the keys, and as `configure` what the class itself refuses."""
        return self._asked({"class": class_name, "config": config})

    def _asked(self, document: Any) -> Any:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(document).encode() + b"\n")
        process.stdin.flush()
        reply = process.stdout.readline()
        if not reply:
            self._errors.seek(0)
            raise RuntimeError(self._errors.read().decode(errors="replace")[-3000:])
        return json.loads(reply)


def _jars() -> list[Path]:
    lock = (ROOT / "bench" / "jars.lock").read_text(encoding="utf-8")
    return fetch_artifacts("connect", [one for one in parse(lock) if one.group == "connect"])
