"""Spans of batches at a real receiver of OTLP over HTTP, from processes of their own; without Spark."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from penstock.embedded.ports import free_ports

SECRET = "s3cret-of-a-record"
# What a pipeline does with its tracer, in a process of its own: the SDK is set up once for each.
DRIVER = f"""
from penstock.engine.loop import Hooks
from penstock.engine.phases import batch_phases, phase
from penstock.engine.progress import Done
from penstock.engine.tracing import batch_tracer
from penstock.errors import PipelineFailedError
from penstock.pipeline import Mark
from contextlib import suppress
import os, sys, time

trace = batch_tracer("orders")
hooks = Hooks(trace=trace)
hooks.done(Done(Mark(7, 3, 0), records=10, rows=8, failed=2, seconds=1.5, error="{SECRET}", lost=1))
hooks.failed(Mark(7, 4, 0), time.monotonic() - 0.5, PipelineFailedError("{SECRET}"))
if "PHASES" in os.environ:
    began = time.monotonic()
    with batch_phases():
        for name in ("plan", "write"):
            with suppress(ValueError), phase(name):
                if name == "write":
                    raise ValueError("{SECRET}")
        hooks.failed(Mark(7, 5, 0), began, PipelineFailedError("{SECRET}"))
print("opentelemetry.sdk" in sys.modules, "opentelemetry" in sys.modules, trace is not None)
"""


class Receiver(ThreadingHTTPServer):
    """Collects the requests of exporters."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[tuple[Any, Any]]:
        """Return the spans with the attributes of their resource."""
        found = []
        for _, headers, body in self.requests:
            text = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            for each in ExportTraceServiceRequest.FromString(text).resource_spans:
                resource = values(each.resource.attributes)
                found += [(span, resource) for scope in each.scope_spans for span in scope.spans]
        return found


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver: Any = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        receiver.requests.append((self.path, self.headers, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def drive(code: str = DRIVER, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[2],
    )


def test_each_batch_is_a_span_with_numbers_and_without_texts(receiver: Receiver) -> None:
    done = drive(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=k1")
    (first, resource), (second, _) = receiver.spans()

    assert done.stdout.split() == ["True", "True", "True"]
    assert resource["service.name"] == "penstock"
    assert {path for path, *_ in receiver.requests} == {"/v1/traces"}
    assert receiver.requests[0][1]["x-key"] == "k1"
    assert (first.name, second.name, first.parent_span_id) == ("batch", "batch", b"")
    assert first.trace_id != second.trace_id
    assert values(first.attributes) == {
        "penstock.deployment": "orders",
        "penstock.epoch": 7,
        "penstock.batch": 3,
        "penstock.records": 10,
        "penstock.rows": 8,
        "penstock.failed": 2,
        "penstock.lost": 1,
    }
    assert first.end_time_unix_nano - first.start_time_unix_nano == 1_500_000_000
    assert (first.status.code, second.status.code) == (0, 2)
    assert values(second.attributes) == {
        "penstock.deployment": "orders",
        "penstock.epoch": 7,
        "penstock.batch": 4,
        "penstock.error": "PipelineFailedError",
    }
    assert all(SECRET.encode() not in body for *_, body in receiver.requests)


def test_the_phases_of_a_batch_are_spans_inside_of_it(receiver: Receiver) -> None:
    drive(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, PHASES="1")
    spans = [span for span, _ in receiver.spans()]
    (batch,) = [span for span in spans if values(span.attributes).get("penstock.batch") == 5]
    plan, write = [span for span in spans if span.parent_span_id == batch.span_id]

    assert (plan.name, write.name, plan.trace_id, write.trace_id) == (
        "plan", "write", batch.trace_id, batch.trace_id,
    )  # fmt: skip
    assert (plan.status.code, write.status.code, batch.status.code) == (0, 2, 2)
    times = [batch.start_time_unix_nano, plan.start_time_unix_nano, plan.end_time_unix_nano]
    times += [write.start_time_unix_nano, write.end_time_unix_nano, batch.end_time_unix_nano]
    assert times == sorted(times)
    assert all(SECRET.encode() not in body for *_, body in receiver.requests)


def test_a_service_name_of_the_environment_is_used(receiver: Receiver) -> None:
    drive(
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{receiver.url}/own/path",
        OTEL_SERVICE_NAME="team-a",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
    )
    assert {resource["service.name"] for _, resource in receiver.spans()} == {"team-a"}
    assert receiver.requests[0][0] == "/own/path"


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_imported_and_sent_if_no_traces_are_wanted(
    receiver: Receiver, variables: dict[str, str]
) -> None:
    done = drive(**{name: text.replace("URL", receiver.url) for name, text in variables.items()})
    assert (done.stdout.split(), receiver.requests) == (["False", "False", "False"], [])


def test_another_protocol_is_refused_with_a_warning(receiver: Receiver) -> None:
    done = drive(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    assert (done.stdout.split()[-1], receiver.requests) == ("False", [])
    assert "traces_not_sent" in done.stderr


def test_a_missing_extra_is_named(receiver: Receiver) -> None:
    hidden = f"import sys; sys.modules['opentelemetry.sdk'] = None{DRIVER}"
    done = drive(hidden, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert (done.stdout.split()[-1], receiver.requests) == ("False", [])


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon", "OTEL_EXPORTER_OTLP_COMPRESSION": "much"},
        {"OTEL_TRACES_SAMPLER": "unknown", "OTEL_BSP_SCHEDULE_DELAY": "-1"},
        {"OTEL_EXPORTER_OTLP_HEADERS": f"Authorization: Bearer {SECRET}, ok=1"},
    ],
)
def test_wrong_variables_fail_nothing_and_are_not_shown(
    receiver: Receiver, variables: dict[str, str]
) -> None:
    done = drive(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **variables)
    assert done.stdout.split()[-1] in ("True", "False")
    assert SECRET not in done.stderr


def test_a_collector_that_is_away_ends_nothing() -> None:
    (port,) = free_ports(1)
    done = drive(
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}", OTEL_EXPORTER_OTLP_TIMEOUT="1"
    )
    assert done.stdout.split() == ["True", "True", "True"]
