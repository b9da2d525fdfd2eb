"""An object store through fsspec: connections, listings, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from penstock.errors import (
    ConfigError,
    MissingExtraError,
    PenstockError,
    SetupError,
    TransientError,
)

# Under which names stores give what changes with the content, and when it was written.
_VERSIONS = ("ETag", "etag", "generation")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
# Parts of the names of errors that the packages of stores raise for credentials.
_CREDENTIALS = ("Credential", "Authentication", "Unauthorized")


@dataclass(frozen=True)
class StoredObject:
    """An object at one moment: a new content under its name has another version."""

    path: str
    size: int
    version: str
    modified: float | None
    # Whether the store shows an object only when all of it is written.
    is_whole: bool

    @property
    def name(self) -> str:
        """Return the last part of its path."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class ObjectStore:
    """A store and a folder in it, as tasks receive it; connections are shared in a process."""

    url: str
    options: Mapping[str, Any] = field(repr=False)

    def connect(self) -> tuple[Any, str]:
        """Return fsspec's file system, and the folder's path in it."""
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            raise MissingExtraError("object-stores", f"the folder {self.url}") from None
        try:
            with self.translated():
                # A copy: botocore changes what it is given, and fsspec knows a connection by its options.
                system, path = url_to_fs(self.url, **deepcopy(dict(self.options)))
        except ImportError as error:
            raise SetupError(
                f"the folder {self.url} needs a package that is not installed: {error}; for s3:// it is "
                "'pip install s3fs', for gs:// gcsfs, for abfs:// adlfs, for sftp:// paramiko"
            ) from None
        return system, path

    def listed(self, *, recursive: bool) -> list[StoredObject]:
        """Return the objects of the folder by one listing, in the order of their paths."""
        system, path = self.connect()
        with self.translated():
            try:
                system.invalidate_cache()
                found = (
                    [*system.find(path, detail=True).values()]
                    if recursive
                    else system.ls(path, detail=True)
                )
            except FileNotFoundError:
                self._require_bucket(system, path)
                return []
        files = [_stored(info) for info in found if info["type"] == "file"]
        own = [file for file in files if file.path != path and not file.path.endswith("/")]
        return sorted(own, key=lambda file: file.path)

    def _require_bucket(self, system: Any, path: str) -> None:
        """Raise unless the bucket exists: a prefix in it that no object has is only empty."""
        bucket = path.partition("/")[0]
        if not bucket:
            raise TransientError(f"the folder {self.url} is not there (any more)")
        try:
            system.info(bucket)
        except FileNotFoundError:
            raise ConfigError(
                f"the bucket {bucket!r} of {self.url} does not exist; create it, or check the name and "
                "the store's address in storage_options"
            ) from None

    def now(self, path: str) -> StoredObject | None:
        """Return an object as it is now; None where there is none."""
        system, _ = self.connect()
        with self.translated():
            try:
                system.invalidate_cache()
                info = system.info(path)
            except FileNotFoundError:
                return None
        return _stored(info) if info["type"] == "file" else None

    def fetch(self, path: str, start: int, end: int) -> bytes:
        """Return a range of an object."""
        system, _ = self.connect()
        with self.translated():
            try:
                return bytes(system.cat_file(path, start=start, end=end))
            except FileNotFoundError:
                raise replaced(path) from None

    def delete(self, path: str) -> None:
        """Delete an object; one that is gone is fine."""
        system, _ = self.connect()
        with self.translated():
            try:
                system.rm_file(path)
            except FileNotFoundError:
                return

    def copy(self, path: str, target: str) -> None:
        """Copy an object within the store."""
        system, _ = self.connect()
        with self.translated():
            system.makedirs(str(PurePosixPath(target).parent), exist_ok=True)
            system.cp_file(path, target)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of the store's package as ours; what is not found is left to the caller."""
        try:
            yield
        except (PenstockError, FileNotFoundError, ImportError):
            raise
        except Exception as error:  # each package has a tree of its own
            kind = type(error).__name__
            text = f"{self.url}: {kind}: {error}"[:500]
            if isinstance(error, PermissionError) or any(word in kind for word in _CREDENTIALS):
                raise ConfigError(
                    f"the store refuses the access to {text}; check the credentials in storage_options, "
                    "and that they allow to list and to read"
                ) from error
            if isinstance(error, (ValueError, TypeError)) or kind == "ParamValidationError":
                raise ConfigError(
                    f"{text}; check the folder, and that storage_options are those of the package for "
                    f"{urlsplit(self.url).scheme}://"
                ) from error
            raise TransientError(f"the store does not answer as it should: {text}") from error


def replaced(path: str) -> TransientError:
    """Return the error for an object whose content changed while it was read."""
    return TransientError(
        f"{path} was replaced or deleted while it was read: a new content is read from its start"
    )


def _stored(info: Mapping[str, Any]) -> StoredObject:
    size = int(info["size"] or 0)
    tag = next((str(info[name]) for name in _VERSIONS if info.get(name)), None)
    modified = _seconds(next((info[name] for name in _TIMES if info.get(name)), None))
    version = tag.strip('"') if tag else f"{size}-{modified}"
    return StoredObject(info["name"], size, version, modified, is_whole=tag is not None)


def _seconds(time: Any) -> float | None:
    """Return a time in seconds since 1970.

    >>> _seconds("2026-01-02T03:04:05Z"), _seconds(12), _seconds(None)
    (1767323045.0, 12.0, None)
    """
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(time, datetime):
        return time.timestamp()
    return float(time) if isinstance(time, (int, float)) else None
