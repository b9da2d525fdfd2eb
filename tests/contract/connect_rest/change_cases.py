"""Changes: states, restarts, configurations, offsets, topics, names; what is read after each."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.contract.connect_rest.rest_case import Cases
from tests.contract.connect_rest.setup_cases import RUNNING, SINK, SOURCE, TOPIC

changes = Cases("changes")


def settled(**states: str) -> dict[str, Any]:
    return {"settled": {name.replace("_", "-"): state for name, state in states.items()}}


# Restarts; they are repeated until the one before has ended.


def shows(*states: str, traces: int = 0) -> dict[str, Any]:
    """Wait for the states of the connector and its tasks, of which some have failed before."""

    def are_right(body: Any) -> bool:
        found = [body["connector"], *body["tasks"]] if body else []
        traced = sum("trace" in each for each in found)
        return ([each["state"] for each in found], traced) == ([*states], traces)

    return {"settled": RUNNING, "until": are_right}


WRITER, BROKEN = "/connectors/writer/restart", "/connectors/broken/restart"
for query in ("", "?includeTasks=false&onlyFailed=false", "?includeTasks=maybe", "?includeTasks"):
    changes.add("POST", f"{WRITER}{query}", settled=RUNNING)
for query in ("?onlyFailed=true", "?includeTasks=true&onlyFailed=true"):
    changes.add("POST", f"{WRITER}{query}", **shows("RUNNING", "RUNNING", "RUNNING"))
for query in ("?includeTasks=true", "?includeTasks=TRUE", "?includeTasks=true&onlyFailed=false"):
    changes.add("POST", f"{WRITER}{query}", **shows(*["RESTARTING"] * 3))
changes.add("POST", f"{BROKEN}?onlyFailed=true", **shows("RUNNING", "FAILED", traces=1))
both = f"{BROKEN}?includeTasks=true&onlyFailed=true"
changes.add("POST", both, **shows("RUNNING", "RESTARTING", traces=1))
changes.add("POST", f"{BROKEN}?includeTasks=true", **shows("RESTARTING", "RESTARTING", traces=1))
changes.add("POST", "/connectors/resting/restart?includeTasks=true", settled=RUNNING)
changes.add("POST", "/connectors/idle-out/restart?includeTasks=true", settled=RUNNING)
changes.add("POST", "/connectors/idle-out/restart")
changes.add("POST", "/connectors/writer/tasks/1/restart", settled=RUNNING)
changes.add("POST", "/connectors/broken/tasks/0/restart", settled=RUNNING)
changes.add("GET", "/connectors/broken/status", note="after restarts", settled=RUNNING)

# States.
for path, state in (
    ("pause", "PAUSED 0:PAUSED 1:PAUSED"),
    ("pause", "PAUSED 0:PAUSED 1:PAUSED"),
    ("resume", "RUNNING 0:RUNNING 1:RUNNING"),
    ("resume", "RUNNING 0:RUNNING 1:RUNNING"),
    ("stop", "STOPPED"),
    ("stop", "STOPPED"),
    ("pause", "PAUSED"),
    ("stop", "STOPPED"),
    ("resume", "RUNNING 0:RUNNING 1:RUNNING"),
):
    n = sum(f"writer/{path}" in each.path for each in changes)
    changes.add("PUT", f"/connectors/writer/{path}", note=f"{n}")
    changes.add("GET", "/connectors/writer/status", note=f"{path} {n}", settled={"writer": state})
changes.add("PUT", "/connectors/broken/pause", note="failed tasks stay")
changes.add(
    "GET", "/connectors/broken/status", note="paused", settled={"broken": "PAUSED 0:FAILED"}
)
changes.add("PUT", "/connectors/broken/resume", b"{}", note="with a body")
changes.add(
    "GET", "/connectors/broken/status", note="resumed", settled={"broken": "RUNNING 0:FAILED"}
)
changes.add("PUT", "/connectors/broken/stop", note="failed")
changes.add("GET", "/connectors/broken/status", note="stopped", settled={"broken": "STOPPED"})
changes.add("GET", "/connectors/broken/tasks/0/status", note="stopped")
changes.add("GET", "/connectors/broken/tasks", note="stopped")

# Configurations.
PAUSED, CONFIG = "/connectors/resting", "/connectors/resting/config"
changes.add("PUT", CONFIG, {**SOURCE, "batch.size": 7}, note="keeps the state")
changes.add("GET", f"{PAUSED}/status", note="still paused", settled={"resting": "PAUSED"})
changes.add("PUT", CONFIG, {**SOURCE, "batch.size": 7, "name": "resting"}, note="the same")
changes.add("PUT", CONFIG, {**SINK, "name": "resting"}, note="another class")
changes.add("GET", PAUSED, note="another class", settled={"resting": "PAUSED"})
changes.add("GET", f"{PAUSED}/status", note="another class")
changes.add("PUT", CONFIG, SOURCE, note="and back")
changes.add(
    "PATCH", CONFIG, {"batch.size": 5, "colour": True}, note="adds", settled={"resting": "PAUSED"}
)
changes.add("GET", CONFIG, note="patched")
changes.add("PATCH", CONFIG, {"batch.size": None}, note="removes")
changes.add("PATCH", CONFIG, {"nothing": None}, note="removes what is not there")
changes.add("PATCH", CONFIG, {}, note="nothing")
changes.add("PATCH", CONFIG, {"topic": None}, note="removes what is needed")
changes.add("PATCH", CONFIG, {"connector.class": None}, note="removes the class")
changes.add("PATCH", CONFIG, {"connector.class": "Nope"}, note="unknown class")
changes.add("PATCH", CONFIG, {"name": "other"}, note="another name")
changes.add("PATCH", CONFIG, {"name": None}, note="removes the name")
changes.add("PATCH", CONFIG, {"name": "resting"}, note="same name")
changes.add("PATCH", CONFIG, {"tasks.max": 0}, note="a wrong value")
changes.add("PATCH", CONFIG, {"a": {"b": 1}}, note="nested")
changes.add("GET", CONFIG, note="at the end")
changes.add("GET", f"{PAUSED}/tasks", note="at the end", settled={"resting": "PAUSED"})

# Offsets.
SINK_OFFSETS, SOURCE_OFFSETS = "/connectors/idle-out/offsets", "/connectors/idle%20in/offsets"


def sink(partition: Any, offset: Any) -> dict[str, Any]:
    return {"offsets": [{"partition": partition, "offset": offset}]}


def is_empty(body: Any) -> bool:
    return bool(body == {"offsets": []})


ZERO = {"kafka_topic": TOPIC, "kafka_partition": 0}
AT = {"kafka_offset": 1}
for name in ("reader", "writer"):
    changes.add("PATCH", f"/connectors/{name}/offsets", sink(ZERO, AT), note="running")
    changes.add("PATCH", f"/connectors/{name}/offsets", {}, note="running, empty")
    changes.add("DELETE", f"/connectors/{name}/offsets", note="running")
changes.add("DELETE", "/connectors/resting/offsets", note="paused")
for note, body in {
    "empty": {},
    "none": {"offsets": []},
    "null": {"offsets": None},
    "object": {"offsets": {}},
    "text": {"offsets": "x"},
    "null in it": {"offsets": [None]},
    "more": {"offsets": [{"partition": ZERO, "offset": AT}], "colour": "red"},
    "more inside": {"offsets": [{"partition": ZERO, "offset": AT, "colour": "red"}]},
    "no partition": {"offsets": [{"offset": AT}]},
    "null partition": sink(None, AT),
    "text partition": sink("x", AT),
    "empty partition": sink({}, AT),
    "no topic": sink({"kafka_partition": 0}, AT),
    "no number": sink({"kafka_topic": TOPIC}, AT),
    "null topic": sink({"kafka_topic": None, "kafka_partition": 0}, AT),
    "number x": sink({"kafka_topic": TOPIC, "kafka_partition": "x"}, AT),
    "number 1.5": sink({"kafka_topic": TOPIC, "kafka_partition": 1.5}, AT),
    "null number": sink({"kafka_topic": TOPIC, "kafka_partition": None}, AT),
    "other offset": sink(ZERO, {"position": 1}),
    "empty offset": sink(ZERO, {}),
    "offset x": sink(ZERO, {"kafka_offset": "x"}),
    "offset null": sink(ZERO, {"kafka_offset": None}),
    "offset -1": sink(ZERO, {"kafka_offset": -1}),
    "no such topic": sink({**ZERO, "kafka_topic": "contract-none"}, AT),
    "no such partition": sink({**ZERO, "kafka_partition": 99}, AT),
}.items():
    changes.add("PATCH", SINK_OFFSETS, body, note=note)
changes.add("GET", SINK_OFFSETS, note="unchanged")
changes.add("PATCH", SINK_OFFSETS, sink(ZERO, AT), note="set")
changes.add("GET", SINK_OFFSETS, note="set")
texts = {"kafka_topic": TOPIC, "kafka_partition": "1"}
changes.add("PATCH", SINK_OFFSETS, sink(texts, {"kafka_offset": "2"}), note="as texts")
changes.add("GET", SINK_OFFSETS, note="two")
changes.add("PATCH", SINK_OFFSETS, sink(ZERO, None), note="one removed")
changes.add("GET", SINK_OFFSETS, note="one left")
changes.add("PATCH", SINK_OFFSETS, sink({**ZERO, "more": 1}, {**AT, "more": 1}), note="more keys")
changes.add("GET", SINK_OFFSETS, note="more keys")
changes.add("DELETE", SINK_OFFSETS, note="all")
changes.add("GET", SINK_OFFSETS, note="none left")
changes.add("DELETE", SINK_OFFSETS, note="nothing to remove")
changes.add("PATCH", SINK_OFFSETS, sink(ZERO, None), note="nothing to remove")

PART, POSITION = {"filename": "{dir}/in.txt"}, {"position": 4}
for note, body in {
    "empty": {},
    "none": {"offsets": []},
    "no partition": {"offsets": [{"offset": POSITION}]},
    "null partition": sink(None, POSITION),
    "text offset": sink(PART, "x"),
    "list offset": sink(PART, [1]),
    "null in it": {"offsets": [None]},
    "wrong partition": sink({"file": "x"}, POSITION),
    "wrong offset": sink(PART, {"kafka_offset": 1}),
    "negative": sink(PART, {"position": -1}),
    "text": sink(PART, {"position": "3"}),
}.items():
    changes.add("PATCH", SOURCE_OFFSETS, body, note=note)
changes.add("DELETE", SOURCE_OFFSETS, note="whatever there is")
changes.add("GET", SOURCE_OFFSETS, note="unchanged", until=is_empty)
changes.add("PATCH", SOURCE_OFFSETS, sink(PART, POSITION), note="set")
changes.add("GET", SOURCE_OFFSETS, note="set")
changes.add("PATCH", SOURCE_OFFSETS, sink(PART, None), note="removed")
changes.add("GET", SOURCE_OFFSETS, note="removed", until=is_empty)
changes.add("PATCH", SOURCE_OFFSETS, sink(PART, {"position": 8}), note="set again")
changes.add("DELETE", SOURCE_OFFSETS, note="all")
changes.add("GET", SOURCE_OFFSETS, note="none left", until=is_empty)
changes.add("DELETE", SOURCE_OFFSETS, note="nothing to remove")

# Topics.
for name in ("reader", "writer"):
    changes.add(
        "GET",
        f"/connectors/{name}/topics",
        note="used",
        until=lambda body: all(each["topics"] for each in body.values()),
    )
changes.add("PUT", "/connectors/reader/topics/reset")
changes.add(
    "GET",
    "/connectors/reader/topics",
    note="after a reset",
    until=lambda body: body == {"reader": {"topics": []}},
)
changes.add("PUT", "/connectors/idle-out/topics/reset", note="stopped")
changes.add("GET", "/connectors/idle-out/topics", note="after a reset")

# Names.
NAMES = ["a b", "ä€😀", "a+b", "a?b", "a#b", "a;b", "a:b", "a@b", "a&b=c", 'it\'s "so"', "x" * 150]
NAMES += ["a,b", "..", "...", "*", "<a>", "{b}", "$c", " trimmed ", "100%", "a%2Fb", "a/b", "a\\b"]
for name in NAMES:
    at = f"/connectors/{quote(name.strip(), safe='')}"
    changes.add(
        "POST",
        "/connectors",
        {"name": name, "config": SINK, "initial_state": "STOPPED"},
        note=f"name {name[:12]!r}",
    )
    changes.add("GET", at, note="name")
    changes.add("PUT", f"{at}/config", {**SINK, "tasks.max": "2"}, note="name")
    changes.add(
        "GET",
        f"{at}/status",
        note="name",
        settled={name.strip(): "STOPPED"} if not set("/%\\") & set(name) and name != ".." else {},
    )
    changes.add("DELETE", at, note="name")
    changes.add("GET", at, note="name, removed")
plain = "/connectors/put%2Bnew%20one"
changes.add("PUT", f"{plain}/config", {**SINK, "name": "put+new one"}, note="new by PUT")
changes.add("DELETE", plain)
changes.add("DELETE", plain, note="twice")

# Removed, and created with the same name.
changes.add("DELETE", "/connectors/idle-out")
changes.add(
    "GET", "/connectors/idle-out/status", note="removed", until=lambda body: "error_code" in body
)
changes.add("GET", "/connectors/idle-out/topics", note="removed")
changes.add("POST", "/connectors", {"name": "idle-out", "config": SINK}, note="again")
changes.add(
    "DELETE", "/connectors/idle-out", note="again", settled={"idle-out": "RUNNING 0:RUNNING"}
)
changes.add("GET", "/connectors", note="at the end", view=sorted)
