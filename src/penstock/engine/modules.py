"""Finds the user's own files that a function needs, so that they can be sent to other machines.

Everything that is imported, also inside functions, is followed through the source text, as far as it is
neither Python's own nor installed: what is installed here must be installed there, too. Of a package go
the modules that are imported and the data that they name; the rest of its folder stays here.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec, resolve_name
from pathlib import Path

# Each machine has these from elsewhere: Penstock is sent as a whole, the script that runs by value.
_NOT_SENT = {"penstock", "__main__"}
_INSTALLED = {"site-packages", "dist-packages"}
# Whoever reads an archive on a cluster must not find a key in it, not even one that a module names.
_KEYS = (".key", ".p12", ".pfx", ".jks", ".keystore", ".keytab", ".kdbx", ".ppk", ".gpg", ".env")
_KEY_NAMES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials")
_LARGEST_KEY = 2**20

Files = dict[str, Path]
"""Files by their places in the archive."""


def modules_needed(names: Iterable[str]) -> Files:
    """Return the files of these modules, of all that they import, and the data that they name."""
    search = _Search()
    waiting = list(names)
    while waiting:
        waiting += search.add(waiting.pop())
    return {**search.modules, **search.data()}


def imported_by_script() -> set[str]:
    """Return what the script that runs imports: its functions go by value, those modules do not."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return _Source.read(Path(file), "").imports if file and file.endswith(".py") else set()


def is_private(file: Path) -> bool:
    """Return whether a file must stay on this machine: hidden files, keys, what Python made."""
    name = file.name.lower()
    if name.startswith((".", *_KEY_NAMES)) or name.endswith((".pyc", *_KEYS)):
        return True
    return file.stat().st_size <= _LARGEST_KEY and b"PRIVATE KEY-----" in file.read_bytes()


@dataclass
class _Search:
    modules: Files = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _texts: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str) -> set[str]:
        """Take in a module; return the names of what it may need."""
        first = name.partition(".")[0]
        if name in self._seen or first in _NOT_SENT:
            return set()
        self._seen.add(name)
        needed = {name.rpartition(".")[0]} - {""}
        for place in _own_places(first):
            for inside, file, package in _module_files(name, place):
                self.modules[inside] = file
                source = _Source.read(file, package)
                self._texts.setdefault(first, set()).update(source.texts)
                needed |= source.imports | {t for t in source.texts if t.startswith(f"{first}.")}
        return needed

    def data(self) -> Files:
        """Return the files of the packages that their own modules name."""
        return {
            inside: file
            for first, texts in self._texts.items()
            for place in _own_places(first)
            for inside, file in _data_files(first, place, texts)
        }


@dataclass
class _Source:
    """What the text of a module says: the full names that it may import, and its constant texts."""

    imports: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, file: Path, package: str) -> _Source:
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            return cls()  # it cannot be imported, so it is not
        contents = cls()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                contents.imports |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                contents.imports |= set(_imported_from(node, package))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                contents.texts.add(node.value)
        return contents


def _imported_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    """Yield the module, and each name as if it were a module in it: the text does not tell."""
    try:
        base = resolve_name("." * node.level + (node.module or ""), package or None)
    except ImportError:
        return
    yield base
    yield from (f"{base}.{each.name}" for each in node.names if each.name != "*")


def _own_places(name: str) -> list[Path]:
    """Return the file or the folders of a module that is the user's own; nothing for any other."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    if not places and spec.origin and spec.origin.endswith(".py"):
        places = [Path(spec.origin)]
    return [place for place in places if not _is_installed(place)]


def _is_installed(place: Path) -> bool:
    roots = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return bool(_INSTALLED & set(place.parts)) or any(place.is_relative_to(root) for root in roots)


def _module_files(name: str, place: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield the file of a module: its place in the archive, the file, and its package."""
    if place.is_file():
        if "." not in name:
            yield place.name, place, ""
        return
    first, *parts = name.split(".")
    inside, file = Path(first, *parts), place.joinpath(*parts)
    if (file / "__init__.py").is_file():
        yield (inside / "__init__.py").as_posix(), file / "__init__.py", name
    elif parts and file.with_name(f"{file.name}.py").is_file():
        module = file.with_name(f"{file.name}.py")
        yield f"{inside.as_posix()}.py", module, name.rpartition(".")[0]


def _data_files(first: str, place: Path, texts: set[str]) -> Iterator[tuple[str, Path]]:
    if place.is_file():
        return
    named = {part for text in texts if len(text) < 500 for part in (text, text.strip("/"))}
    for file in place.rglob("*"):
        inside = file.relative_to(place)
        folders = {part for parent in inside.parents for part in (parent.name, parent.as_posix())}
        if not named & ({file.name, inside.as_posix()} | folders - {"", "."}):
            continue
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if file.is_file() and file.suffix != ".py" and not hidden and not is_private(file):
            yield f"{first}/{inside.as_posix()}", file
