"""How deep JSON may nest: a fixed bound, so that no parser's stack decides it from case to case."""

from __future__ import annotations

import re

from penstock.decode.kernels.failure import MisfitError

MAX_DEPTH = 256
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def refuse_deep(record: bytes) -> None:
    """Raise when brackets nest deeper than `MAX_DEPTH`."""
    if len(record) <= MAX_DEPTH or record.count(b"[") + record.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for mark in _BRACKETS.findall(_STRINGS.sub(b"", record)):
        depth += 1 if mark in b"[{" else -1
        if depth > MAX_DEPTH:
            raise too_deep()


def too_deep() -> MisfitError:
    """Give the error of a record that nests too deep."""
    return MisfitError("TooDeep", f"the JSON nests deeper than {MAX_DEPTH} levels")
