"""Every error code of librdkafka and of Kafka, in exactly one group: what it is, and what to do about it.

It is data: `penstock.kafka.kafka_errors` reads it, and a test walks over all codes that exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

from penstock.errors import (
    AbortableError,
    BrokerUnavailableError,
    ConfigError,
    FencedError,
    OffsetOutOfRangeError,
    PenstockError,
    RecordError,
    SetupError,
    TerminalError,
    TransientError,
)


@dataclass(frozen=True)
class Group:
    """Codes that a caller treats alike: the error they become, and the advice that goes with it."""

    name: str
    kind: type[PenstockError]
    hint: str
    names: str

    @property
    def codes(self) -> frozenset[int]:
        """Return the codes of the names.

        >>> group("queue full").codes == {KafkaError._QUEUE_FULL}
        True
        """
        return frozenset(getattr(KafkaError, name) for name in self.names.split())


def group(name: str) -> Group:
    """Give the group of this name."""
    return next(each for each in GROUPS if each.name == name)


GROUPS = (
    Group(
        "away",
        BrokerUnavailableError,
        "check the address, security.protocol and that the broker runs "
        "('penstock broker start' gives a local one)",
        """
        _TRANSPORT _ALL_BROKERS_DOWN _TIMED_OUT _TIMED_OUT_QUEUE _MSG_TIMED_OUT _RESOLVE _WAIT_COORD
        _DESTROY _DESTROY_BROKER _FAIL _UNKNOWN_BROKER NETWORK_EXCEPTION REQUEST_TIMED_OUT
        BROKER_NOT_AVAILABLE REBOOTSTRAP_REQUIRED
        """,
    ),
    Group(
        "refused",
        ConfigError,
        "check security.protocol and the user of the connection",
        """
        _SSL _AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE
        DELEGATION_TOKEN_EXPIRED
        """,
    ),
    Group(
        "forbidden",
        TerminalError,
        "ask for an ACL, or use a connection with another user",
        """
        TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED DELEGATION_TOKEN_AUTHORIZATION_FAILED
        DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        """,
    ),
    Group(
        "wrong request",
        ConfigError,
        "correct what was asked for, or the setting that the message names",
        """
        _INVALID_ARG TOPIC_EXCEPTION TOPIC_ALREADY_EXISTS INVALID_PARTITIONS INVALID_REPLICATION_FACTOR
        INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG INVALID_REQUEST INVALID_GROUP_ID POLICY_VIOLATION
        INVALID_REQUIRED_ACKS INVALID_SESSION_TIMEOUT INVALID_TRANSACTION_TIMEOUT
        INVALID_COMMIT_OFFSET_SIZE OFFSET_METADATA_TOO_LARGE INCONSISTENT_GROUP_PROTOCOL
        UNSUPPORTED_ASSIGNOR INVALID_REGULAR_EXPRESSION UNSUPPORTED_COMPRESSION_TYPE
        INVALID_PRINCIPAL_TYPE UNACCEPTABLE_CREDENTIAL DUPLICATE_RESOURCE NON_EMPTY_GROUP
        GROUP_SUBSCRIBED_TO_TOPIC GROUP_MAX_SIZE_REACHED TOPIC_DELETION_DISABLED SECURITY_DISABLED
        DELEGATION_TOKEN_AUTH_DISABLED INVALID_UPDATE_VERSION STREAMS_INVALID_TOPOLOGY
        STREAMS_INVALID_TOPOLOGY_EPOCH
        """,
    ),
    Group(
        "missing topic",
        ConfigError,
        "check the topic's name and the partition's number (penstock topics describe TOPIC); "
        "a topic is made with: penstock topics create TOPIC",
        "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION UNKNOWN_TOPIC_ID",
    ),
    Group(
        "missing",
        ConfigError,
        "check the name of what was asked for",
        """
        _UNKNOWN_GROUP GROUP_ID_NOT_FOUND _NOENT RESOURCE_NOT_FOUND DELEGATION_TOKEN_NOT_FOUND
        LOG_DIR_NOT_FOUND LISTENER_NOT_FOUND NO_REASSIGNMENT_IN_PROGRESS
        """,
    ),
    Group(
        # Leaders and coordinators move, and a new topic's leader needs a moment to know that it is one.
        "moving",
        TransientError,
        "the same call may work in a moment",
        """
        NOT_LEADER_FOR_PARTITION LEADER_NOT_AVAILABLE NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE
        COORDINATOR_LOAD_IN_PROGRESS NOT_CONTROLLER FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH
        REPLICA_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE
        TRANSACTION_COORDINATOR_FENCED INCONSISTENT_TOPIC_ID STALE_CTRL_EPOCH STALE_BROKER_EPOCH
        """,
    ),
    Group(
        "busy",
        TransientError,
        "the same call may work in a moment",
        """
        _IN_PROGRESS _PREV_IN_PROGRESS _WAIT_CACHE _RETRY _INTR _NODE_UPDATE _OUTDATED _PARTIAL
        CONCURRENT_TRANSACTIONS REASSIGNMENT_IN_PROGRESS UNSTABLE_OFFSET_COMMIT OFFSET_NOT_AVAILABLE
        THROTTLING_QUOTA_EXCEEDED OPERATION_NOT_ATTEMPTED FETCH_SESSION_ID_NOT_FOUND
        INVALID_FETCH_SESSION_EPOCH SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
        SHARE_SESSION_LIMIT_REACHED UNKNOWN_SUBSCRIPTION_ID
        """,
    ),
    Group(
        "too few copies",
        TransientError,
        "it works again when enough brokers (min.insync.replicas of the topic) are up and well",
        "NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND _ISR_INSUFF KAFKA_STORAGE_ERROR",
    ),
    Group(
        "queue full",
        TransientError,
        "wait until some are delivered, or raise queue.buffering.max.messages or .max.kbytes",
        "_QUEUE_FULL",
    ),
    Group(
        "rebalance",
        TransientError,
        "the partitions go to other members of the group: poll on, and commit only what is assigned now "
        "(a loop that polls too seldom needs a higher max.poll.interval.ms)",
        """
        REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID ILLEGAL_GENERATION MEMBER_ID_REQUIRED STALE_MEMBER_EPOCH
        FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID _ASSIGNMENT_LOST _MAX_POLL_EXCEEDED
        """,
    ),
    Group(
        "fenced",
        FencedError,
        "another one with the same transactional.id or group.instance.id took over: end this one, and "
        "give each running instance a name of its own",
        """
        _FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH FENCED_INSTANCE_ID FENCED_STATE_EPOCH
        STREAMS_TOPOLOGY_FENCED
        """,
    ),
    Group(
        "abort",
        AbortableError,
        "abort the transaction and begin it again",
        "TRANSACTION_ABORTABLE INVALID_PRODUCER_ID_MAPPING",
    ),
    Group(
        "broken order",
        TerminalError,
        "the order of the records can no longer be promised: make a new producer, and write again what "
        "was not confirmed",
        """
        OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID _GAPLESS_GUARANTEE
        _INCONSISTENT _FATAL
        """,
    ),
    Group(
        "record too large",
        RecordError,
        "make the record smaller, or raise message.max.bytes here and max.message.bytes of the topic",
        "MSG_SIZE_TOO_LARGE INVALID_MSG_SIZE RECORD_LIST_TOO_LARGE TELEMETRY_TOO_LARGE",
    ),
    Group(
        "bad record",
        RecordError,
        "look at the record: its bytes, its timestamp, and whether a compacted topic gets a key",
        """
        INVALID_MSG INVALID_RECORD INVALID_TIMESTAMP _BAD_MSG _BAD_COMPRESSION _UNDERFLOW
        _INVALID_DIFFERENT_RECORD INVALID_RECORD_STATE _KEY_SERIALIZATION _VALUE_SERIALIZATION
        _KEY_DESERIALIZATION _VALUE_DESERIALIZATION
        """,
    ),
    Group(
        "offset out of range",
        OffsetOutOfRangeError,
        "the records there are gone or not yet written: seek to an offset that exists, or set "
        "auto.offset.reset to earliest or latest",
        "OFFSET_OUT_OF_RANGE _AUTO_OFFSET_RESET _LOG_TRUNCATION",
    ),
    Group(
        "no offset",
        TerminalError,
        "nothing was read, so there is no offset to commit: poll first, or give the offsets",
        "_NO_OFFSET",
    ),
    Group(
        "machine",
        SetupError,
        "check this machine's memory, disk and limit of open files (ulimit -n)",
        "_CRIT_SYS_RESOURCE _FS",
    ),
    Group(
        "taken back",
        TerminalError,
        "the record was taken back before it was delivered (a purge, or an aborted transaction)",
        "_PURGE_QUEUE _PURGE_INFLIGHT",
    ),
    Group(
        "not supported",
        TerminalError,
        "the broker or this client is too old for it: update the older one",
        """
        UNSUPPORTED_VERSION UNSUPPORTED_FOR_MESSAGE_FORMAT _UNSUPPORTED_FEATURE _UNKNOWN_PROTOCOL
        _NOT_IMPLEMENTED MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE
        """,
    ),
    Group(
        "wrong state",
        TerminalError,
        "the client is not in a state for this call: begin_transaction comes before produce, once for "
        "each commit or abort; assign or subscribe come before seek, pause and stored offsets",
        """
        _STATE _CONFLICT _EXISTING_SUBSCRIPTION _READ_ONLY _INVALID_TYPE _NOT_CONFIGURED _NOOP
        _APPLICATION INVALID_TXN_STATE
        """,
    ),
    Group(
        "cluster",
        TerminalError,
        "something is wrong inside the cluster: look in the brokers' logs",
        """
        UNKNOWN INCONSISTENT_VOTER_SET INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND
        INVALID_REGISTRATION UNKNOWN_CONTROLLER_ID FEATURE_UPDATE_FAILED
        PRINCIPAL_DESERIALIZATION_FAILURE
        """,
    ),
    Group(
        "no failure",
        TerminalError,
        "this is news rather than a failure; please report how it came up as an error",
        "NO_ERROR _PARTITION_EOF _ASSIGN_PARTITIONS _REVOKE_PARTITIONS ELECTION_NOT_NEEDED",
    ),
)
