"""What a worker's property file means, printed at the start, and the options that it gives a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.cli.output import say
from penstock.cli.serve_options import ServeOptions, merged
from penstock.connect.worker_settings import WorkerSettings


def report(settings: WorkerSettings) -> None:
    """Print what is stored elsewhere, once, and a warning for each key without effect."""
    if settings.notes:
        say(f"{settings.file.path}: these keys are accepted; Penstock does it in its own way:")
        for note, keys in grouped(settings.notes).items():
            say(f"  {', '.join(keys)}: {note}")
    for key, text in settings.warnings.items():
        say(f"warning: {settings.file.where(key)}: {key}: {text}")


def grouped(notes: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the keys of each note.

    >>> grouped({"a": "x", "b": "y", "c": "x"})
    {'x': ['a', 'c'], 'y': ['b']}
    """
    found: dict[str, list[str]] = {}
    for key, note in notes.items():
        found.setdefault(note, []).append(key)
    return found


def serve_options(settings: WorkerSettings, given: ServeOptions) -> ServeOptions:
    """Return the options of a server at the file's listener; others are given, or of penstock.yaml."""
    listener = settings.listener
    if listener is not None:
        given = replace(given, host=listener.host, port=listener.port)
    options = merged(given)
    if listener is not None and listener.tls and options.tls_cert is None:
        raise settings.file.wrong(
            "listeners",
            "the listener is https; give its certificate and key as PEM files: --tls-cert and --tls-key, "
            "or tls_cert and tls_key in the section server: of penstock.yaml",
        )
    return options
