"""The DolphinDB Kafka plugin's functions, for scripts that are migrated to Python.

Names, order of arguments and results are those of the current version and of 1.30; each is a thin wrapper
of Penstock's own API. docs/dolphindb.md is the guide.

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
    from penstock.compat.dolphindb.dolphindb_jobs import (
        cancelSubJob,
        createSubJob,
        getJobStat,
        getSubJobConsumer,
    )
    from penstock.compat.dolphindb.dolphindb_offsets import (
        getAssignment,
        getOffset,
        getOffsetCommitted,
        getOffsetInfo,
        getOffsetPosition,
        storeConsumedOffset,
        storeOffset,
    )
    from penstock.compat.dolphindb.dolphindb_queues import (
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
    from penstock.compat.dolphindb.dolphindb_tables import (
        keyedTable,
        parseJsonTable,
        streamTable,
        table,
        toStdJson,
    )
    from penstock.compat.dolphindb.handles import consumer, getMetadata, producer
    from penstock.compat.dolphindb.producing import (
        getBufferSize,
        getMessageSize,
        getProducerTime,
        produce,
        producerFlush,
        setBufferSize,
        setMessageSize,
        setProducerTime,
    )
except ModuleNotFoundError as missing:
    raise missing_extra(missing, "penstock.compat.dolphindb", "spark") from missing

__all__ = [
    "assign", "asyncCommit", "asyncCommitTopic", "cancelSubJob", "commit", "commitTopic",
    "consumer", "consumerPoll", "consumerPollBatch", "createSubJob", "disforToQueue", "eventBool",
    "eventGetError", "eventGetMessage", "eventGetPart", "eventGetParts", "forToQueue",
    "getAssignment", "getBufferSize", "getConsumerQueue", "getConsumerTime", "getEventMessageCount",
    "getEventName", "getJobStat", "getMainQueue", "getMemId", "getMessageSize", "getMetadata",
    "getOffset", "getOffsetCommitted", "getOffsetInfo", "getOffsetPosition", "getPartitionQueue",
    "getProducerTime", "getQueueTime", "getSubJobConsumer", "keyedTable", "parseJsonTable",
    "pollByteStream", "pollDict", "produce", "producer", "producerFlush", "queueEvent",
    "queueLength", "queuePoll", "queuePollBatch", "setBufferSize", "setConsumerTime",
    "setMessageSize", "setProducerTime", "setQueueTime", "storeConsumedOffset", "storeOffset",
    "streamTable", "subscribe", "table", "toStdJson", "unassign", "unsubscribe",
]  # fmt: skip
