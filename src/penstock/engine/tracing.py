"""OpenTelemetry spans of batches and their phases, if the standard environment variables ask for them.

Without them nothing is imported and nothing is done. Spans have numbers and names only: no text of a
record, of an error or of a definition. They are sent by a thread of the SDK, which drops them when its
queue is full: a batch never waits for a collector.
"""

from __future__ import annotations

import logging
import os
import time
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from penstock.config.logs import event_logger
from penstock.engine.phases import Phase, ended_phases
from penstock.engine.progress import Done
from penstock.pipeline import Mark

if TYPE_CHECKING:
    from collections.abc import Mapping

log = event_logger(__name__)
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_PROTOCOL = "http/protobuf"
_lock = Lock()


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables ask for traces over OTLP.

    >>> is_wanted({}), is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})
    (False, True)
    >>> is_wanted({"OTEL_TRACES_EXPORTER": "otlp"}), is_wanted({"OTEL_TRACES_EXPORTER": "none"})
    (True, False)
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    return exporter == "otlp" or (not exporter and bool(_first(environment, _ENDPOINTS)))


class BatchTracer:
    """Writes a span for each batch of a pipeline, and one for each phase of it."""

    def __init__(self, pipeline: str, tracer: Any) -> None:
        self._pipeline = pipeline
        self._tracer = tracer

    def done(self, done: Done) -> None:
        """Write the span of a batch that ends now."""
        counts = {name: getattr(done, name) for name in ("records", "rows", "failed", "lost")}
        self._write(done.mark, done.seconds, counts)

    def failed(self, mark: Mark, seconds: float, error: BaseException) -> None:
        """Write the span of a batch that failed now: the class of the error, never its text."""
        self._write(mark, seconds, {"error": type(error).__name__}, failed=True)

    def _write(
        self, mark: Mark, seconds: float, more: dict[str, Any], *, failed: bool = False
    ) -> None:
        try:
            self._span(mark, seconds, more, failed)
        except Exception as error:  # a batch must not fail because of its span
            log.warning("span_not_written", pipeline=self._pipeline, reason=str(error))

    def _span(self, mark: Mark, seconds: float, more: dict[str, Any], failed: bool) -> None:
        from opentelemetry.context import Context  # noqa: PLC0415
        from opentelemetry.trace import StatusCode, set_span_in_context  # noqa: PLC0415

        numbers = {"deployment": self._pipeline, "epoch": mark.epoch, "batch": mark.batch}
        attributes = {f"penstock.{name}": value for name, value in (numbers | more).items()}
        now, end = time.monotonic(), time.time_ns()
        phases = [*ended_phases(), Phase("batch", now - seconds, now, failed)]
        starts = [end - int((now - each.began) * 1e9) for each in phases]
        batch = self._tracer.start_span(
            "batch",
            context=Context(),  # a trace of its own, whatever the caller's is
            start_time=min(starts),
            attributes=attributes,
        )
        inside = set_span_in_context(batch, Context())
        for each, start in zip(phases[:-1], starts, strict=False):
            span = self._tracer.start_span(each.name, context=inside, start_time=start)
            if each.failed:
                span.set_status(StatusCode.ERROR)
            span.end(end - int((now - each.ended) * 1e9))
        if failed:
            batch.set_status(StatusCode.ERROR)
        batch.end(end)


def batch_tracer(pipeline: str) -> BatchTracer | None:
    """Return what writes the spans of a pipeline; None if no traces are wanted."""
    if not is_wanted(os.environ):
        return None
    with _lock:  # several pipelines start at the same time
        tracer = _tracer()
    return BatchTracer(pipeline, tracer) if tracer is not None else None


@lru_cache(maxsize=1)
def _tracer() -> Any:
    """Return the tracer of this process; None, with one warning, if spans cannot be sent."""
    protocol = _first(os.environ, _PROTOCOLS) or _PROTOCOL
    if protocol != _PROTOCOL:
        _refuse(f"the protocol is {protocol!r}; supported: {_PROTOCOL!r}")
        return None
    try:
        return _opened()
    except ModuleNotFoundError:
        _refuse("traces need an extra: pip install 'penstock[otel]'")
    except Exception as error:  # of the SDK: a pipeline must not fail because of a variable
        _refuse(f"the SDK does not accept the variables OTEL_...: {type(error).__name__}")
    return None


def _opened() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    _check_headers()
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create({} if named else {SERVICE_NAME: "penstock"})
    provider = TracerProvider(resource=resource)  # it sends what is left when the process ends
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("penstock")


def _check_headers() -> None:
    """Warn about headers that the SDK leaves out: it would log them with their secrets."""
    from opentelemetry.util import re  # noqa: PLC0415

    logging.getLogger(re.__name__).setLevel(logging.CRITICAL)
    given = _first(os.environ, _HEADERS)
    parts = [part for part in given.split(",") if part.strip()]
    if len(re.parse_env_headers(given, liberal=True)) < len(parts):
        log.warning("header_not_sent", reason=f"{_HEADERS[1]} is not of the form name=value,...")


def _refuse(reason: str) -> None:
    log.warning("traces_not_sent", reason=reason)


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first variable that is not empty."""
    return next((text for name in names if (text := environment.get(name, "").strip())), "")
