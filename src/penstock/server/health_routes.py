"""Probes and metrics: /health, /ready, /metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from penstock.control.placement import is_alive
from penstock.errors import TransientError
from penstock.server.app_state import Settings, Store
from penstock.server.caller import Caller
from penstock.server.connect.connect_api import HEALTHY
from penstock.server.metrics_text import metrics
from penstock.server.prometheus_text import MEDIA_TYPE

router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> dict[str, str]:
    """Reply as long as the process can, as Kafka Connect does: no other request is waited for."""
    return HEALTHY


@router.get("/ready")
def ready(store: Store, settings: Settings) -> dict[str, Any]:
    """Reply 200 when the store can be reached and a worker is alive, 503 otherwise."""
    try:
        now = store.database.time()
        alive = sum(is_alive(worker, now) for worker in store.workers.all())
    except TransientError as error:
        # The address of the store is for the log: this reply needs no login.
        raise TransientError("the store cannot be reached", error.retry_after) from None
    if settings.workers and not alive:
        raise TransientError("no worker is alive yet; it may be starting")
    return {"status": "ready", "workers": alive}


@router.get("/metrics", response_class=Response)
def prometheus(store: Store, access: Caller) -> Response:
    """Return the metrics of deployments and workers in the text format of Prometheus."""
    return Response(metrics(store, access), media_type=MEDIA_TYPE)
