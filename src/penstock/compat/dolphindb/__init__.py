"""The DolphinDB Kafka plugin's functions, for scripts that move to Python.

Names, order of arguments and results are the plugin's, of its current version and of 1.30; each is a thin
call into Penstock's own API. docs/dolphindb.md is the guide.

    from penstock.compat import dolphindb as kafka

    producer = kafka.producer({"metadata.broker.list": "localhost"})
    kafka.produce(producer, "test", "key", [1, 2, 3], "JSON")
"""

from __future__ import annotations

from penstock.errors import missing_extra

try:
    from penstock.compat.dolphindb.consuming import (
        assign,
        asyncCommit,
        asyncCommitTopic,
        commit,
        commitTopic,
        consumerPoll,
        consumerPollBatch,
        getConsumerTime,
        getMemId,
        pollByteStream,
        pollDict,
        setConsumerTime,
        subscribe,
        unassign,
        unsubscribe,
    )
    from penstock.compat.dolphindb.handles import consumer, producer
    from penstock.compat.dolphindb.jobs import (
        cancelSubJob,
        createSubJob,
        getJobStat,
        getSubJobConsumer,
    )
    from penstock.compat.dolphindb.json_text import parseJsonTable, toStdJson
    from penstock.compat.dolphindb.metadata import getMetadata
    from penstock.compat.dolphindb.offsets import (
        getAssignment,
        getOffset,
        getOffsetCommitted,
        getOffsetInfo,
        getOffsetPosition,
        storeConsumedOffset,
        storeOffset,
    )
    from penstock.compat.dolphindb.producing import (
        getProducerTime,
        produce,
        producerFlush,
        setProducerTime,
    )
    from penstock.compat.dolphindb.queues import (
        disforToQueue,
        eventBool,
        eventGetError,
        eventGetMessage,
        eventGetPart,
        eventGetParts,
        forToQueue,
        getConsumerQueue,
        getEventMessageCount,
        getEventName,
        getMainQueue,
        getPartitionQueue,
        getQueueTime,
        queueEvent,
        queueLength,
        queuePoll,
        queuePollBatch,
        setQueueTime,
    )
    from penstock.compat.dolphindb.settings import (
        getBufferSize,
        getMessageSize,
        setBufferSize,
        setMessageSize,
    )
    from penstock.compat.dolphindb.tables import keyedTable, streamTable, table
except ModuleNotFoundError as missing:
    raise missing_extra(missing, "penstock.compat.dolphindb", "spark") from missing

__all__ = [
    "assign",
    "asyncCommit",
    "asyncCommitTopic",
    "cancelSubJob",
    "commit",
    "commitTopic",
    "consumer",
    "consumerPoll",
    "consumerPollBatch",
    "createSubJob",
    "disforToQueue",
    "eventBool",
    "eventGetError",
    "eventGetMessage",
    "eventGetPart",
    "eventGetParts",
    "forToQueue",
    "getAssignment",
    "getBufferSize",
    "getConsumerQueue",
    "getConsumerTime",
    "getEventMessageCount",
    "getEventName",
    "getJobStat",
    "getMainQueue",
    "getMemId",
    "getMessageSize",
    "getMetadata",
    "getOffset",
    "getOffsetCommitted",
    "getOffsetInfo",
    "getOffsetPosition",
    "getPartitionQueue",
    "getProducerTime",
    "getQueueTime",
    "getSubJobConsumer",
    "keyedTable",
    "parseJsonTable",
    "pollByteStream",
    "pollDict",
    "produce",
    "producer",
    "producerFlush",
    "queueEvent",
    "queueLength",
    "queuePoll",
    "queuePollBatch",
    "setBufferSize",
    "setConsumerTime",
    "setMessageSize",
    "setProducerTime",
    "setQueueTime",
    "storeConsumedOffset",
    "storeOffset",
    "streamTable",
    "subscribe",
    "table",
    "toStdJson",
    "unassign",
    "unsubscribe",
]
