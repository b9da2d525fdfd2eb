"""Records from Kafka topics, and the offsets of the group that reads them."""

from penstock.sources.kafka.log import KafkaLog
from penstock.sources.kafka.source import AtOffsets, AtTime, KafkaSource

__all__ = ["AtOffsets", "AtTime", "KafkaLog", "KafkaSource"]
