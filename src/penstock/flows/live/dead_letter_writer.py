"""Writes the dead letters of flows: whole, or as Kafka takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.config import Connection
from penstock.engine.dead_letters.letter import DeadLetter, as_headers
from penstock.errors import TransientError
from penstock.flows.dead_letters import Forms
from penstock.flows.definition.kafka_options import ProducerAdvanced
from penstock.flows.error_codes import Fault
from penstock.flows.expressions import Template
from penstock.flows.live.kafka_publisher import KafkaPublisher
from penstock.flows.publish.operations import KafkaPublish
from penstock.flows.running.systems import PublishRequest

_REFUSED = "KAFKA:REFUSED"
# The topic has a limit, which is that of the records of the source with space for the headers.
_LARGEST = 1_000_000_000


class DeadLetterWriter:
    """One producer for the topic of the dead letters."""

    def __init__(self, connection: Connection, topic: str) -> None:
        producer = ProducerAdvanced(acks="all", max_message_bytes=_LARGEST)
        self._operation = KafkaPublish(topic=Template(topic), producer=producer)
        self._topic = topic
        self._kafka = KafkaPublisher(connection)

    def write(self, letters: Sequence[Forms]) -> None:
        """Return when Kafka has all of them; raise where it does not take one in any form."""
        whole = [(letter.whole, letter) for letter in letters if letter.whole is not None]
        refused = self._refused_alone([each for each, _ in whole])
        in_parts = [letter for letter in letters if letter.whole is None]
        in_parts += [whole[number][1] for number in refused]
        if why := self._refused_alone([each for letter in in_parts for each in letter.short]):
            raise self._failure(next(iter(why.values())))

    def close(self) -> None:
        """Close the producer."""
        self._kafka.close()

    def _refused_alone(self, letters: Sequence[DeadLetter]) -> dict[int, Fault]:
        """Write letters; return which of them Kafka refuses also without the others of their batch."""
        alone: dict[int, Fault] = {}
        for number in self._refused(letters):
            if why := self._refused([letters[number]]):
                alone[number] = why[0]
        return alone

    def _refused(self, letters: Sequence[DeadLetter]) -> dict[int, Fault]:
        """Write letters; return which of them Kafka refused, by number."""
        if not letters:
            return {}
        requests = [PublishRequest(self._record(letter)) for letter in letters]
        receipts = enumerate(self._kafka.publish(self._operation, requests))
        faults = {number: each for number, each in receipts if isinstance(each, Fault)}
        if away := [fault for fault in faults.values() if fault.code != _REFUSED]:
            raise self._failure(away[0])
        return faults

    def _record(self, letter: DeadLetter) -> dict[str, Any]:
        headers = as_headers(letter)
        record = {"key": letter.key, "value": letter.value, "headers": headers}
        return {"topic": self._topic, "partition": None, **record}

    def _failure(self, fault: Fault) -> TransientError:
        return TransientError(f"dead letters cannot be written to {self._topic!r}: {fault}")
