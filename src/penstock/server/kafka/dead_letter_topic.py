"""The dead letters of a deployment, where they are in a topic: read and dropped without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.config import Connection, find_connection, resolve_references
from penstock.config.references import has_reference
from penstock.config.trust import LOADS_CODE, SENDS_FILES, WRITES_FILES
from penstock.control.roles import Access, Role
from penstock.control.store.control_store import ControlStore
from penstock.control.store.rows import Kind
from penstock.engine.dead_letters.letter import DeadLetter, as_headers, from_record
from penstock.engine.dead_letters.letter_log import LetterLog
from penstock.errors import ConfigError
from penstock.flows.definition.kafka_options import KafkaConnection
from penstock.flows.live.kafka_publisher import connection_of
from penstock.kafka.topic_records import TopicRecords
from penstock.pipeline.derived_names import dead_letters_of
from penstock.server.deployment_access import find_for
from penstock.server.kafka.kafka_names import checked_topic
from penstock.server.problems import RefusedRequestError

_MOST = 200_000
# Keys with which a client would run code in the server, or use its files, for whoever deploys.
_OF_WORKERS = LOADS_CODE | SENDS_FILES | WRITES_FILES
_SECONDS = 30.0


@dataclass(frozen=True)
class Deployed:
    """What the routes of dead letters need of a deployment: its definition, with secrets."""

    name: str
    definition: Mapping[str, Any] = field(repr=False)
    is_flow: bool = False


FindDeployed = Callable[[Access, str, Role], Deployed]
"""Finds a deployment by its name, for a caller who has a role for it."""


def deployed_in(store: ControlStore) -> FindDeployed:
    """Return what finds deployments in the store; those that the caller may not see do not exist."""

    def find(access: Access, name: str, role: Role) -> Deployed:
        row = find_for(store, access, name, role)
        opened = store.secrets.opened(name, row.spec)
        data = opened if isinstance(opened, Mapping) else {}
        definition = data.get("definition") if row.kind is Kind.JOB else data
        if not isinstance(definition, Mapping):
            raise ConfigError(f"deployment {name!r} is not a pipeline: it has no dead letters")
        return Deployed(name, definition, row.kind is Kind.FLOW)

    return find


class DeadLetterTopic(LetterLog):
    """The letters of a topic. Keys, values and headers are left out but for letters of one id."""

    def __init__(self, connection: Connection, topic: str, whole: str | None = None) -> None:
        super().__init__()
        self._topic = topic
        self._records = TopicRecords(connection, topic)
        self._whole = whole

    def _load(self) -> Iterator[DeadLetter]:
        deadline = time.monotonic() + _SECONDS
        for count, (record, is_settled) in enumerate(self._records.read()):
            if count >= _MOST or time.monotonic() > deadline:
                raise RefusedRequestError(
                    501,
                    f"topic {self._topic!r} has too many dead letters to be read by the server; use "
                    "'penstock deadletters list FILE', and drop or replay some of them",
                )
            letter = from_record(record)
            if letter and (is_settled or letter.is_note):
                yield letter if self._is_whole(letter) else _slim(letter)

    def _append(self, notes: Sequence[DeadLetter]) -> None:
        self._records.append((note.key, note.value, as_headers(note)) for note in notes)

    def _is_whole(self, letter: DeadLetter) -> bool:
        return self._whole is not None and self._whole in (letter.id, letter.full_id)


def letters_of(
    deployed: Deployed, find_default: Callable[[], Connection], whole: str | None = None
) -> DeadLetterTopic:
    """Return the dead letters of a deployment; refuse those that are in a table.

    Variables and files belong to the workers: a definition with references to them is refused, too.
    """
    topic, own = _target(deployed, _plain(deployed, deployed.definition.get("dead_letters")))
    checked_topic(topic)
    found = _connection(deployed, own) or _cluster_of(deployed) or find_default()
    return DeadLetterTopic(found, topic, whole)


def _cluster_of(deployed: Deployed) -> Connection | None:
    """Return the cluster that a definition names: a flow's own, or that of its trigger."""
    given = deployed.definition.get("connection")
    if not deployed.is_flow:
        return _connection(deployed, given)
    trigger = deployed.definition.get("trigger")
    kafka = trigger.get("kafka") if isinstance(trigger, Mapping) else None
    of_trigger = kafka.get("connection") if isinstance(kafka, Mapping) else None
    plain = _plain(deployed, given or of_trigger)
    if isinstance(plain, Mapping):
        plain = KafkaConnection.model_validate(dict(plain))
    return connection_of(plain)


def _connection(deployed: Deployed, given: Any) -> Connection | None:
    plain = _plain(deployed, given)
    if isinstance(plain, Mapping):
        # Not by `find_connection`: it would resolve what an escaped reference has become.
        return _harmless(deployed, Connection.from_config(plain))
    return None if plain is None else find_connection(plain)


def _harmless(deployed: Deployed, connection: Connection) -> Connection:
    if refused := sorted(_OF_WORKERS.intersection(connection.to_config())):
        raise RefusedRequestError(
            501,
            f"the definition of {deployed.name!r} gives its cluster {refused[0]}, which runs code or "
            "uses files of the server: run 'penstock deadletters' where its workers are, or name a "
            "connection of the server's penstock.yaml in the definition",
        )
    return connection


def _plain(deployed: Deployed, given: Any) -> Any:
    """Return a part of a definition without its escapes; refuse one that has references."""
    if has_reference(given):
        raise RefusedRequestError(
            501,
            f"the definition of {deployed.name!r} says by references (${{env:NAME}}, ${{file:PATH}}) "
            "where its dead letters are, and their values are known to the workers only: run "
            "'penstock deadletters' where those are set, or name a connection of the server's "
            "penstock.yaml in the definition",
        )
    return resolve_references(given)


def _target(deployed: Deployed, given: Any) -> tuple[str, Any]:
    """Return the topic, and the connection of its own where it has one."""
    if given is None:
        return dead_letters_of(str(deployed.definition.get("name", deployed.name))), None
    if isinstance(given, str):
        return given, None
    options = given.get("kafka") if isinstance(given, Mapping) and len(given) == 1 else None
    if isinstance(options, str):
        return options, None
    if isinstance(options, Mapping) and isinstance(options.get("topic"), str):
        return options["topic"], options.get("connection")
    if not isinstance(given, Mapping) or len(given) != 1 or "kafka" in given:
        raise ConfigError(
            f"the definition of {deployed.name!r} is not valid: 'dead_letters' is the name of a topic, "
            "or a sink with its options"
        )
    sink = next(iter(given))
    raise RefusedRequestError(
        501,
        f"the dead letters of {deployed.name!r} go to the sink {sink!r}, which only Spark reads, and "
        "this server has none: run 'penstock deadletters list FILE' with its definition",
    )


def _slim(letter: DeadLetter) -> DeadLetter:
    return msgspec.structs.replace(letter, key=None, value=None, headers=[])
