"""The connectors that most requests are about: made in every state, read in every way."""

from __future__ import annotations

from tests.contract.connect_rest.rest_case import Cases

TOPIC = "contract-lines"
SOURCE = {"connector.class": "FileStreamSource", "topic": TOPIC, "file": "{dir}/in.txt"}
SINK = {"connector.class": "FileStreamSink", "topics": TOPIC, "file": "{dir}/out.txt"}
FULL = "org.apache.kafka.connect.file.FileStreamSinkConnector"
RUNNING = {
    "reader": "RUNNING 0:RUNNING",
    "writer": "RUNNING 0:RUNNING 1:RUNNING",
    "broken": "RUNNING 0:FAILED",
    "resting": "PAUSED",
    "idle in": "STOPPED",
    "idle-out": "STOPPED",
}
setup = Cases("setup")

_ADD = ("POST", "/connectors")
setup.add("GET", "/connectors", note="none")
setup.add("GET", "/connectors?expand=info&expand=status", note="none")
setup.add(*_ADD, {"name": "reader", "config": SOURCE})
setup.add(
    *_ADD,
    {"name": "writer", "config": {**SINK, "tasks.max": 2, "errors.log.enable": True}},
    note="numbers and booleans",
)
broken = {**SINK, "connector.class": FULL, "file": "{dir}/none/out.txt"}
setup.add("PUT", "/connectors/broken/config", {"name": "broken", **broken}, note="new")
for name, config, state in (
    ("resting", SOURCE, "paused"),
    ("idle in", SOURCE, "Stopped"),
    ("idle-out", SINK, "STOPPED"),
):
    setup.add(*_ADD, {"name": name, "config": config, "initial_state": state}, note=name)

setup.add("GET", "/connectors", note="all", settled=RUNNING, view=sorted)
for query in (
    "expand=info",
    "expand=status",
    "expand=info&expand=status",
    "expand=status&expand=info",
    "expand=info,status",
    "expand=nope",
    "expand=",
    "expand",
    "expand=INFO",
    "expand=info&expand=nope",
    "expand=info&expand=info",
):
    setup.add("GET", f"/connectors?{query}")
setup.add("GET", "/connectors?colour=red", view=sorted)
for name in ("reader", "writer", "broken", "resting", "idle%20in", "idle-out"):
    for part in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/offsets"):
        if (name, part) not in {("reader", "/offsets"), ("writer", "/offsets")}:
            setup.add("GET", f"/connectors/{name}{part}")
setup.add("GET", "/connectors/writer/tasks/1/status")
setup.add("GET", "/connectors/writer/tasks/2/status")
setup.add("GET", "/connectors/idle+in")
setup.add("GET", "/connectors/idle%20in/topics")
setup.add("GET", "/connectors/idle-out/topics")
for path in (
    "/connectors/writer",
    "/connectors/writer/status/",
    "/connectors/writer/tasks/1/status/",
):
    setup.add("HEAD", path)
