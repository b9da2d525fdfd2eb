"""All components with their JSON schemas, read once by another process: most of them import Spark."""

from __future__ import annotations

import subprocess
import sys
from threading import Lock
from typing import Any

import orjson

from penstock.config.secrets import mask
from penstock.errors import TransientError
from penstock.pipeline import Pipeline
from penstock.pipeline.component import Component
from penstock.pipeline.registry import ALIASES, component, names

KINDS = ("source", "decode", "step", "sink")
_SECONDS = 180.0


class ComponentCatalog:
    """The catalog of this installation; it does not change while the server runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: dict[str, Any] | None = None

    def components(self) -> list[dict[str, Any]]:
        """Return all components, by kind and name."""
        return list(self._catalog()["components"])

    def definition(self) -> dict[str, Any]:
        """Return the JSON schema of definitions."""
        return dict(self._catalog()["definition"])

    def _catalog(self) -> dict[str, Any]:
        with self._lock:  # one process reads it, and all requests wait for that one
            if self._read is None:
                self._read = _from_process()
            return self._read


def catalog() -> dict[str, Any]:
    """Read the catalog in this process."""
    found = [_described(kind, name) for kind in KINDS for name in names(kind)]
    return {"components": found, "definition": Pipeline.model_json_schema()}


def _described(kind: str, name: str) -> dict[str, Any]:
    aliases = sorted(alias for (of, alias), now in ALIASES.items() if (of, now) == (kind, name))
    place = {"kind": kind, "name": name, "aliases": aliases}
    try:
        cls = component(kind, name)
        return {**place, **_documented(cls)}
    except Exception as error:  # a component of others may raise anything when it is imported
        reason = f"it cannot be loaded: {type(error).__name__}: {error}"
        return {**place, "summary": "", "description": "", "schema": None, "error": mask(reason)}


def _documented(cls: type[Component]) -> dict[str, Any]:
    lines = (cls.__doc__ or "").strip().splitlines() or [""]
    description = "\n".join(line.strip() for line in lines)
    return {
        "summary": lines[0],
        "description": description,
        "main_option": cls.main_option,
        "schema": cls.model_json_schema(),
    }


def _from_process() -> dict[str, Any]:
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)
        reply: dict[str, Any] = orjson.loads(done.stdout.splitlines()[-1])
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TransientError(f"the components could not be read: {mask(' '.join(last))}") from None
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        raise TransientError(f"the components could not be read: {type(error).__name__}") from None
    return reply


if __name__ == "__main__":
    sys.stdout.buffer.write(b"\n" + orjson.dumps(catalog()) + b"\n")
