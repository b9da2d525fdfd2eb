"""Rows as records of a Kafka topic."""

from penstock.sinks.kafka.kafka_sink import KafkaSink

__all__ = ["KafkaSink"]
