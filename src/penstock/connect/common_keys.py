"""The keys that every connector has, and those of all sources and of all sinks."""

from __future__ import annotations

from functools import partial

from penstock.connect.config_definition import (
    Definition,
    Key,
    Type,
    at_least,
    one_of,
    one_of_any_case,
    printable,
)

EXACTLY_ONCE_SUPPORT = "exactly.once.support"
VERSION = "4.3.1"
"""The release of Kafka Connect whose configurations and replies these are."""
NAME, CONNECTOR_CLASS, TASKS_MAX = "name", "connector.class", "tasks.max"
KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER = (
    "key.converter",
    "value.converter",
    "header.converter",
)
TRANSFORMS, PREDICATES = "transforms", "predicates"
TOPICS, TOPICS_REGEX = "topics", "topics.regex"
TOLERANCE = "errors.tolerance"
DEAD_LETTERS = "errors.deadletterqueue.topic.name"

_common = partial(Key, group="Common")
_errors = partial(Key, group="Error Handling")
_exactly_once = partial(Key, group="Exactly Once Support")


def _converter(name: str, order: int) -> tuple[Key, Key]:
    words = name.replace(".", " ").capitalize()
    return (
        _common(
            name,
            Type.CLASS,
            None,
            f"The {name.replace('.', ' ')} of this connector; default: that of the worker.",
            "LOW",
            order=order,
            width="SHORT",
            display_name=f"{words} class",
        ),
        _common(
            f"{name}.plugin.version",
            default=None,
            documentation="The version of that converter.",
            importance="LOW",
            order=order + 1,
            width="SHORT",
            display_name=f"{words} version",
        ),
    )


COMMON = Definition(
    (
        _common(
            NAME,
            documentation="The name of the connector; no other connector may have it.",
            importance="HIGH",
            order=1,
            width="MEDIUM",
            display_name="Connector name",
            check=printable,
        ),
        _common(
            CONNECTOR_CLASS,
            documentation="The class of the connector: its full name, the last part of that, or the last "
            "part without `Connector`.",
            importance="HIGH",
            order=2,
            width="LONG",
            display_name="Connector class",
        ),
        _common(
            "connector.plugin.version",
            default=VERSION,
            documentation="The version of the connector; there is one.",
            order=3,
            width="MEDIUM",
            display_name="Connector version",
            recommended=(VERSION,),
        ),
        _common(
            TASKS_MAX,
            Type.INT,
            "1",
            "How many tasks of a source run at a time, at most. A sink has a task for each partition of "
            "its topics, and as many run at a time as its worker has cores for.",
            "HIGH",
            order=4,
            width="SHORT",
            display_name="Tasks max",
            check=at_least(1),
        ),
        _common(
            "tasks.max.enforce",
            Type.BOOLEAN,
            "true",
            "Accepted, and without effect: never more tasks are shown than tasks.max.",
            "LOW",
            order=5,
            width="SHORT",
            display_name="Enforce tasks max",
        ),
        *_converter(KEY_CONVERTER, 6),
        *_converter(VALUE_CONVERTER, 8),
        *_converter(HEADER_CONVERTER, 10),
        Key(
            TRANSFORMS,
            Type.LIST,
            "",
            "The names of the transforms, in their order; each has keys `transforms.NAME.*`.",
            "LOW",
            "Transforms",
            12,
            "LONG",
            "Transforms",
        ),
        Key(
            PREDICATES,
            Type.LIST,
            "",
            "The names of the predicates that transforms may have; each has keys `predicates.NAME.*`.",
            "LOW",
            "Predicates",
            13,
            "LONG",
            "Predicates",
        ),
        _common(
            "config.action.reload",
            default="restart",
            documentation="Accepted: references to secrets are read when a connector starts.",
            importance="LOW",
            order=14,
            width="MEDIUM",
            display_name="Reload Action",
            check=one_of("none", "restart"),
        ),
        _errors(
            "errors.retry.timeout",
            Type.LONG,
            "0",
            "How long an operation that fails is tried again, in milliseconds; 0: never, -1: always. "
            "A system that is away is always waited for.",
            order=1,
            width="MEDIUM",
            display_name="Retry Timeout for Errors",
        ),
        _errors(
            "errors.retry.delay.max.ms",
            Type.LONG,
            "60000",
            "The longest wait between two tries, in milliseconds.",
            order=2,
            width="MEDIUM",
            display_name="Maximum Delay Between Retries for Errors",
        ),
        _errors(
            TOLERANCE,
            default="none",
            documentation="`none`: the first bad record ends the task; `all`: bad records are left out, "
            "and go to the dead letter queue where one is named.",
            order=3,
            width="SHORT",
            display_name="Error Tolerance",
            check=one_of("none", "all"),
        ),
        _errors(
            "errors.log.enable",
            Type.BOOLEAN,
            "false",
            "Whether each bad record is logged, with what was done with it.",
            order=4,
            width="SHORT",
            display_name="Log Errors",
        ),
        _errors(
            "errors.log.include.messages",
            Type.BOOLEAN,
            "false",
            "Whether the log names the place of the record as well: topic, partition, offset.",
            order=5,
            width="SHORT",
            display_name="Log Error Details",
        ),
    )
)

