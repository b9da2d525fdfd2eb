"""What has to exist before the first row: index templates, an index with its mapping, data streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.errors import ConfigError
from penstock.sinks.opensearch.bulk_reply import described

if TYPE_CHECKING:
    from penstock.sinks.opensearch.search_nodes import SearchNodes

_EXISTS = "resource_already_exists_exception"


def put_template(nodes: SearchNodes, name: str, template: dict[str, Any]) -> None:
    """Write an index template; it holds for indexes that are made from now on."""
    status, reply = nodes.ask("PUT", f"/_index_template/{quote(name, safe='')}", template)
    _require(status, reply, f"the index template {name!r}", "'index_template'")


def make_index(
    nodes: SearchNodes, name: str, mapping: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Make an index; where it exists, add the mapping's fields to it."""
    body = {"mappings": mapping, "settings": settings}
    wanted = {part: content for part, content in body.items() if content}
    path = f"/{quote(name, safe='')}"
    status, reply = nodes.ask("PUT", path, wanted)
    if not _is_known(status, reply):
        _require(status, reply, f"the index {name!r}", "'mapping' and 'settings'")
    elif mapping:
        status, reply = nodes.ask("PUT", f"{path}/_mapping", mapping)
        _require(status, reply, f"the mapping of the index {name!r}", "'mapping'")


def make_data_stream(nodes: SearchNodes, name: str) -> None:
    """Make a data stream where it does not exist."""
    status, reply = nodes.ask("PUT", f"/_data_stream/{quote(name, safe='')}")
    if not _is_known(status, reply):
        hint = "'index_template' (one with 'data_stream: {}' has to match the name)"
        _require(status, reply, f"the data stream {name!r}", hint)


def _is_known(status: int, reply: Any) -> bool:
    return status == 400 and isinstance(reply, dict) and _EXISTS in str(reply.get("error"))


def _require(status: int, reply: Any, what: str, hint: str) -> None:
    if 200 <= status < 300:
        return
    error = reply.get("error") if isinstance(reply, dict) else reply
    raise ConfigError(
        f"the search server refuses {what} (HTTP {status}): {described(error)[1]}; check {hint}"
    )
