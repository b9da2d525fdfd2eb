"""A pipeline definition as YAML text, from columns that were inferred from a sample."""

from __future__ import annotations

import re

import yaml

from penstock.cli.output import counted
from penstock.decode.inference import Inferred
from penstock.pipeline.columns import Field

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_REST = "rest"
_WIDE = 2**31


def definition_text(
    topic: str, inferred: Inferred, connection: str | None = None, brokers: str | None = None
) -> str:
    """Return the definition of a pipeline from the topic into files, with remarks as comments.

    >>> from penstock.decode.inference import infer
    >>> print(definition_text("trades", infer([b'{"symbol": "A", "x": null}'])), end="")
    # Inferred from 1 record of the topic trades.
    name: trades-to-files
    source:
      kafka: trades
    decode:
      json:
        schema:
          symbol: string
          x: string  # only null in the sample
    sink:
      files: out/trades
    """
    name = _NOT_IN_NAMES.sub("-", topic).strip("-") or "topic"
    lines = [
        _heading(topic, inferred),
        f"name: {_scalar(f'{name}-to-files')}",
        *([f"connection: {_scalar(connection)}"] if connection else []),
        *([f"connection:\n  bootstrap.servers: {_scalar(brokers)}"] if brokers else []),
        f"source:\n  kafka: {_scalar(topic)}",
        "decode:\n  json:\n    schema:",
        *(_column(column, inferred.remarks) for column in inferred.columns),
        *_rest(inferred),
        f"sink:\n  files: {_scalar(f'out/{name}')}",
    ]
    return "\n".join(lines) + "\n"


def _heading(topic: str, inferred: Inferred) -> str:
    count = counted(inferred.records, "record")
    failed = f"; {inferred.failed} of them are not JSON objects" if inferred.failed else ""
    return f"# Inferred from {count} of the topic {_comment(topic)}{failed}."


def _column(column: Field, remarks: dict[str, str]) -> str:
    own = [
        remark if path == column.name else f"{path}: {remark}"
        for path, remark in remarks.items()
        if path == column.name or path.startswith(tuple(f"{column.name}{sign}" for sign in ".[{"))
    ]
    comment = f"  # {_comment('; '.join(own))}" if own else ""
    return f"      {_scalar(column.name)}: {_scalar(column.type.ddl())}{comment}"


def _rest(inferred: Inferred) -> list[str]:
    if not inferred.left_out:
        return []
    taken = {column.name.lower() for column in inferred.columns}
    name = _REST
    while name in taken:
        name += "_"
    reasons = [
        f"    # {_comment(path)}: {_comment(inferred.remarks[path])}"
        for path in inferred.left_out
        if path in inferred.remarks
    ]
    return [*reasons, f"    rest: {name}  # the JSON text of the fields that were left out"]


def _scalar(text: str) -> str:
    """Return a text as YAML writes it on one line, in quotes where it needs them."""
    written = yaml.safe_dump(text, width=_WIDE, allow_unicode=True, default_style=None)
    return written.removesuffix("\n").removesuffix("\n...")


def _comment(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)
