import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.errors import (
    AbortableError,
    BrokerUnavailableError,
    ConfigError,
    FencedError,
    OffsetOutOfRangeError,
    RecordError,
    SetupError,
    TerminalError,
    TransientError,
)
from penstock.kafka.error_table import GROUPS
from penstock.kafka.handle import Handle
from penstock.kafka.kafka_errors import (
    describe_event,
    refusal,
    topic_missing,
    translate,
)

BROKERS = "kafka-1:9092,kafka-2:9092"
CODES = {
    name: getattr(KafkaError, name)
    for name in dir(KafkaError)
    if name.isupper() and isinstance(getattr(KafkaError, name), int)
}


def translation(code: int, *, seen: tuple[KafkaError, ...] = ()) -> Exception:
    return translate(KafkaError(code, "the reason"), "listing topics", BROKERS, seen)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
    ],
)
def test_a_broker_that_does_not_answer_is_named_with_what_to_do(code: int) -> None:
    error = translation(code)
    assert type(error) is BrokerUnavailableError
    assert BROKERS in str(error)
    assert "listing topics" in str(error)
    assert "penstock broker start" in str(error)
    assert error.exit_code == 4


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError._AUTHENTICATION, "sasl.username"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "sasl.username"),
        (KafkaError._SSL, "ssl.ca.location"),
    ],
)
def test_a_time_out_after_a_refusal_is_reported_as_the_refusal(code: int, advice: str) -> None:
    error = translation(KafkaError._TIMED_OUT, seen=(KafkaError(code, "no entry"),))
    assert type(error) is ConfigError
    assert "no entry" in str(error)
    assert advice in str(error)


def test_the_connections_own_words_say_more_than_the_time_out() -> None:
    seen = (
        KafkaError(
            KafkaError._TRANSPORT,
            "kafka-1:9092/bootstrap: Connect failed: Connection refused (after 0ms in state X)",
        ),
        KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
    )
    message = str(translation(KafkaError._TIMED_OUT, seen=seen))
    assert f"at {BROKERS}: Connect failed: Connection refused; check" in message


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_ALREADY_EXISTS, ConfigError),
        (KafkaError.INVALID_REPLICATION_FACTOR, ConfigError),
        (KafkaError.INVALID_CONFIG, ConfigError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ConfigError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, TerminalError),
        (KafkaError.GROUP_ID_NOT_FOUND, ConfigError),
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordError),
        (KafkaError.INVALID_RECORD, RecordError),
        (KafkaError._BAD_COMPRESSION, RecordError),
        (KafkaError._QUEUE_FULL, TransientError),
        (KafkaError.NOT_LEADER_FOR_PARTITION, TransientError),
        (KafkaError.NOT_ENOUGH_REPLICAS, TransientError),
        (KafkaError.REBALANCE_IN_PROGRESS, TransientError),
        (KafkaError.UNKNOWN_MEMBER_ID, TransientError),
        (KafkaError.OFFSET_OUT_OF_RANGE, OffsetOutOfRangeError),
        (KafkaError._AUTO_OFFSET_RESET, OffsetOutOfRangeError),
        (KafkaError.PRODUCER_FENCED, FencedError),
        (KafkaError.FENCED_INSTANCE_ID, FencedError),
        (KafkaError.TRANSACTION_ABORTABLE, AbortableError),
        (KafkaError._FS, SetupError),
        (KafkaError._STATE, TerminalError),
        (KafkaError.UNSUPPORTED_VERSION, TerminalError),
    ],
)
def test_each_kind_of_error_has_its_place_in_the_tree(code: int, kind: type) -> None:
    error = translation(code)
    assert type(error) is kind
    assert "the reason" in str(error)


def test_an_error_that_librdkafka_calls_retriable_is_transient() -> None:
    error = translate(KafkaError(KafkaError.UNKNOWN, "busy", retriable=True), "writing", BROKERS)
    assert type(error) is TransientError


@pytest.mark.parametrize("name", CODES)
def test_every_code_stands_in_exactly_one_group(name: str) -> None:
    listed = [each for group in GROUPS for each in group.names.split()]
    assert listed.count(name) == 1


@pytest.mark.parametrize("code", CODES.values())
def test_every_code_says_what_was_done_why_it_failed_and_what_to_do(code: int) -> None:
    message = str(translation(code))
    assert message.startswith("listing topics: ")
    assert "the reason" in message
    assert message.rpartition("; ")[2]


def test_a_code_that_the_table_does_not_know_is_terminal_with_its_text() -> None:
    error = translation(31999)
    assert type(error) is TerminalError
    assert "the reason" in str(error)


