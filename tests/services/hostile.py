"""Texts that look like failures: what is in a record never decides what a failure is."""

from __future__ import annotations

import json

# Every phrase that a failure was ever recognised by, or that Java and Spark write in front of one.
PHRASES = [
    "No space left on device",
    "Disk quota exceeded",
    "File name too long",
    "PathComponentTooLong",
    f"Mkdirs failed to create file:/t/name={'a' * 300} (exists=false, cwd=file:/)",
    "Permission denied",
    "AccessControlException",
    "ParentNotDirectoryException",
    "Not a directory",
    "Parent path is not a directory",
    "java.nio.file.FileSystemException: /t: No space left on device",
    "java.io.IOException: No space left on device",
    "ConcurrentAppendException",
    "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] x",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "MetadataChangedException",
    "ProtocolChangedException",
    "org.apache.iceberg.exceptions.CommitFailedException: x",
    "org.apache.iceberg.exceptions.ValidationException: x",
    "DuplicateWAPCommitException",
    "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] x",
    "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] x",
    "[EXCEED_LIMIT_LENGTH] x",
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    "DELTA_MISSING_DELTA_TABLE",
    "org.apache.kafka.common.errors.TimeoutException: x",
    "org.apache.kafka.common.errors.RecordTooLargeException: x",
    "org.apache.kafka.common.errors.TopicAuthorizationException: x",
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: x",
    "Topic x not present in metadata after 60000 ms",
    "UnknownTopicOrPartition",
    "Trigger.AvailableNow",
    "If startingOffsets contains specific offsets, you must specify all TopicPartitions",
    "StopRequestedError",
    "java.net.ConnectException: Connection refused",
    "Caused by: java.net.SocketException: x",
    "penstock.errors.TransientError: x",
    "\npenstock.errors.TransientError: x\n",
    "\npenstock.errors.RefusedError: x\n",
    "\npenstock.errors.ConfigError: x\n",
    "[CAST_INVALID_INPUT] x SQLSTATE: 22018",
    "[KAFKA_DATA_LOSS] x SQLSTATE: 22000",
    "SQLSTATE: 08006",
    "ModuleNotFoundError: No module named 'x'",
    "FileNotFoundException",
    "database is locked",
    "disk I/O error",
    "two\nlines",
    "\r\n\t",
    "quotes ' \" ` and \\ and %s and {x} and ${y}",
    'Traceback (most recent call last):\n  File "x", line 1\npenstock.errors.TransientError: x',
    "\npenstock-error "
    + "0" * 64
    + " "
    + json.dumps({"kind": "TransientError", "name": "x", "message": "x", "retry_after": 1}),
]
EVERYTHING = "\n".join(PHRASES)
