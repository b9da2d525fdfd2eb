"""Finds the user's own modules that a function needs, so that they can be sent to other machines.

Everything that is imported, also inside functions, is followed through the source text, as far as it is
neither Python's own nor installed: what is installed here must be installed there, too.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

# Each machine has these from elsewhere: Penstock is sent as a whole, the script that runs by value.
_NOT_SENT = {"penstock", "__main__"}
_INSTALLED = {"site-packages", "dist-packages"}


def modules_needed(names: Iterable[str]) -> dict[str, list[Path]]:
    """Return the places of these modules and of all that they import, by their first names."""
    found: dict[str, list[Path]] = {}
    waiting = [name.partition(".")[0] for name in names]
    while waiting:
        name = waiting.pop()
        if name in found or name in _NOT_SENT:
            continue
        if places := _own_places(name):
            found[name] = places
            waiting += {other for place in places for other in _imported(place)}
    return found


def imported_by_script() -> set[str]:
    """Return what the script that runs imports: its functions go by value, those modules do not."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return _imports_of(Path(file)) if file and file.endswith(".py") else set()


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


def _imported(place: Path) -> Iterator[str]:
    for file in [place] if place.is_file() else place.rglob("*.py"):
        yield from _imports_of(file)


def _imports_of(file: Path) -> set[str]:
    """Return the first names of all modules that a file imports by their full names."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:
        return set()  # nobody can import it, so nobody does
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
