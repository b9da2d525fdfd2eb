"""Where Penstock replies otherwise on purpose: titles in docs/connect.md, and the requests of each."""

from __future__ import annotations

from fnmatch import fnmatchcase

_FORM = "form: POST /connectors"
_SINK = "plugins: PUT /connector-plugins/FileStreamSink/config/validate"
_IDLE_SINK = "changes: PATCH /connectors/idle-out/offsets"
_IDLE_SOURCE = "changes: PATCH /connectors/idle%20in/offsets"

DIFFERENCES: dict[str, tuple[str, ...]] = {
    "Wrong requests": (
        "form: * (body '*",
        'form: * (body "*',
        "form: * (no body, no type)",
        f"{_FORM} (unknown member)",
        f"{_FORM} (config is *)",
        f"{_FORM} (no config)",
        f"{_FORM} (empty)",
        f"{_FORM} (nested config)",
        f"{_FORM} (list in config)",
        f"{_FORM} (name is a list)",
        f"{_FORM} (state *)",
        "form: PUT /connectors/fresh/config (nested)",
        "form: PUT * (Content-Type: nonsense)",
        "form: PUT * (Content-Type: )",
        "unknown: POST /connectors/x%20y/tasks",
        "unknown: PUT /connector-plugins/*Nope/config/validate",
        "unknown: PUT /connector-plugins/Nope/config/validate (empty)",
        "unknown: PUT /connector-plugins/JsonConverter/config/validate",
        "unknown: PUT /admin/loggers/org.example (level '')",
        "changes: PATCH /connectors/resting/config (nested)",
        "changes: PATCH /connectors/resting/config (unknown class)",
        *(
            f"{_IDLE_SINK} ({note})"
            for note in (
                "object",
                "text",
                "null in it",
                "more",
                "more inside",
                "text partition",
                "offset -1",
                "no such topic",
                "no such partition",
            )
        ),
        *(
            f"{_IDLE_SOURCE} ({note})"
            for note in (
                "no partition",
                "null partition",
                "text offset",
                "list offset",
                "null in it",
            )
        ),
    ),
    "Null": (f"{_FORM} (null in config)", f"{_SINK} (nulls)"),
    "More is accepted": (
        f"{_SINK} (empty)",
        "plugins: PUT * (by full name)",
        f"{_IDLE_SINK} (nothing to remove)",
    ),
    "The name of a connector": ("changes: PATCH /connectors/resting/config (another name)",),
    "Names": (
        "form: GET /connectors// (path)",
        "form: GET /connectors/reader//config (path)",
        "changes: * /connectors/100%25*",
        "changes: * /connectors/a%252Fb*",
        "changes: * /connectors/a%2Fb*",
        "changes: * /connectors/a%5Cb*",
        "changes: POST /connectors (name 'a/b')",
        "changes: POST /connectors (name 'a%2Fb')",
        "changes: POST /connectors (name '{b}')",
        "changes: GET /connectors (at the end)",
    ),
    "Other paths": (
        "form: GET /CONNECTORS (path)",
        "form: GET //connectors (path)",
        "form: GET /nope/nope (html)",
        "form: OPTIONS /connectors (JSON)",
    ),
    "The file connectors": (
        f"{_SINK} (no file)",
        f"{_SINK} (bad pattern)",
        f"{_SINK} (converter *)",
    ),
    "Positions": tuple(
        f"{_IDLE_SOURCE} ({note})"
        for note in ("wrong partition", "wrong offset", "negative", "text")
    ),
}


def difference_of(case: str) -> str | None:
    """Return the title of the difference that a request shows."""
    found = (title for title, names in DIFFERENCES.items() if _has(names, case))
    return next(found, None)


def _has(names: tuple[str, ...], case: str) -> bool:
    return any(fnmatchcase(case, name) for name in names)
