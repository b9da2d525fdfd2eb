"""The public names of the client, listed so that a new one is a decision."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import AsyncConsumer, AsyncProducer, Connection, Consumer, Producer

UNREACHABLE = Connection(brokers="127.0.0.1:1")
TRANSACTIONS = (
    "abort_transaction begin_transaction commit_transaction init_transactions "
    "send_offsets_to_transaction transaction"
)
READING = (
    "assign assigned_at assignment at_end close commit commit_async committed connection member_id "
    "offset_info offsets_for_times pause poll poll_batch poll_mapping poll_table poll_value position "
    "read resume seek store_offsets subscribe subscription timeout unassign unsubscribe wakeup "
    "watermarks"
)
WRITING = (
    f"{TRANSACTIONS} close connection delivered failed flush produce produce_table queue_timeout "
    "sizes timeout"
)


def names(client: Any) -> set[str]:
    """Return the public names of a client or one of its parts."""
    return {name for name in dir(client) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (Consumer, f"{READING} cached_watermarks group group_metadata queues setting"),
        (Producer, f"{WRITING} poll raise_failures"),
        (AsyncConsumer, f"{READING} sync"),
        (AsyncProducer, f"{WRITING} send"),
    ],
)
def test_a_client_has_these_public_names_and_no_others(client: Any, expected: str) -> None:
    assert names(client(UNREACHABLE)) == set(expected.split())


def test_queues_have_these_public_names_and_no_others() -> None:
    queues = Consumer(UNREACHABLE).queues
    assert names(queues) == {"consumer", "main", "partition"}
    assert names(queues.main) == {
        *("event", "forward_to", "name", "poll", "poll_batch", "stop_forwarding", "timeout")
    }


@pytest.mark.parametrize("client", [Consumer, Producer, AsyncConsumer, AsyncProducer])
def test_a_client_is_one_class(client: type) -> None:
    assert client.__mro__ == (client, object)
