"""Checks that need no user: is this request for this server, and not one that a web page forged?

A page of another site can send requests from the browser of someone who can reach the server. It cannot
choose the headers Host, Origin and Sec-Fetch-Site, and cannot send JSON or YAML without asking first.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from penstock.server.problems import RefusedRequestError
from penstock.server.request_head import RequestHead, host_and_port
from penstock.server.settings import ServerSettings

_BODIES = (
    "application/json",
    "application/merge-patch+json",
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
)


def check_host(head: RequestHead, settings: ServerSettings) -> None:
    """Refuse a request for another name: a page whose name was pointed at this machine sends those."""
    given = head.get("host") or ""
    found = host_and_port(given, "http")
    if found and ("*" in settings.allowed_hosts or found[0] in settings.hosts):
        return
    allowed = ", ".join(sorted(settings.hosts))
    raise RefusedRequestError(
        421, f"the header Host is {given[:100]!r}; allowed: {allowed}; others must be configured"
    )


def check_origin(head: RequestHead, settings: ServerSettings) -> None:
    """Refuse a request that a web page of another origin sent."""
    origin = head.get("origin")
    if origin is not None and not _is_own(origin, head, settings):
        raise RefusedRequestError(
            403,
            f"the request was sent by a web page of {origin[:100]!r}, which is not this server's; "
            "other origins must be configured",
        )
    site = head.get("sec-fetch-site")
    if origin is None and site in ("cross-site", "same-site") and not _is_visit(head):
        raise RefusedRequestError(403, "the request was sent by a web page of another site")


def _is_visit(head: RequestHead) -> bool:
    """Return whether a person follows a link, which changes nothing and shows the page nothing."""
    return not head.changes and head.get("sec-fetch-mode") == "navigate"


def _is_own(origin: str, head: RequestHead, settings: ServerSettings) -> bool:
    if origin in settings.allowed_origins:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _schemes(settings):
        return False
    called = host_and_port(head.get("host") or "", parts.scheme)
    return called is not None and host_and_port(parts.netloc, parts.scheme) == called


def _schemes(settings: ServerSettings) -> tuple[str, ...]:
    """Return the schemes of the server's own pages; what is in front of a proxy is not known."""
    if settings.behind_proxy:
        return ("http", "https")
    return ("https",) if settings.tls else ("http",)


def check_body_type(head: RequestHead) -> None:
    """Refuse a change whose body a form of another site could have: only JSON and YAML are read."""
    given = head.get("content-type")
    if not head.changes or (given is None and not _has_body(head)):
        return
    kind = (given or "").partition(";")[0].strip().lower()
    if kind not in _BODIES:
        raise RefusedRequestError(
            415,
            f"the Content-Type is {(given or 'missing')[:100]!r}; allowed: application/json, "
            "application/yaml",
        )


def _has_body(head: RequestHead) -> bool:
    return (
        head.get("content-length") not in (None, "0") or head.get("transfer-encoding") is not None
    )


def client_address(peer: str, head: RequestHead, settings: ServerSettings) -> str:
    """Return the address that failed logins are counted for: what the nearest proxy saw."""
    forwarded = head.get("x-forwarded-for") if settings.behind_proxy else None
    return forwarded.rpartition(",")[2].strip()[:100] if forwarded else peer
