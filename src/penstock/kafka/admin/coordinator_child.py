"""The child of `coordinator`: a line with a question comes in, a line with the answer goes out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson
from confluent_kafka import ConsumerGroupState, KafkaError

from penstock.config import Connection
from penstock.error_frame import to_document
from penstock.errors import PenstockError
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.admin_model import GroupDescription, MemberInfo
from penstock.kafka.kafka_errors import code_of

_MISSING = KafkaError.GROUP_ID_NOT_FOUND


def main() -> None:
    """Answer requests until the input ends."""
    config, timeout = orjson.loads(sys.stdin.buffer.readline())
    ask = AdminCalls(Connection.from_config(config), timeout)
    for line in sys.stdin.buffer:
        deed, names = orjson.loads(line)
        sys.stdout.buffer.write(orjson.dumps(_answers(ask, deed, names)) + b"\n")
        sys.stdout.buffer.flush()


def _answers(ask: AdminCalls, deed: str, names: Sequence[str]) -> dict[str, Any]:
    if deed == "delete":
        doing, call = "deleting", ask.client.delete_consumer_groups
    else:
        doing, call = "describing", ask.client.describe_consumer_groups
    try:
        outcomes = ask.outcomes(f"{doing} group {', '.join(names)}", call, list(names))
    except PenstockError as error:
        return dict.fromkeys(names, _problem(error))
    return {name: _document(outcome) for name, outcome in outcomes.items()}


def _document(outcome: Any) -> Any:
    if isinstance(outcome, PenstockError):
        return None if code_of(outcome) == _MISSING else _problem(outcome)
    # A deleted group reports nothing, and a broker before Kafka 4 calls a missing one dead.
    if outcome is None or outcome.state == ConsumerGroupState.DEAD:
        return None
    return GroupDescription(
        state=outcome.state.name.lower(),
        protocol=outcome.type.name.lower(),
        assignor=outcome.partition_assignor,
        simple=outcome.is_simple_consumer_group,
        members=tuple(map(_member, outcome.members)),
    )


def _member(member: Any) -> MemberInfo:
    given = sorted((tp.topic, tp.partition) for tp in member.assignment.topic_partitions)
    return MemberInfo(member.member_id, member.client_id, member.host, tuple(given))


def _problem(error: PenstockError) -> dict[str, Any]:
    return {"error": to_document(error)}


if __name__ == "__main__":
    main()
