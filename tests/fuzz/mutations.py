"""Hostile bytes made of good ones: flipped, cut, spliced, with counts that are not true."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from random import Random

BLOCK = 1000
"""Inputs that share one seed: an input is found again by its decoder, block and place."""
_NUMBERS = [0, 1, -1, 2, 127, 128, 255, 256, 65535, 65536, 2**20, 2**30, 2**31 - 1, -(2**31)]
_COUNTS = [
    *(struct.pack("<i", number) for number in _NUMBERS),
    *(struct.pack(">i", number) for number in _NUMBERS),
    *(struct.pack("<q", number) for number in (-1, 2**31, 2**40, 2**62, -(2**63))),
    b"\xff" * 9 + b"\x01",
    b"\x80" * 5,
]


def inputs(
    name: str, block: int, seeds: Sequence[bytes], tokens: Sequence[bytes]
) -> Iterator[bytes]:
    """Give the inputs of one block, always the same ones."""
    random = Random(f"{name}:{block}")
    pieces = [*_COUNTS, *tokens]
    for _ in range(BLOCK):
        kind = random.getrandbits(4)
        if kind == 0:
            yield random.randbytes(random.getrandbits(6))
            continue
        data = bytearray(seeds[int(random.random() * len(seeds))])
        if kind == 1:
            other = seeds[int(random.random() * len(seeds))]
            yield bytes(data[: _place(random, data)]) + other[_place(random, other) :]
            continue
        for _ in range(1 + (random.getrandbits(2) & random.getrandbits(2))):
            _CHANGES[random.getrandbits(4)](random, data, pieces)
        yield bytes(data)


def _place(random: Random, data: bytes | bytearray) -> int:
    return int(random.random() * (len(data) + 1))


def _flip(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    if data:
        data[int(random.random() * len(data))] ^= 1 << random.getrandbits(3)


def _byte(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    if data:
        data[int(random.random() * len(data))] = random.getrandbits(8)


def _cut(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    del data[_place(random, data) :]


def _remove(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    place = _place(random, data)
    del data[place : place + 1 + random.getrandbits(3)]


def _repeat(random: Random, data: bytearray, _pieces: Sequence[bytes]) -> None:
    place = _place(random, data)
    data[place:place] = data[place : place + random.getrandbits(4)] * (1 + random.getrandbits(3))


def _insert(random: Random, data: bytearray, pieces: Sequence[bytes]) -> None:
    place = _place(random, data)
    data[place:place] = pieces[int(random.random() * len(pieces))]


def _replace(random: Random, data: bytearray, pieces: Sequence[bytes]) -> None:
    place, piece = _place(random, data), pieces[int(random.random() * len(pieces))]
    data[place : place + len(piece)] = piece


Change = Callable[[Random, bytearray, Sequence[bytes]], None]
_CHANGES: list[Change] = [_flip] * 4 + [_byte] * 3 + [_cut, _remove, _remove, _repeat, _repeat]
_CHANGES += [_insert, _insert, _replace, _replace]
