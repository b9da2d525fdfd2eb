"""The Kafka client: write, read, and administer, over librdkafka."""

from penstock.kafka.admin import Admin
from penstock.kafka.aio_consumer import AsyncConsumer
from penstock.kafka.aio_producer import AsyncProducer
from penstock.kafka.consumer import Consumer
from penstock.kafka.delivery import Delivery
from penstock.kafka.events import Event
from penstock.kafka.metadata import cluster_metadata
from penstock.kafka.offsets import GroupOffsets
from penstock.kafka.positions import Position
from penstock.kafka.producer import Producer
from penstock.kafka.queues import Queue
from penstock.kafka.resets import ResetPlan
from penstock.kafka.rules import Acl, AclFilter

__all__ = [
    "Acl",
    "AclFilter",
    "Admin",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "Delivery",
    "Event",
    "GroupOffsets",
    "Position",
    "Producer",
    "Queue",
    "ResetPlan",
    "cluster_metadata",
]
