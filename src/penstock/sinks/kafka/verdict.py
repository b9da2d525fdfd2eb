"""What a failed transaction means for the pipeline: try later, put a record aside, or give up."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import ConfigError, PenstockError, RefusedError, TransientError
from penstock.kafka.error_table import Group, group
from penstock.kafka.errors import reason

_OF_THE_RECORD = (group("record too large"), group("bad record"))
_NOT_BY_WAITING = tuple(
    map(group, ("refused", "forbidden", "wrong request", "missing topic", "not supported"))
)
# Where the row itself names its topic and partition, a wrong name is the row's own.
_OF_THE_ADDRESS = group("missing topic").codes | {
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._INVALID_ARG,
}


def verdict(error: PenstockError, *, addressed: bool) -> PenstockError:
    """Return the error that the engine is to see; `addressed`: rows name their own topic or partition.

    A transaction can be begun anew after nearly everything, so what is not known is worth another try.
    """
    cause = error.__cause__
    if not isinstance(cause, KafkaException):
        return error
    code, told = cause.args[0].code(), reason(cause.args[0])
    if found := _within(_OF_THE_RECORD, code):
        return RefusedError(f"Kafka refuses a record: {told}; {found.hint}")
    if addressed and code in _OF_THE_ADDRESS:
        return RefusedError(f"a row names a topic or partition that is not there: {told}")
    if found := _within(_NOT_BY_WAITING, code):
        return ConfigError(f"writing to Kafka: {told}; {found.hint}")
    if isinstance(error, TransientError):
        return error
    return TransientError(f"the transaction was given up and is tried again: {error}")


def _within(groups: tuple[Group, ...], code: int) -> Group | None:
    return next((each for each in groups if code in each.codes), None)