SOURCE = COMMON.plus(
    Key(
        "topic.creation.groups",
        Type.LIST,
        "",
        "Accepted: topics that do not exist are made with the broker's defaults.",
        "LOW",
        "Topic Creation",
        1,
        "LONG",
        "Topic Creation Groups",
    ),
    _exactly_once(
        EXACTLY_ONCE_SUPPORT,
        default="requested",
        documentation="Records and positions of a source are always in one transaction here; `required` "
        "refuses connectors that cannot go on exactly where they were.",
        order=2,
        width="SHORT",
        display_name="Exactly once support",
        check=one_of_any_case("REQUESTED", "REQUIRED"),
    ),
    _exactly_once(
        "transaction.boundary",
        default="poll",
        documentation="Accepted: a transaction ends with a round of reading.",
        order=3,
        width="SHORT",
        display_name="Transaction Boundary",
        check=one_of_any_case("INTERVAL", "POLL", "CONNECTOR"),
    ),
    _exactly_once(
        "transaction.boundary.interval.ms",
        Type.LONG,
        None,
        "Accepted: a transaction ends with a round of reading.",
        "LOW",
        order=4,
        width="SHORT",
        display_name="Transaction boundary interval",
    ),
    Key(
        "offsets.storage.topic",
        default=None,
        documentation="Accepted: positions are in the topic penstock-positions.",
        importance="LOW",
        group="offsets.topic",
        order=1,
        width="LONG",
        display_name="Offsets topic",
    ),
)

SINK = COMMON.plus(
    _common(
        TOPICS,
        Type.LIST,
        "",
        "The topics that are read, separated by commas.",
        "HIGH",
        order=4,
        width="LONG",
        display_name="Topics",
    ),
    _common(
        TOPICS_REGEX,
        default="",
        documentation="A regular expression of Java for the names of the topics that are read.",
        importance="HIGH",
        order=4,
        width="LONG",
        display_name="Topics regex",
    ),
    _errors(
        DEAD_LETTERS,
        default="",
        documentation="The topic for bad records; it needs errors.tolerance all.",
        order=6,
        width="MEDIUM",
        display_name="Dead Letter Queue Topic Name",
    ),
    _errors(
        "errors.deadletterqueue.topic.replication.factor",
        Type.SHORT,
        "3",
        "The copies of that topic, where it does not exist yet.",
        order=7,
        width="MEDIUM",
        display_name="Dead Letter Queue Topic Replication Factor",
    ),
    _errors(
        "errors.deadletterqueue.context.headers.enable",
        Type.BOOLEAN,
        "false",
        "Whether records of that topic have headers `__connect.errors.*` with the place and the error.",
        order=8,
        width="MEDIUM",
        display_name="Enable Error Context Headers",
    ),
)
