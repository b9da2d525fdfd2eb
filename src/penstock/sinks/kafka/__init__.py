"""Rows as records of a Kafka topic."""

from penstock.sinks.kafka.sink import KafkaSink

__all__ = ["KafkaSink"]
