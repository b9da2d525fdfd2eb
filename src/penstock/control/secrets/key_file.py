"""The file with the server's keys: the first one encrypts, all of them decrypt."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes, token_hex

from penstock.errors import ConfigError, SetupError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY = re.compile(r"[A-Za-z0-9+/]{43}=")
_TITLE = (
    "# Keys of Penstock's control plane, the newest first. Without them stored secrets are lost."
)


def key_id(key: bytes) -> bytes:
    """Return the name of a key: what is encrypted says with which one."""
    return hashlib.sha256(b"penstock key id" + key).digest()[:4]


class KeyFile:
    """The keys in a file that only its owner can read; `read` them, or `create` the first one.

    Workers on other machines need a copy of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> list[bytes]:
        """Return the keys of the file, which is created if it is missing; the first creator wins."""
        if not self.path.exists():
            self._write([token_bytes(32)], replace=False)
        return self.read()

    def read(self) -> list[bytes]:
        """Return all keys, the newest first.

        Raises
        ------
        SetupError
            When the file is missing, or others can read it.
        """
        try:
            with self.path.open(encoding="ascii") as file:
                self._check(os.fstat(file.fileno()))
                lines = [line.strip() for line in file]
        except OSError as error:
            raise SetupError(
                f"the keys of the stored secrets cannot be read: {self.path}: {error.strerror}; copy the "
                "file from the machine that created it"
            ) from None
        except UnicodeDecodeError:
            lines = ["?"]
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys or not all(map(_KEY.fullmatch, keys)):
            raise ConfigError(
                f"{self.path} is not a file of keys: each line is a key of 32 bytes in Base64; "
                "restore it from a backup"
            )
        return [b64decode(line) for line in keys]

    def rotate(self) -> list[bytes]:
        """Add a new key in front of the others and return all of them."""
        keys = [token_bytes(32), *self.read()]
        self._write(keys, replace=True)
        return keys

    def keep_newest(self) -> None:
        """Remove all keys but the newest, once everything is encrypted with that one."""
        self._write(self.read()[:1], replace=True)

    def _check(self, status: os.stat_result) -> None:
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            raise SetupError(
                f"{self.path} belongs to another user or can be read by others, and it opens all stored "
                f"secrets: chmod 600 {self.path}, and rotate the keys if others may have read it"
            )

    def _write(self, keys: list[bytes], *, replace: bool) -> None:
        lines = [_TITLE, *(b64encode(key).decode() for key in keys)]
        temporary = self.path.with_name(f".{self.path.name}.{token_hex(8)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with open(handle, "w", encoding="ascii") as file:  # noqa: PTH123 - an open handle
                file.write("\n".join(lines) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self._publish(temporary, replace=replace)
        except OSError as error:
            raise SetupError(
                f"the keys of the stored secrets cannot be written: {self.path}: {error.strerror}"
            ) from None
        finally:
            temporary.unlink(missing_ok=True)

    def _publish(self, temporary: Path, *, replace: bool) -> None:
        """Give the file its name; without `replace` one that exists by now is kept."""
        if replace:
            temporary.replace(self.path)
            return
        with suppress(FileExistsError):
            self.path.hardlink_to(temporary)
