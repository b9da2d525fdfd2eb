"""Requests for a connector, a task, a plugin or a logger that does not exist."""

from __future__ import annotations

from tests.contract.connect_rest.rest_case import Cases
from tests.contract.connect_rest.setup_cases import SINK

unknown = Cases("unknown")

_X = "/connectors/x%20y"
for part in (
    "",
    "/config",
    "/status",
    "/tasks",
    "/tasks/0/status",
    "/tasks/x/status",
    "/topics",
    "/offsets",
):
    unknown.add("GET", f"{_X}{part}")
for part in ("/pause", "/resume", "/stop", "/topics/reset", "/fence"):
    unknown.add("PUT", f"{_X}{part}")
for part in (
    "/restart",
    "/restart?includeTasks=true",
    "/restart?onlyFailed=true",
    "/restart?includeTasks=maybe",
    "/tasks/0/restart",
    "/tasks/x/restart",
    "/tasks",
):
    unknown.add("POST", f"{_X}{part}")
unknown.add("POST", f"{_X}/tasks", [{}], note="a body")
unknown.add("DELETE", _X)
unknown.add("DELETE", f"{_X}/offsets")
unknown.add("PATCH", f"{_X}/config", {"a": "b"})
unknown.add("PATCH", f"{_X}/config", {}, note="empty")
unknown.add("PATCH", f"{_X}/config", SINK, note="whole")
unknown.add("PATCH", f"{_X}/offsets", {"offsets": []}, note="none")
unknown.add("PATCH", f"{_X}/offsets", {}, note="empty")
unknown.add("PATCH", f"{_X}/offsets", {"offsets": [{"partition": {"a": 1}, "offset": None}]})
unknown.add("POST", "/connectors/writer/tasks/9/restart")
unknown.add("POST", "/connectors/writer/tasks/-1/restart")
unknown.add("POST", "/connectors/idle-out/tasks/0/restart")
unknown.add("POST", "/connectors/writer/tasks", [{}])
unknown.add("PUT", "/connectors/writer/fence")
for plugin in ("Nope", "org.example.Nope", "a%20b", "JsonConverter"):
    unknown.add(
        "GET",
        f"/connector-plugins/{plugin}/config",
        note="plugin",
        view=lambda body: body if isinstance(body, dict) else "found",
    )
    unknown.add("PUT", f"/connector-plugins/{plugin}/config/validate", {"connector.class": plugin})
unknown.add("PUT", "/connector-plugins/Nope/config/validate", {}, note="empty")
unknown.add(
    "PUT",
    "/connector-plugins/FileStreamSink/config/validate",
    {"connector.class": "FileStreamSource"},
    note="another class",
)
unknown.add(
    "PUT",
    "/connector-plugins/FileStreamSink/config/validate",
    {"connector.class": "Nope"},
    note="unknown class",
)
unknown.add("GET", "/admin/loggers/no.such.logger")
for level in ("LOUD", "", 5, None, True):
    unknown.add("PUT", "/admin/loggers/org.example", {"level": level}, note=f"level {level!r}")
unknown.add("PUT", "/admin/loggers/org.example", {}, note="no level")
unknown.add("PUT", "/admin/loggers/org.example", {"level": "INFO", "colour": "red"}, note="more")
unknown.add("PUT", "/admin/loggers/org.example?scope=cluster", {"level": "LOUD"})
unknown.add("PUT", "/admin/loggers/org.example?scope=galaxy", {"level": "LOUD"})
