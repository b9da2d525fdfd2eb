"""The child of `coordinator`: a line with a question comes in, a line with the answer goes out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson
from confluent_kafka import KafkaError

from penstock.config import Connection
from penstock.errors import PenstockError
from penstock.kafka.admin import describe
from penstock.kafka.admin.asking import Asker, code_of

_MISSING = KafkaError.GROUP_ID_NOT_FOUND


def main() -> None:
    """Answer until nobody asks any more."""
    config, timeout = orjson.loads(sys.stdin.buffer.readline())
    ask = Asker(Connection.from_config(config), timeout)
    for line in sys.stdin.buffer:
        deed, names = orjson.loads(line)
        sys.stdout.buffer.write(orjson.dumps(_answers(ask, deed, names)) + b"\n")
        sys.stdout.buffer.flush()


def _answers(ask: Asker, deed: str, names: Sequence[str]) -> dict[str, Any]:
    doing = f"{'deleting' if deed == 'delete' else 'describing'} group {', '.join(names)}"
    calls = {
        "describe": ask.client.describe_consumer_groups,
        "delete": ask.client.delete_consumer_groups,
    }
    try:
        told = ask.outcomes(doing, calls[deed], list(names))
    except PenstockError as error:
        return dict.fromkeys(names, _problem(error))
    return {name: _document(outcome) for name, outcome in told.items()}


def _document(outcome: Any) -> Any:
    if isinstance(outcome, PenstockError):
        return None if code_of(outcome) == _MISSING else _problem(outcome)
    # A deleted group tells nothing, and a broker before Kafka 4 calls a missing one dead.
    return None if outcome is None or describe.is_dead(outcome) else describe.group_told(outcome)


def _problem(error: PenstockError) -> dict[str, str]:
    return {"error": type(error).__name__, "message": str(error)}


if __name__ == "__main__":
    main()
