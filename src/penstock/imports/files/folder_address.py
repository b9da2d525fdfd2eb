"""Whether a folder is one: on this disk, or an address of an object store."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from penstock.pipeline.storage import is_uri, on_this_disk

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)


def checked_folder(given: str) -> str:
    """Return the folder, without the scheme of this disk; raise what is wrong with an address.

    >>> checked_folder("s3://bucket/logs/"), checked_folder("file:///var/log"), checked_folder("logs")
    ('s3://bucket/logs', '/var/log', 'logs')
    """
    folder = on_this_disk(given)
    if not is_uri(folder):
        return folder
    if "::" in folder or not _SCHEME.fullmatch(folder):
        raise ValueError(
            f"{given!r} is not the address of a store; give STORE://BUCKET/FOLDER, as in s3://shop/orders"
        )
    split = urlsplit(folder)
    if split.scheme in ("http", "https"):
        raise ValueError(
            f"a folder cannot be listed over {split.scheme}; poll it with the source 'http'"
        )
    if split.password is not None:
        raise ValueError("the address contains a password; give it in 'storage_options' instead")
    if "*" in folder:
        raise ValueError(f"{given!r} has a pattern in it; give the names' pattern in 'pattern'")
    if not split.netloc and not split.path.strip("/"):
        raise ValueError(f"{given!r} names no bucket; give STORE://BUCKET/FOLDER")
    return folder.rstrip("/")


def check_target(folder: str, target: str, *, recursive: bool) -> None:
    """Raise unless finished files can be moved from a folder to the target."""
    if is_uri(folder) != is_uri(target) or _scheme(folder) != _scheme(target):
        raise ValueError(
            f"files cannot be moved from {folder!r} to {target!r}: give a folder in the same store"
        )
    inside = f"{target}/".startswith(f"{folder}/") if is_uri(folder) else _is_inside(folder, target)
    if _same(folder, target) or (inside and recursive):
        raise ValueError(
            f"finished_folder {target!r} is read itself: files would be moved without end; give a folder "
            "outside of 'folder'"
        )


def _scheme(folder: str) -> str:
    return urlsplit(folder).scheme if is_uri(folder) else ""


def _same(folder: str, target: str) -> bool:
    return folder == target if is_uri(folder) else Path(folder).resolve() == Path(target).resolve()


def _is_inside(folder: str, target: str) -> bool:
    return Path(target).resolve().is_relative_to(Path(folder).resolve())
