"""The Kafka client: write, read, and administer, over librdkafka."""

from penstock.kafka.admin import Admin
from penstock.kafka.consumer import Consumer
from penstock.kafka.metadata import cluster_metadata
from penstock.kafka.offsets import GroupOffsets
from penstock.kafka.positions import Position
from penstock.kafka.producer import Producer
from penstock.kafka.resets import ResetPlan
from penstock.kafka.rules import Acl, AclFilter

__all__ = [
    "Acl",
    "AclFilter",
    "Admin",
    "Consumer",
    "GroupOffsets",
    "Position",
    "Producer",
    "ResetPlan",
    "cluster_metadata",
]
