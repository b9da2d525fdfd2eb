import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import BrokerUnavailableError, ConfigError, TerminalError, TransientError
from penstock.kafka.errors import topic_missing, translate, translated

BROKERS = "kafka-1:9092,kafka-2:9092"


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
def test_a_time_out_after_a_refusal_is_told_as_the_refusal(code: int, advice: str) -> None:
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
        (KafkaError.MSG_SIZE_TOO_LARGE, TerminalError),
    ],
)
def test_each_kind_of_error_has_its_place_in_the_tree(code: int, kind: type) -> None:
    error = translation(code)
    assert type(error) is kind
    assert "the reason" in str(error)


def test_an_error_that_librdkafka_calls_retriable_is_transient() -> None:
    error = translate(KafkaError(KafkaError.UNKNOWN, "busy", retriable=True), "writing", BROKERS)
    assert type(error) is TransientError


def test_a_block_turns_librdkafkas_exception_into_ours_and_keeps_the_cause() -> None:
    problem = KafkaException(KafkaError(KafkaError._TRANSPORT, "gone"))
    with pytest.raises(BrokerUnavailableError) as caught, translated("reading", BROKERS):
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
