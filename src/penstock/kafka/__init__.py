"""The Kafka client: write, read, and administer, over librdkafka."""

from penstock.kafka.admin import Admin
from penstock.kafka.consumer import Consumer
from penstock.kafka.offsets import GroupOffsets
from penstock.kafka.positions import Position
from penstock.kafka.producer import Producer

__all__ = ["Admin", "Consumer", "GroupOffsets", "Position", "Producer"]
