"""Headers of connectors: bytes that stay as they are, and texts where transforms read or make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.connect.chain_kinds import makes_headers
from penstock.connect.common_keys import HEADER_CONVERTER
from penstock.connect.converters import Converters
from penstock.steps.connect_transforms.chain import TransformSpec

_AS_TEXT = ("simple", "string")


def header_problem(converters: Converters, chain: Sequence[TransformSpec]) -> str | None:
    """Return what is wrong with a header converter: headers that transforms make are texts here."""
    made = makes_headers(chain)
    if converters.header.converter.form in _AS_TEXT or not made:
        return None
    return (
        f"Invalid value {converters.header.converter.name} for configuration {HEADER_CONVERTER}: the "
        f"transform {made[0]} makes headers, which are text here; use SimpleHeaderConverter or "
        "StringConverter"
    )


def header_notes(converters: Converters) -> Iterator[str]:
    """Yield what another header converter than the simple one means here."""
    if converters.header.converter.form not in (*_AS_TEXT, "bytes"):
        yield (
            f"{HEADER_CONVERTER}: headers are not decoded; they stay the bytes that "
            f"{converters.header.converter.names[1]} reads and writes"
        )
