"""A client of the schema registry for all tests here; each test has topics and subjects of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from penstock.embedded import SchemaRegistry
from penstock.formats.registry import Registry


@pytest.fixture(scope="session")
def registry(schema_registry: SchemaRegistry) -> Registry:
    return Registry(schema_registry.url, timeout=30)


@pytest.fixture
def trade_class() -> Callable[..., Any]:
    """Makes shop.Trade with the given fields; `money` is a message from an imported file."""
    kinds = {"id": 3, "price": 1, "name": 9}

    def make(*fields: str) -> Any:
        pool = DescriptorPool()
        money = FileDescriptorProto(name="shop/money.proto", package="shop", syntax="proto3")
        money.message_type.add(name="Money").field.add(name="cents", number=1, type=3, label=1)
        pool.Add(money)
        trade = FileDescriptorProto(name="shop/trade.proto", package="shop", syntax="proto3")
        message = trade.message_type.add(name="Trade")
        for number, field in enumerate(fields, start=1):
            added = message.field.add(name=field, number=number, label=1)
            added.type = kinds.get(field, 11)
            if field == "money":
                added.type_name = ".shop.Money"
                trade.dependency.append("shop/money.proto")
        pool.Add(trade)
        return GetMessageClass(pool.FindMessageTypeByName("shop.Trade"))

    return make
