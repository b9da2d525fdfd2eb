"""All routers of the Kafka side of the API."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.control.store.control_store import ControlStore
from penstock.server.kafka.cluster_routes import cluster_router
from penstock.server.kafka.component_catalog import ComponentCatalog
from penstock.server.kafka.component_routes import components_router
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.dead_letter_routes import dead_letters_router
from penstock.server.kafka.dead_letter_topic import deployed_in
from penstock.server.kafka.group_routes import groups_router
from penstock.server.kafka.message_routes import messages_router
from penstock.server.kafka.registry_routes import registry_router
from penstock.server.kafka.replay_routes import replays_router
from penstock.server.kafka.topic_routes import topics_router


def kafka_routers(connections: Connections, store: ControlStore) -> list[APIRouter]:
    """Return the routers for an app, which closes the connections when it ends."""
    audit = store.audit.add
    return [
        cluster_router(connections),
        topics_router(connections, audit),
        messages_router(connections, audit),
        groups_router(connections, audit),
        registry_router(connections, audit),
        components_router(ComponentCatalog()),
        replays_router(store),
        dead_letters_router(deployed_in(store), connections, audit),
    ]
