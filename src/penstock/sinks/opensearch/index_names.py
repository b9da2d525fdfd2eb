"""What an index may be called, by the rules of the server: a wrong name is refused before it is sent."""

from __future__ import annotations

_LONGEST = 255
_FORBIDDEN = frozenset('\\/*?"<>| ,#:')


def name_problem(name: str | None, prefix: str = "") -> str | None:
    """Return what is wrong with the name of an index; None if nothing is.

    `prefix` is how the name begins by the definition: a row alone never names a hidden index.

    >>> name_problem("orders-2024.05")
    >>> name_problem("a/b")
    "'a/b' cannot be the name of an index: it has '/'"
    >>> name_problem(".tasks"), name_problem(".own-x", prefix=".own-")
    ("'.tasks' cannot be the name of an index: it begins with '.'", None)
    """
    if name is None:
        return "the name of the index is null: a column of 'index' is null"
    if reason := _reason(name, prefix):
        shown = name if len(name) <= 100 else f"{name[:100]}..."
        return f"{shown!r} cannot be the name of an index: {reason}"
    return None


def _reason(name: str, prefix: str) -> str | None:
    if wrong := next((letter for letter in name if letter in _FORBIDDEN or letter < " "), None):
        return f"it has {wrong!r}"
    if name != name.lower():
        return "it has upper-case letters"
    if not name or len(name.encode()) > _LONGEST:
        return f"it needs 1 to {_LONGEST} bytes"
    if name[0] in "-_+" or name == "..":
        return f"it begins with {name[0]!r}"
    if name[0] == "." and not prefix.startswith("."):
        return "it begins with '.'"
    return None
