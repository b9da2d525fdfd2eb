"""What the import `jms` receives from a real Apache Artemis, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from proton import Message
from tests.services.artemis import PASSWORD, USER, Artemis
from tests.services.jms_client import jms_message, receive, send, texts

from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.imports.jms.jms_import import JmsImport, JmsPart
from penstock.pipeline.importing import Portion


def source(artemis: Artemis, **options: Any) -> JmsImport:
    return JmsImport(**{**artemis.options, "timeout": 20, **options})


def taken(part: JmsPart, most: int = 100_000, *, settle: bool = True) -> list[Portion]:
    with part.open(None) as reader:
        portions = [*reader.take(most)]
        if settle:
            reader.settle()
    return portions


def values(portions: list[Portion]) -> list[bytes | None]:
    return [value for each in portions for value in each.records["value"].to_pylist()]


def numbers(portions: list[Portion]) -> list[int]:
    return [int(value or -1) for value in values(portions)]


def pending(options: JmsImport) -> list[dict[str, Any]]:
    with options.system() as system:
        return [part.place for part in system.pending({})]


def test_messages_come_once_and_in_order_and_are_gone_when_they_are_settled(
    artemis: Artemis, unique: str
) -> None:
    options = source(artemis, queues=unique, prefetch=100)
    assert pending(options) == []
    send(artemis, unique, texts(2500))
    assert pending(options) == [{"queue": unique}]
    (part,) = options.parts()
    first = taken(part, 1000)
    assert numbers(first) == [*range(1000)]
    assert first[-1].position == {"messages": 1000}
    assert numbers(taken(part)) == [*range(1000, 2500)]
    assert pending(options) == []
    assert taken(part) == []


def test_what_is_not_settled_goes_back_in_its_order_and_is_no_attempt(
    artemis: Artemis, unique: str
) -> None:
    (part,) = source(artemis, queues=unique, prefetch=50).parts()
    send(artemis, unique, texts(300))
    for _ in range(3):
        assert numbers(taken(part, 120, settle=False)) == [*range(120)]
    with part.open(None) as reader:  # in the middle of receiving
        assert next(iter(reader.take(200))).records.num_rows == 50
    portions = taken(part)
    assert numbers(portions) == [*range(300)]
    headers = dict(map(tuple, map(dict.values, portions[0].records["headers"][0].as_py())))
    assert headers["jms.redelivered"] == b"false"


def test_a_message_that_is_held_by_another_reader_is_not_pending(
    artemis: Artemis, unique: str
) -> None:
    options = source(artemis, queues=unique)
    (part,) = options.parts()
    send(artemis, unique, texts(3))
    with part.open(None) as reader:
        assert len(values([*reader.take(10)])) == 3
        assert pending(options) == []
    assert pending(options) == [{"queue": unique}]


def test_kinds_of_messages(artemis: Artemis, unique: str) -> None:
    messages = [
        jms_message("text", "grün", properties={"a": 1}),
        jms_message("bytes", b"\x00\xff"),
        jms_message("map", {"n": 1, "raw": b"\x00"}),
        jms_message("stream", [1, "x"]),
        jms_message("message", None),
        jms_message("object", b"\xac\xed\x00\x05", content_type="application/x-java-serialized-object"),
        Message(body=5),
    ]  # fmt: skip
    send(artemis, unique, messages)
    (part,) = source(artemis, queues=unique).parts()
    portions = taken(part)
    assert values(portions) == [
        "grün".encode(), b"\x00\xff", b'{"n":1,"raw":"AA=="}', b'[1,"x"]', None, b"5",
    ]  # fmt: skip
    (bad,) = portions[0].bad
    assert "never deserialized" in bad.error
    assert receive(artemis, unique) == []


def test_huge_messages_and_too_large_ones(artemis: Artemis, unique: str) -> None:
    sizes = [1, 300_000, 12_000_000, 25_000_000, 2]
    send(artemis, unique, [jms_message("bytes", bytes([n]) * size) for n, size in enumerate(sizes)])
    (part,) = source(artemis, queues=unique, max_bytes=20_000_000).parts()
    portions = taken(part)
    assert [len(value or b"") for value in values(portions)] == [1, 300_000, 12_000_000, 2]
    assert values(portions)[2] == b"\x02" * 12_000_000
    (bad,) = (each for portion in portions for each in portion.bad)
    assert (bad.value, bad.error_type) == (None, "TooLargeError")
    assert "at most 20000000 are allowed; raise max_bytes" in bad.error


def test_a_selector_chooses(artemis: Artemis, unique: str) -> None:
    regions = ["EU", "US", "EU", "APAC"]
    send(artemis, unique, [jms_message("text", r, properties={"region": r}) for r in regions])
    options = source(artemis, queues=unique, selector="region = 'EU'")
    (part,) = options.parts()
    assert values(taken(part)) == [b"EU", b"EU"]
    assert pending(options) == []
    assert pending(source(artemis, queues=unique)) == [{"queue": unique}]


@pytest.fixture(params=["own", "shared", "global"])
def subscription(request: Any, artemis: Artemis, unique: str) -> Iterator[JmsImport]:
    own = {} if request.param == "global" else {"client_id": f"{unique}-client"}
    yield source(
        artemis,
        topics={f"{unique}.prices": f"{unique}-sub"},
        shared=request.param != "own",
        **own,
    )


def test_a_durable_subscription_gets_what_is_sent_while_no_one_reads(
    artemis: Artemis, unique: str, subscription: JmsImport
) -> None:
    (part,) = subscription.parts()
    assert pending(subscription) == [part.place]
    send(artemis, f"{unique}.prices", texts(5), "topic")
    assert taken(part) == []  # the subscription exists from here on
    send(artemis, f"{unique}.prices", texts(1500), "topic")
    assert numbers(taken(part, 700)) == [*range(700)]
    assert numbers(taken(part, settle=False)) == [*range(700, 1500)]
    assert numbers(taken(part)) == [*range(700, 1500)]
    assert taken(part) == []


def test_two_readers_of_one_subscription_are_not_possible(artemis: Artemis, unique: str) -> None:
    (part,) = source(artemis, topics={unique: "s"}, client_id=unique).parts()
    with part.open(None), pytest.raises(PenstockError) as caught, part.open(None):
        pass
    assert isinstance(caught.value, TransientError), caught.value


WRONG: list[tuple[dict[str, Any], type[PenstockError], str]] = [
    ({"password": "wrong-password"}, ConfigError, "refused to authenticate the user 'penstock'"),
    ({"queues": "forbidden.x"}, ConfigError, "amqp:unauthorized-access"),
    ({"queues": "strict.x"}, ConfigError, "amqp:not-found"),
    ({"selector": "a ="}, ConfigError, "amqp:invalid-field"),
    ({"url": "amqp://127.0.0.1:9"}, TransientError, "no connection to amqp://127.0.0.1:9"),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG)
def test_what_the_broker_refuses(
    artemis: Artemis, options: dict[str, Any], kind: type[PenstockError], message: str
) -> None:
    given = source(artemis, **{"queues": "q", **options})
    for attempt in (lambda: pending(given), lambda: taken(given.parts()[0])):
        with pytest.raises(kind) as caught:
            attempt()
        assert message in str(caught.value)
        assert "wrong-password" not in str(caught.value)


def test_tls_and_certificates(artemis: Artemis, unique: str) -> None:
    send(artemis, unique, texts(3))
    ca = str(artemis.authority.ca)
    own = artemis.authority.client(USER)
    over_tls = {"url": artemis.tls_url, "queues": unique, "ca": ca, "timeout": 20}
    passwords = {"username": USER, "password": PASSWORD}
    assert numbers(taken(JmsImport(**over_tls, **passwords).parts()[0], settle=False)) == [0, 1, 2]
    mutual = JmsImport(
        url=artemis.mutual_url, queues=unique, ca=ca,
        certificate=str(own.certificate), certificate_key=str(own.key),
    )  # fmt: skip
    assert numbers(taken(mutual.parts()[0])) == [0, 1, 2]
    for wrong, message in [
        ({"ca": None}, "CERTIFICATE_VERIFY_FAILED"),
        ({"url": artemis.mutual_url}, "TLS with"),
        ({"ca": "/nowhere.pem"}, "the files for TLS cannot be used (/nowhere.pem)"),
    ]:
        with pytest.raises(ConfigError) as caught:
            taken(JmsImport(**{**over_tls, **passwords, **wrong}).parts()[0])
        assert message in str(caught.value)


def test_a_broker_that_hangs_is_not_waited_for_longer_than_allowed(unique: str) -> None:
    with Artemis() as own:
        send(own, unique, texts(3))
        options = source(own, queues=unique, timeout=1)
        with options.system() as system:
            assert len(system.pending({})) == 1
            own.suspend()
            with pytest.raises(TransientError, match="did not reply within 1 s"):
                system.pending({})
            own.resume()
            assert len(system.pending({})) == 1
            own.kill()
            with pytest.raises(TransientError):
                system.pending({})
            own.start()
            assert len(system.pending({})) == 1
        assert numbers(taken(options.parts()[0])) == [0, 1, 2]
