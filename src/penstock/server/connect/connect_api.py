"""Connect's REST API: every path with its handler."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from fastapi import Request
from fastapi.responses import Response

from penstock.config import Connection
from penstock.connect.common_keys import VERSION
from penstock.connect.connector_class import Catalog
from penstock.connect.worker_defaults import WorkerDefaults
from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired, RunRow
from penstock.errors import ConfigError, PenstockError
from penstock.server.caller import caller, require
from penstock.server.connect import (
    connector_changes,
    connector_offsets,
    connector_views,
    plugin_replies,
)
from penstock.server.connect.active_topics import active_topics, topics_reset
from penstock.server.connect.cluster_ids import ClusterIds
from penstock.server.connect.connect_body import parse_body
from penstock.server.connect.connect_dispatch import (
    Reply,
    Route,
    chosen,
    path_parts,
    require_json,
    task_number,
)
from penstock.server.connect.connect_errors import ConnectError, as_connect
from penstock.server.connect.connector_store import Connector, ConnectorStore, ShownConfigs
from penstock.server.connect.logger_replies import Loggers
from penstock.server.connect.offered_converters import with_converters

_COMMIT = "26b251a451ce941d"
_WORKER = "127.0.0.1:8083"
_NO_ACCESS = Access("", ())
# What a part of a path may have in addition to letters and digits.
_IN_PATHS = "!$&'()*+,;=:@-._~"
HEALTHY = {
    "status": "healthy",
    "message": "Worker has completed startup and is ready to handle requests.",
}
"""The reply of a server that is up."""


@dataclass(frozen=True)
class Call:
    """One request: who sent it, its parameters and its body."""

    store: ControlStore
    access: Access
    catalog: Catalog
    loggers: Loggers
    query: Mapping[str, list[str]]
    text: bytes
    clusters: ClusterIds
    shown: ShownConfigs
    defaults: WorkerDefaults = field(default_factory=WorkerDefaults)

    def find_connection(self) -> Connection:
        """Return the cluster that connectors work with: the worker's, or the default connection."""
        return self.defaults.find_connection()

    @property
    def connectors(self) -> ConnectorStore:
        """Return the connectors that the caller may see."""
        return ConnectorStore(self.store, self.access, self.catalog, self.defaults, self.shown)

    @property
    def body(self) -> Any:
        """Return the body; raise 400 where it is not JSON."""
        return parse_body(self.text)

    def audit(self, action: str, target: str, **detail: Any) -> None:
        """Write a change to the audit log."""
        self.store.audit.add(self.access.user, action, target, **detail)

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false."""
        return (self.query.get(name) or ["false"])[-1].lower() == "true"


def root(call: Call) -> Reply:
    """Return the release, and the cluster that connectors work with: empty while it is not known.

    Clients ask for the release before anything else; what needs the cluster reports that there is none.
    """
    cluster = ""
    with suppress(ConfigError):
        cluster = call.clusters.id_of(call.find_connection())
    return Reply(body={"version": VERSION, "commit": _COMMIT, "kafka_cluster_id": cluster})


def health(_call: Call) -> Reply:
    """Reply as long as the process can."""
    return Reply(body=HEALTHY)


def list_connectors(call: Call) -> Reply:
    """Return the names; with `expand`, an object by name with what was asked for."""
    found = call.connectors.all()
    expand = call.query.get("expand")
    if expand is None:
        return Reply(body=[each.name for each in found])
    runs = call.connectors.runs()
    return Reply(body={each.name: _expanded(each, _run(each, runs), expand) for each in found})


def _run(connector: Connector, runs: Mapping[str, RunRow]) -> RunRow:
    return runs.get(connector.row.name) or RunRow(connector.row.name)


def _expanded(connector: Connector, run: RunRow, expand: list[str]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if "status" in expand:
        parts["status"] = connector_views.status(connector, run, _WORKER)
    if "info" in expand:
        parts["info"] = connector_views.info(connector, run)
    return parts


def create_connector(call: Call) -> Reply:
    """Make a connector."""
    made = connector_changes.create(call.connectors, call.body)
    return Reply(201, connector_views.info(made, None), _location(made.name))


def get_connector(call: Call, name: str) -> Reply:
    """Return a connector."""
    found = call.connectors.find(name)
    return Reply(body=connector_views.info(found, call.connectors.run(found)))


def delete_connector(call: Call, name: str) -> Reply:
    """Remove a connector; the positions of a source are kept."""
    connectors = call.connectors
    connectors.set_desired(connectors.find_to_change(name), Desired.DELETED)
    return Reply(204)


def get_config(call: Call, name: str) -> Reply:
    """Return a configuration."""
    return Reply(body=call.connectors.find(name).config)


def put_config(call: Call, name: str) -> Reply:
    """Replace a configuration, or make a connector of it."""
    made, is_new = connector_changes.put(call.connectors, name, call.body)
    if is_new:
        return Reply(201, connector_views.info(made, None), _location(name))
    return Reply(200, connector_views.info(made, call.connectors.run(made)))


def patch_config(call: Call, name: str) -> Reply:
    """Change some keys."""
    made = connector_changes.patch(call.connectors, name, call.body)
    return Reply(body=connector_views.info(made, call.connectors.run(made)))


def get_status(call: Call, name: str) -> Reply:
    """Return the states of a connector and its tasks."""
    connectors = call.connectors
    found = connectors.find(name, "status")
    return Reply(body=connector_views.status(found, connectors.run(found), _WORKER))


def get_tasks(call: Call, name: str) -> Reply:
    """Return the tasks."""
    found = call.connectors.find(name)
    return Reply(body=connector_views.tasks(found, call.connectors.run(found)))


def get_task_status(call: Call, name: str, task: str) -> Reply:
    """Return the state of one task."""
    connectors, number = call.connectors, task_number(task)
    wrong = ConnectError(404, f"No status found for task {name}-{number}")
    try:
        found = connectors.find(name, "status")
    except ConnectError:
        raise wrong from None
    run = connectors.run(found)
    if not 0 <= number < connector_views.task_count(found, run):
        raise wrong
    return Reply(body=connector_views.task_status(number, found, run, _WORKER))


def restart_task(call: Call, name: str, task: str) -> Reply:
    """Restart a task: all tasks of a connector are one pipeline, which is restarted."""
    connectors, number = call.connectors, task_number(task)
    found = connectors.find_to_change(name, "restart")
    if not 0 <= number < connector_views.task_count(found, connectors.run(found)):
        raise ConnectError(404, f"Unknown task: {name}-{number}")
    connectors.restart(found)
    return Reply(204)


def restart(call: Call, name: str) -> Reply:
    """Restart a connector, and its tasks where that is asked for."""
    connectors = call.connectors
    found = connectors.find_to_change(name, "restart")
    only_failed, with_tasks = call.flag("onlyFailed"), call.flag("includeTasks")
    run = connectors.run(found)
    shown = connector_views.status(found, run, _WORKER)
    parts = [shown["connector"], *(shown["tasks"] if with_tasks else [])]
    concerned = [
        part for part in parts if not only_failed or part["state"] == connector_views.FAILED
    ]
    if concerned:
        connectors.restart(found)
    if not (only_failed or with_tasks):
        return Reply(204)
    for part in concerned:
        part["state"] = connector_views.RESTARTING
    return Reply(202, shown)


def pause(call: Call, name: str) -> Reply:
    """Pause a connector."""
    return _asked(call, name, Desired.PAUSED, 202)


def resume(call: Call, name: str) -> Reply:
    """Let a connector go on."""
    return _asked(call, name, Desired.RUNNING, 202)


def stop(call: Call, name: str) -> Reply:
    """Stop a connector: its tasks end."""
    return _asked(call, name, Desired.STOPPED, 204)


def _asked(call: Call, name: str, desired: Desired, status: int) -> Reply:
    connectors = call.connectors
    connectors.set_desired(connectors.find_to_change(name, "state"), desired)
    return Reply(status)


def get_offsets(call: Call, name: str) -> Reply:
    """Return the offsets of a connector."""
    return Reply(body=connector_offsets.read(call.connectors.find(name), call.find_connection()))


def alter_offsets(call: Call, name: str) -> Reply:
    """Set offsets of a connector that is stopped."""
    wanted = connector_offsets.given_offsets(call.body)
    found = call.connectors.find_to_change(name)
    rest = call.connectors.is_at_rest(found)
    text = connector_offsets.alter(found, call.find_connection(), wanted, at_rest=rest)
    call.audit("connector.offsets.alter", found.row.name, partitions=len(wanted))
    return Reply(body={"message": text})


def reset_offsets(call: Call, name: str) -> Reply:
    """Remove all offsets of a connector that is stopped."""
    found = call.connectors.find_to_change(name)
    rest = call.connectors.is_at_rest(found)
    text = connector_offsets.reset(found, call.find_connection(), at_rest=rest)
    call.audit("connector.offsets.reset", found.row.name)
    return Reply(body={"message": text})


def get_topics(call: Call, name: str) -> Reply:
    """Return the topics that a connector has used; as in Connect, one that is unknown has none."""
    try:
        found = call.connectors.find(name)
    except ConnectError:
        return Reply(body={name: {"topics": []}})
    return Reply(body={name: {"topics": active_topics(call.store, found)}})


def reset_topics(call: Call, name: str) -> Reply:
    """Forget the topics that a connector has used."""
    try:
        found = call.connectors.find_to_change(name)
    except ConnectError:
        return Reply(202)
    with call.store.change():
        topics_reset(call.store, found, call.access.user)
        call.audit("connector.topics.reset", found.row.name)
    return Reply(202)


def refuse_internal(_call: Call, _name: str) -> Reply:
    """Refuse what only workers of Connect ask each other."""
    raise ConnectError(400, "Internal request missing required signature")


def list_plugins(call: Call) -> Reply:
    """Return the classes that there are; as in Connect, anything but `true` asks for all of them."""
    only = (call.query.get("connectorsOnly") or ["true"])[-1].lower() in ("true", "")
    listed = plugin_replies.plugins if only else plugin_replies.all_plugins
    return Reply(body=listed(call.catalog))


def plugin_keys(call: Call, plugin: str) -> Reply:
    """Return the keys of a class."""
    return Reply(body=plugin_replies.keys(call.catalog, plugin))


def validate_plugin(call: Call, plugin: str) -> Reply:
    """Check a configuration without storing it."""
    warned, worker = call.flag("warnings"), call.defaults.converters
    body = connector_changes.unmasked(call.connectors, call.body)
    checked = plugin_replies.validated(call.catalog, plugin, body, worker, with_warnings=warned)
    return Reply(body=with_converters(checked, worker))


def list_loggers(call: Call) -> Reply:
    """Return the levels of the loggers."""
    return Reply(body=call.loggers.all())


def get_logger(call: Call, name: str) -> Reply:
    """Return the level of a logger."""
    return Reply(body=call.loggers.one(name))


def set_logger(call: Call, name: str) -> Reply:
    """Set the level of a logger and of those below it."""
    require(call.access, Role.ADMIN)
    changed = call.loggers.set(name, call.body)
    shown = name if name.isprintable() else ascii(name)
    call.audit("logger.set", shown, level=str(call.body["level"]).upper())
    if (call.query.get("scope") or ["worker"])[-1].lower() == "cluster":
        return Reply(204)
    return Reply(body=changed)


def _location(name: str) -> dict[str, str]:
    return {"Location": f"/connectors/{quote(name, safe=_IN_PATHS)}"}


ROUTES: list[Route[Any]] = [
    Route("GET", "", root),
    Route("GET", "health", health, needs_no_access=True),
    Route("GET", "connectors", list_connectors),
    Route("POST", "connectors", create_connector),
    Route("GET", "connectors/{name}", get_connector),
    Route("DELETE", "connectors/{name}", delete_connector),
    Route("GET", "connectors/{name}/config", get_config),
    Route("PUT", "connectors/{name}/config", put_config),
    Route("PATCH", "connectors/{name}/config", patch_config),
    Route("GET", "connectors/{name}/status", get_status),
    Route("GET", "connectors/{name}/tasks", get_tasks),
    Route("POST", "connectors/{name}/tasks", refuse_internal),
    Route("PUT", "connectors/{name}/fence", refuse_internal),
    Route("GET", "connectors/{name}/tasks/{task}/status", get_task_status),
    Route("POST", "connectors/{name}/tasks/{task}/restart", restart_task),
    Route("POST", "connectors/{name}/restart", restart),
    Route("PUT", "connectors/{name}/pause", pause),
    Route("PUT", "connectors/{name}/resume", resume),
    Route("PUT", "connectors/{name}/stop", stop),
    Route("GET", "connectors/{name}/offsets", get_offsets),
    Route("PATCH", "connectors/{name}/offsets", alter_offsets),
    Route("DELETE", "connectors/{name}/offsets", reset_offsets),
    Route("GET", "connectors/{name}/topics", get_topics),
    Route("PUT", "connectors/{name}/topics/reset", reset_topics),
    Route("GET", "connector-plugins", list_plugins),
    Route("GET", "connector-plugins/{plugin}/config", plugin_keys),
    Route("PUT", "connector-plugins/{plugin}/config/validate", validate_plugin),
    Route("GET", "admin/loggers", list_loggers),
    Route("GET", "admin/loggers/{name}", get_logger),
    Route("PUT", "admin/loggers/{name}", set_logger),
]


class ConnectApi:
    """Answers requests of Connect's API."""

    def __init__(
        self, store: ControlStore, catalog: Catalog, defaults: WorkerDefaults | None = None
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._defaults = defaults or WorkerDefaults()
        self._loggers = Loggers()
        self._clusters = ClusterIds()
        self._shown = ShownConfigs()

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        try:
            route, arguments = chosen(ROUTES, request.method, path_parts(_raw(request)))
            text = await request.body()
            kind = request.headers.get("content-type")
            require_json(request.headers.get("accept"), kind, has_body=bool(text))
            call = Call(
                self._store,
                _NO_ACCESS if route.needs_no_access else caller(request),
                self._catalog,
                self._loggers,
                _parameters(request),
                text,
                self._clusters,
                self._shown,
                self._defaults,
            )
            reply = await to_thread.run_sync(lambda: route.handler(call, *arguments))
            return reply.response()
        except ConnectError as error:
            return error.reply()
        except PenstockError as error:
            return as_connect(error)


def _raw(request: Request) -> bytes:
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode()
    return raw


def _parameters(request: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in request.query_params.multi_items():
        found.setdefault(key, []).append(value)
    return found