def test_a_transaction_that_must_be_aborted_says_so_whatever_its_code() -> None:
    reported = KafkaError(KafkaError._TIMED_OUT, "the reason", txn_requires_abort=True)
    error = translate(reported, "committing", BROKERS)
    assert type(error) is AbortableError
    assert "abort the transaction and begin it again" in str(error)


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (KafkaError._FENCED, FencedError, "a name of its own"),
        (KafkaError.PRODUCER_FENCED, FencedError, "a name of its own"),
        (KafkaError._TIMED_OUT, TerminalError, "make a new one"),
    ],
)
def test_a_fatal_error_is_never_transient(code: int, kind: type, advice: str) -> None:
    reported = KafkaError(code, "the reason", fatal=True, retriable=True)
    error = translate(reported, "committing", BROKERS)
    assert type(error) is kind
    assert advice in str(error)


def test_a_certificate_that_the_broker_does_not_take_is_a_refusal_and_no_outage() -> None:
    text = "ssl://b:1/bootstrap: Receive failed: ssl/tls alert certificate unknown: SSL alert 46"
    reported = KafkaError(KafkaError._TRANSPORT, text)
    error = translation(KafkaError._TIMED_OUT, seen=(reported,))
    assert type(error) is ConfigError
    assert "check ssl.certificate.location" in str(error)
    assert describe_event(reported)[0] == "ERROR"


def test_a_refusal_is_found_among_what_a_connection_reported() -> None:
    lost = KafkaError(KafkaError._TRANSPORT, "Connection refused")
    assert refusal("writing", BROKERS, [lost]) is None
    reported = KafkaError(KafkaError._AUTHENTICATION, "no such user")
    assert "no such user" in str(refusal("writing", BROKERS, [lost, reported, lost]))


def test_without_kerberos_the_error_says_how_to_get_it_and_that_pipelines_have_it() -> None:
    handle = Handle({"bootstrap.servers": BROKERS}, "producer")
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "GSSAPI"}
    with pytest.raises(SetupError) as caught, handle.translated("making a producer"):
        Producer({"bootstrap.servers": BROKERS, **settings})
    assert "--no-binary confluent-kafka" in str(caught.value)
    assert "Pipelines need none of this" in str(caught.value)


def test_a_refused_token_points_at_the_oauth_settings() -> None:
    reported = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token")
    assert "sasl.oauthbearer.token.endpoint.url" in str(translate(reported, "writing", BROKERS))


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 down"), "ERROR"),
        (KafkaError(KafkaError._AUTHENTICATION, "no entry"), "ERROR"),
        (KafkaError(KafkaError._SSL, "no entry"), "ERROR"),
        (KafkaError(KafkaError._TRANSPORT, "broken", fatal=True), "ERROR"),
        (KafkaError(KafkaError._TRANSPORT, "broken"), "WARNING"),
        (KafkaError(KafkaError._MAX_POLL_EXCEEDED, "slow"), "WARNING"),
    ],
)
def test_an_event_has_a_level_a_name_and_a_message(error: KafkaError, level: str) -> None:
    assert describe_event(error) == (level, error.name(), error.str())


def test_neither_events_nor_errors_show_a_secret() -> None:
    reported = KafkaError(KafkaError._AUTHENTICATION, "bad sasl.password=hunter2 given")
    assert "hunter2" not in str(translate(reported, "writing", BROKERS))
    assert "hunter2" not in describe_event(reported)[2]


def test_a_block_turns_librdkafkas_exception_into_ours_and_keeps_the_cause() -> None:
    handle = Handle({"bootstrap.servers": BROKERS}, "admin")
    problem = KafkaException(KafkaError(KafkaError._TRANSPORT, "gone"))
    with pytest.raises(BrokerUnavailableError) as caught, handle.translated("reading"):
        raise problem
    assert caught.value.__cause__ is problem


@pytest.mark.parametrize(
    ("existing", "hint"),
    [
        (["trades", "orders", "tradesmen"], "the nearest: trades"),
        (["zz"], "the cluster has: zz"),
        ([], "the cluster has none yet"),
    ],
)
def test_a_missing_topic_is_named_with_what_was_probably_meant(
    existing: list[str], hint: str
) -> None:
    message = str(topic_missing("tradez", existing))
    assert "'tradez'" in message
    assert hint in message
    assert "penstock topics create tradez" in message


def test_a_long_list_of_topics_is_cut() -> None:
    message = str(topic_missing("x", [f"topic-{n:03}" for n in range(50)]))
    assert "topic-009 and 40 more" in message
