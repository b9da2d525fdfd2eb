"""A page with all routes, made from the OpenAPI document; it requests nothing, and runs no script."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
h3 { font: 600 15px ui-monospace, monospace; margin: 1.6rem 0 .2rem; overflow-wrap: anywhere }
.method { display: inline-block; min-width: 4.5rem; color: #06c }
table { border-collapse: collapse; margin: .5rem 0 }
td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top }
code { font-family: ui-monospace, monospace }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } .method { color: #6bf } }
"""
_HASH = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'"
"""The content security policy of the page: its own style, and nothing else."""


def openapi_page(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document.

    >>> page = openapi_page({"info": {"title": "<T>"}, "paths": {"/a": {"get": {"summary": "List"}}}})
    >>> "&lt;T&gt;" in page, "<b>List</b>" in page
    (True, True)
    """
    title = escape(document["info"]["title"])
    body = "\n".join(_sections(document))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f'<p>The OpenAPI document: <a href="/api/v1/openapi.json">/api/v1/openapi.json</a></p>\n'
        f"{body}\n</body></html>\n"
    )


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(_operation(path, method, operation, document))
    for tag, parts in groups.items():
        yield f"<h2>{escape(tag.capitalize())}</h2>"
        yield from parts


def _operation(
    path: str, method: str, operation: Mapping[str, Any], document: Mapping[str, Any]
) -> str:
    head = f'<h3><span class="method">{escape(method.upper())}</span>{escape(path)}</h3>'
    summary, more = (escape(operation.get(key, "")) for key in ("summary", "description"))
    text = f"<p><b>{summary}</b> {more}</p>"
    rows = [*_parameters(operation), *_bodies(operation, document)]
    table = f"<table>{''.join(rows)}</table>" if rows else ""
    return head + text + table


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    for each in operation.get("parameters", ()):
        name = each["name"] + ("" if each.get("required") else "?")
        yield _row(name, each["in"], _kind(each.get("schema", {})), each.get("description", ""))


def _bodies(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(content.get("schema", {}), document)
        yield _row(media, "body", _kind(schema), schema.get("description", ""))
        required = schema.get("required", ())
        for name, each in schema.get("properties", {}).items():
            shown = name + ("" if name in required else "?")
            yield _row(f"· {shown}", "", _kind(each), each.get("description", ""))


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found = document.get("components", {}).get("schemas", {}).get(name, schema)
    return found if isinstance(found, Mapping) else schema


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = [schema, *schema.get("anyOf", ())]
    return " or ".join(str(each["type"]) for each in kinds if "type" in each)


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
