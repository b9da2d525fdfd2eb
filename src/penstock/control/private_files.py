"""Which files may contain code: reading a function that was stored by value runs it."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

import psutil

from penstock.errors import SetupError

PLACE = "PENSTOCK_STORE"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NETWORK = ("nfs", "cifs", "smb", "afs", "ceph", "gluster", "lustre", "fuse.", "beegfs", "gpfs")


def make_private(file: Path, what: str = "the jobs", setting: str = f"set {PLACE} to") -> None:
    """Make the file private to this user: it may contain passwords, and functions that are run.

    `what` is stored in the file, and `setting` chooses another one; both are for messages. A file that
    exists is not opened: closing it would end the locks that SQLite has on it in this process.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        status = file.stat()
        _require_usable(file, status)
    except OSError as error:
        raise SetupError(
            f"{what} cannot be stored in {file}: {error.strerror}; {setting} another file"
        ) from None
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
        raise SetupError(
            f"{file} belongs to another user or can be opened by others; it may contain passwords and "
            f"code that is run: chmod 600 {file}, or {setting} a file of your own"
        )


def _require_usable(file: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(file, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def distrust(file: Path | None) -> str | None:
    """Return why a file must not contain code, or None if only this user can have written it."""
    if file is None:
        return "it is a database that others may write to"
    try:
        return _of_file(file) or _of_folders(file.resolve()) or _of_disk(file.resolve())
    except OSError as error:
        return f"{file} cannot be checked: {error.strerror}"


def _of_file(file: Path) -> str | None:
    found = file.lstat()
    if not stat.S_ISREG(found.st_mode):
        return f"{file} is not a regular file"
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        return f"{file} belongs to another user or can be opened by others (chmod 600 {file})"
    return None


def _of_folders(file: Path) -> str | None:
    """Return why the folders are not private: anyone who can write to one can replace its files."""
    folder = file.parent.stat()
    if folder.st_uid != os.geteuid() or _others_write(folder):
        return f"others can write to its folder {file.parent} (chmod 700 {file.parent})"
    for above in file.parent.parents:
        status = above.stat()
        shared = _others_write(status) and not status.st_mode & stat.S_ISVTX
        if shared or status.st_uid not in (0, os.geteuid()):
            return f"others can replace folders in {above}"
    return None


def _others_write(status: os.stat_result) -> bool:
    """Return whether others can write to a folder; a group of this user alone does not count."""
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        me, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(status.st_gid)
    except KeyError:
        return True
    return status.st_gid != me.pw_gid or not set(group.gr_mem) <= {me.pw_name}


def _of_disk(file: Path) -> str | None:
    mounted = {
        Path(one.mountpoint): one.fstype for one in psutil.disk_partitions(all=True) if one.fstype
    }
    place = next((above for above in file.parents if above in mounted), None)
    kind = mounted[place] if place else ""
    if kind.startswith(_NETWORK):
        return f"{place} is a network file system ({kind})"
    return None
