"""The form of requests: paths, methods, types, and bodies that are not what they should be."""

from __future__ import annotations

from typing import Any

from tests.contract.connect_rest.plugin_cases import files
from tests.contract.connect_rest.rest_case import JSON, Cases
from tests.contract.connect_rest.setup_cases import SINK, SOURCE

PATHS = {
    "/": "GET",
    "/health": "GET",
    "/connectors": "GET POST",
    "/connectors/reader": "GET DELETE",
    "/connectors/reader/config": "GET PUT PATCH",
    "/connectors/reader/status": "GET",
    "/connectors/reader/tasks": "GET POST",
    "/connectors/reader/tasks/0/status": "GET",
    "/connectors/reader/tasks/0/restart": "POST",
    "/connectors/reader/restart": "POST",
    "/connectors/reader/pause": "PUT",
    "/connectors/reader/resume": "PUT",
    "/connectors/reader/stop": "PUT",
    "/connectors/reader/fence": "PUT",
    "/connectors/reader/topics": "GET",
    "/connectors/reader/topics/reset": "PUT",
    "/connectors/reader/offsets": "GET PATCH DELETE",
    "/connector-plugins": "GET",
    "/connector-plugins/FileStreamSource/config": "GET",
    "/connector-plugins/FileStreamSource/config/validate": "PUT",
    "/admin/loggers": "GET",
    "/admin/loggers/root": "GET PUT",
}
form = Cases("form")


def unordered(body: Any) -> Any:
    """Return lists of names sorted, and of loggers the first one alone."""
    if isinstance(body, dict) and "root" in body:
        return sorted(body["root"])
    return sorted(body, key=str) if isinstance(body, list) else body


def methods(body: Any) -> Any:
    """Return the methods of a text, sorted."""
    return sorted(body.split(", ")) if isinstance(body, str) else body


for path, known in PATHS.items():
    form.add("OPTIONS", path, view=methods)
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        if method not in known and not (method == "HEAD" and "GET" in known):
            form.add(method, path)
form.add("OPTIONS", "/connectors/nope/config", view=methods)
form.add("TRACE", "/connectors")
form.add("BREW", "/connectors")

for path in (
    "/connectors/",
    "/connectors//",
    "//connectors",
    "/connectors/reader/",
    "/connectors/reader//config",
    "/connectors/reader/config/",
    "/connectors/reader/nope",
    "/connectors/reader/config/nope",
    "/connectors/reader/tasks-config",
    "/connectors/reader/tasks/0",
    "/connectors/reader/tasks/x/status",
    "/connectors/reader/tasks/-1/status",
    "/connectors/reader/tasks/99999999999/status",
    "/connectors/reader/tasks/%30/status",
    "/connectors/re%61der",
    "/connectors/Reader",
    "/CONNECTORS",
    "/admin",
    "/admin/nope",
    "/admin/loggers/",
    "/connector-plugins/FileStreamSource",
    "/connector-plugins/FileStreamSource/nope",
    "/health/",
    "/health/nope",
    "/connectors?",
):
    form.add("GET", path, note="path", view=unordered)
form.add("GET", "/connector-plugins/", note="path", view=files)
form.add("HEAD", "/")
form.add("HEAD", "/health")
form.add("HEAD", "/connectors")
form.add("HEAD", "/connectors/nope")
form.add("GET", "/")
form.add("GET", "/health")

for kind in (
    "text/html",
    "application/xml",
    "application/json;q=0",
    "application/json",
    "application/*",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html, application/json;q=0.1",
    "text/plain, application/vnd.kafka+json",
    "nonsense",
    "*",
    "",
):
    form.add("GET", "/connectors/reader/config", note=f"Accept: {kind}", headers={"Accept": kind})
form.add("PUT", "/connectors/resting/pause", note="html", headers={"Accept": "text/html"})
form.add("GET", "/connectors/nope", note="html", headers={"Accept": "text/html"})
form.add("GET", "/nope/nope", note="html", headers={"Accept": "application/xml"})

for kind in (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/yaml",
    "application/vnd.kafka+json",
    "application/merge-patch+json",
    "application/json; charset=utf-8",
    "Application/JSON",
    "application/*",
    "nonsense",
    "",
):
    put = ("PUT", "/connector-plugins/FileStreamSource/config/validate")
    form.add(
        *put, SOURCE, note=f"Content-Type: {kind}", headers={"Content-Type": kind}, view=lambda _: 0
    )
