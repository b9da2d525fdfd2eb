"""The Kafka client: write, read, and administer, over librdkafka."""

from penstock.kafka.admin.acls import Acl, AclFilter
from penstock.kafka.admin.admin import Admin
from penstock.kafka.admin.metadata import cluster_metadata
from penstock.kafka.admin.resets import ResetPlan
from penstock.kafka.consuming.async_consumer import AsyncConsumer
from penstock.kafka.consuming.consumer import Consumer
from penstock.kafka.consuming.queues import Event, Queue
from penstock.kafka.offsets import CommittedOffset, GroupOffsets
from penstock.kafka.positions import Position
from penstock.kafka.producing.async_producer import AsyncProducer
from penstock.kafka.producing.producer import Producer
from penstock.kafka.producing.receipt import Receipt

__all__ = [
    "Acl",
    "AclFilter",
    "Admin",
    "AsyncConsumer",
    "AsyncProducer",
    "CommittedOffset",
    "Consumer",
    "Event",
    "GroupOffsets",
    "Position",
    "Producer",
    "Queue",
    "Receipt",
    "ResetPlan",
    "cluster_metadata",
]
