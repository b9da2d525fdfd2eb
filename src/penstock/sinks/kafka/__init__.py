"""Rows as records of a Kafka topic."""

from penstock.sinks.kafka.sink import KafkaSink, largest_record

__all__ = ["KafkaSink", "largest_record"]