form.add("POST", "/connectors", b"name=a&config=b", note="form", headers={
    "Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
for headers in (JSON, {"Content-Type": "text/plain"}):
    kind = headers["Content-Type"]
    form.add("GET", "/connectors/reader", note=f"with {kind}", headers=headers)
    form.add("PUT", "/connectors/resting/pause", note=f"with {kind}", headers=headers)
    form.add("PUT", "/connectors/resting/pause", b"x", note=f"body of {kind}", headers=headers)
    form.add("DELETE", "/connectors/nope", note=f"with {kind}", headers=headers)
    form.add("POST", "/connectors/nope/restart", note=f"with {kind}", headers=headers)
form.add("POST", "/connectors", note="no body, no type")
form.add(
    "POST",
    "/connectors",
    {"name": "a", "config": SINK},
    note="no type",
    headers={"Content-Type": None},
)
form.add("OPTIONS", "/connectors", note="JSON", headers={"Accept": "application/json"})
form.add("PUT", "/connectors/fresh/config", note="no body, no type")

_NO_JSON = [b"{", b"", b"null", b"[]", b'"x"', b"1", b"{}x", b"not json", b"{'name': 'a'}"]
_NO_JSON += [b'{"name":"a"', b'{"name":"a",}', b"\xff\xfe", b'{"a":NaN}', b"[" * 200 + b"]" * 200]
for text in _NO_JSON:
    shown = text[:20].decode("latin-1")
    form.add("POST", "/connectors", text, note=f"body {shown!r}", headers=JSON)
for text in (b"", b"null", b"[]", b"{", b"1"):
    shown = text[:20].decode("latin-1")
    form.add("PUT", "/connectors/fresh/config", text, note=f"body {shown!r}", headers=JSON)
    form.add("PATCH", "/connectors/idle-out/config", text, note=f"body {shown!r}", headers=JSON)
    form.add("PATCH", "/connectors/idle-out/offsets", text, note=f"body {shown!r}", headers=JSON)
    form.add(
        "PUT", "/connector-plugins/FileStreamSink/config/validate", text,
        note=f"body {shown!r}", headers=JSON, view=lambda body: body.get("error_code"),
    )  # fmt: skip
    form.add("PUT", "/admin/loggers/org.example", text, note=f"body {shown!r}", headers=JSON)

for note, body in {
    "unknown member": {"name": "fresh", "config": SINK, "colour": "red"},
    "config is a list": {"name": "fresh", "config": [1]},
    "config is a text": {"name": "fresh", "config": "x"},
    "config is null": {"name": "fresh", "config": None},
    "no config": {"name": "fresh"},
    "empty config": {"name": "fresh", "config": {}},
    "empty": {},
    "nested config": {"name": "fresh", "config": {**SINK, "tasks.max": {"a": 1}}},
    "list in config": {"name": "fresh", "config": {**SINK, "tasks.max": [1]}},
    "name is a list": {"name": ["fresh"], "config": SINK},
    "null in config": {"name": "fresh", "config": {**SINK, "topics": None}},
    "no name at all": {"config": SINK},
    "empty name": {"name": "", "config": SINK},
    "blank name": {"name": "  ", "config": SINK},
    "name is null": {"name": None, "config": SINK},
    "state asleep": {"name": "fresh", "config": SINK, "initial_state": "ASLEEP"},
    "state empty": {"name": "fresh", "config": SINK, "initial_state": ""},
    "state 1": {"name": "fresh", "config": SINK, "initial_state": 1},
    "state list": {"name": "fresh", "config": SINK, "initial_state": []},
    "control character": {"name": "a\x07b", "config": SINK},
    "line break": {"name": "a\nb", "config": SINK},
    "del": {"name": "a\x7fb", "config": SINK},
    "name and config.name": {"name": "fresh", "config": {**SINK, "name": "other"}},
    "taken": {"name": "reader", "config": SOURCE},
    "taken, wrong": {"name": "reader", "config": {**SOURCE, "topic": ""}},
    "taken, without class": {"name": "reader", "config": {"topic": "x"}},
    "no class": {"name": "fresh", "config": {"tasks.max": "1"}},
    "unknown class": {"name": "fresh", "config": {"connector.class": "Nope"}},
    "empty class": {"name": "fresh", "config": {"connector.class": ""}},
    "no topics": {"name": "fresh", "config": {**SINK, "topics": ""}},
    "both topics": {"name": "fresh", "config": {**SINK, "topics.regex": "a.*"}},
    "no topic": {"name": "fresh", "config": {k: v for k, v in SOURCE.items() if k != "topic"}},
    "several errors": {
        "name": "fresh",
        "config": {
            **SOURCE,
            "tasks.max": 0,
            "errors.tolerance": "maybe",
            "errors.retry.timeout": "soon",
            "errors.log.enable": "perhaps",
            "batch.size": "many",
        },
    },
}.items():
    form.add("POST", "/connectors", body, note=note)

for note, config in {
    "other name": {**SINK, "name": "other"},
    "empty": {},
    "nested": {**SINK, "a": {"b": 1}},
    "no class": {"tasks.max": "1"},
    "unknown class": {"connector.class": "org.example.Nope"},
    "tasks.max 0": {**SINK, "tasks.max": 0},
    "tasks.max 1.5": {**SINK, "tasks.max": 1.5},
    "tasks.max true": {**SINK, "tasks.max": True},
    "dead letters in topics": {
        **SINK,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": SINK["topics"],
    },
}.items():
    form.add("PUT", "/connectors/fresh/config", config, note=note)
form.add("GET", "/connectors/fresh", note="was never made")
