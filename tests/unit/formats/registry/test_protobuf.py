"""Protobuf messages come back as they were written; other messages and damaged bytes are refused."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError, FormatError
from penstock.formats.protobuf import Protobuf, read_place, write_place
from penstock.formats.registry import Reference, Schema

New = Callable[[], Any]
Make = Callable[..., Any]

TRADE = ("trade.proto", {"Other": {"x": "string"}, "Trade": {"id": "int64", "name": "string"}}, ())
MONEY = ("money.proto", {"Money": {"cents": "int64"}}, ())
ORDER = (
    "order.proto",
    {"Order": {"id": "int64", "total": ".shop.Money", "at": ".google.protobuf.Timestamp"}},
    ("money.proto", "google/protobuf/timestamp.proto"),
)


def test_a_message_comes_back_with_its_class_and_without(
    new_registry: New, message_class: Make
) -> None:
    registry, trade = new_registry(), message_class(TRADE)
    protobuf = Protobuf(registry, trade)

    data = protobuf.encode(trade(id=5, name="é"), "t")

    assert data == b"\0\0\0\0\1\x02\x02" + trade(id=5, name="é").SerializeToString()
    assert protobuf.decode(data, "t") == trade(id=5, name="é")
    found = Protobuf(registry).decode(data, "t")
    assert (found.DESCRIPTOR.full_name, found.id, found.name) == ("shop.Trade", 5, "é")


def test_imports_are_registered_under_their_names_and_googles_own_are_not(
    new_registry: New, message_class: Make
) -> None:
    registry, order = new_registry(), message_class(MONEY, ORDER)
    value = order(id=1, total={"cents": 7}, at={"seconds": 3})

    data = Protobuf(registry, order).encode(value, "t")

    assert [kept.subject for kept in registry.kept] == ["money.proto", "t-value"]
    assert registry.kept[1].schema.references == (Reference("money.proto", "money.proto", 1),)
    found = Protobuf(registry).decode(data, "t")
    assert (found.id, found.total.cents, found.at.seconds) == (1, 7, 3)


def test_a_field_added_later_is_at_its_default_and_one_removed_is_not_seen(
    new_registry: New, message_class: Make
) -> None:
    registry = new_registry()
    old = message_class(("t.proto", {"Trade": {"id": "int64"}}, ()))
    new = message_class(("t.proto", {"Trade": {"id": "int64", "name": "string"}}, ()))

    from_old = Protobuf(registry, old).encode(old(id=5), "t")
    from_new = Protobuf(registry, new).encode(new(id=6, name="x"), "t")

    assert Protobuf(registry, new).decode(from_old, "t") == new(id=5, name="")
    assert Protobuf(registry, old).decode(from_new, "t").id == 6


def test_a_message_of_another_name_is_refused(new_registry: New, message_class: Make) -> None:
    registry, trade, money = new_registry(), message_class(TRADE), message_class(MONEY)
    data = Protobuf(registry, trade).encode(trade(id=5), "t")

    with pytest.raises(FormatError, match=r"hold a shop\.Trade, and this format reads shop\.Money"):
        Protobuf(registry, money).decode(data, "t")
    with pytest.raises(
        FormatError, match=r"Money is not a shop\.Trade: give a message of that class"
    ):
        Protobuf(registry, trade).encode(money(cents=1), "t")


def test_a_schema_in_text_needs_the_class(new_registry: New, message_class: Make) -> None:
    registry, money = new_registry(), message_class(MONEY)
    text = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    registry.register("t-value", Schema(text, "PROTOBUF"))
    data = b"\0\0\0\0\1\0" + money(cents=7).SerializeToString()

    assert Protobuf(registry, money).decode(data, "t") == money(cents=7)
    with pytest.raises(FormatError, match=r"\.proto text.*give the message class"):
        Protobuf(registry).decode(data, "t")


def test_the_latest_schema_says_where_the_message_stands(
    new_registry: New, message_class: Make
) -> None:
    registry, trade = new_registry(), message_class(TRADE)
    moved = message_class(("trade.proto", {"Trade": {"id": "int64"}}, ()))
    Protobuf(registry, moved).encode(moved(id=1), "t")

    data = Protobuf(registry, trade, use_latest=True).encode(trade(id=5), "t")

    assert data[:6] == b"\0\0\0\0\1\0"


def test_without_a_class_nothing_is_written(new_registry: New) -> None:
    with pytest.raises(ConfigError, match=r"can only read: give Protobuf\(registry, CLASS\)"):
        Protobuf(new_registry()).encode(Timestamp(), "t")
    with pytest.raises(ConfigError, match="give the class of a Protobuf message"):
        Protobuf(new_registry(), dict)


def test_only_googles_own_files_are_imported_by_name(new_registry: New) -> None:
    registry = new_registry()
    file = FileDescriptorProto(name="x.proto", dependency=["antigravity.proto"])
    file.message_type.add(name="X")
    registry.register("t-value", Schema(b64encode(file.SerializeToString()).decode(), "PROTOBUF"))

    with pytest.raises(FormatError, match=r"schema 'x\.proto' cannot be used"):
        Protobuf(registry).decode(b"\0\0\0\0\1\0", "t")


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=5))
def test_the_place_of_a_message_comes_back(place: list[int]) -> None:
    data = write_place(place)

    assert read_place(data + b"rest") == (tuple(place), len(data))


@pytest.mark.parametrize("body", [b"", b"\x04\x02", b"\x01", b"\x80" * 9, b"\x02\x09", b"\x02\x0a"])
def test_a_place_that_is_none_is_refused(
    new_registry: New, message_class: Make, body: bytes
) -> None:
    registry, trade = new_registry(), message_class(TRADE)
    protobuf = Protobuf(registry, trade)
    protobuf.encode(trade(), "t")

    with pytest.raises(FormatError, match=r"place of the message|no such message"):
        protobuf.decode(b"\0\0\0\0\1" + body, "t")


@pytest.fixture(scope="module")
def trades(new_registry: New, message_class: Make) -> tuple[Any, Protobuf, Protobuf]:
    registry, trade = new_registry(), message_class(TRADE)
    Protobuf(registry, trade).encode(trade(), "t")
    return trade, Protobuf(registry, trade), Protobuf(registry)


@given(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_message_comes_back(trades: Any, number: int, text: str) -> None:
    trade, protobuf, _ = trades

    value = trade(id=number, name=text)

    assert protobuf.decode(protobuf.encode(value, "t"), "t") == value


@given(st.binary(max_size=64))
def test_random_bytes_give_a_message_or_a_format_error_and_nothing_else(
    trades: Any, body: bytes
) -> None:
    for protobuf in trades[1:]:
        for data in (body, b"\0\0\0\0\1" + body, b"\0\0\0\0\1\x02\x02" + body):
            try:
                found = protobuf.decode(data, "t")
            except FormatError:
                continue
            assert found.DESCRIPTOR.full_name in {"shop.Trade", "shop.Other"}


def test_the_registered_schema_is_the_description_of_the_file(
    new_registry: New, message_class: Make
) -> None:
    registry, trade = new_registry(), message_class(TRADE)
    Protobuf(registry, trade).encode(trade(), "t")

    file = FileDescriptorProto.FromString(b64decode(registry.kept[0].schema.text))

    assert [message.name for message in file.message_type] == ["Other", "Trade"]
