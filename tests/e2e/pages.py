"""Reads the blocks of a Markdown page that a reader would run: Python, and commands with their output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"```(\w*)\s*$")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
_SAVED = re.compile(r"[Ss]ave (?:this|these lines) as `([^`]+)`")
_COMMAND = re.compile(r"(?:\$ )?(?:penstock|make|pip|python|echo|env/|[A-Z]+=|kafka-[\w.-]+)[ $(]?")


@dataclass(frozen=True)
class Block:
    """One block of a page. `kind` is python, console, or file where the page says to save it."""

    page: str
    line: int
    kind: str
    text: str
    saved_as: str | None = None
    not_run: str | None = None

    @property
    def place(self) -> str:
        """Where it is, as a person finds it."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[tuple[str, str | None]]:
        """Give the commands, each with the output that is shown after it; None where none is.

        With `$` before the commands every other line is output; without, every line is a command.
        """
        lines = self.text.replace("\\\n", " ").splitlines()
        shown = any(line.startswith("$ ") for line in lines)
        command, output = "", list[str]()
        for line in (line if shown else f"$ {line}" for line in lines):
            if not line.startswith("$ "):
                output.append(line)
                continue
            yield from [(command, "\n".join(output).strip() or None)] if command else []
            command, output = line[2:].strip(), []
        yield from [(command, "\n".join(output).strip() or None)] if command else []


def blocks(page: str, text: str) -> Iterator[Block]:
    """Give the blocks of a page that are to be run or saved, in their order."""
    for line, language, body, before in _code(text):
        marker = next(filter(None, map(_NOT_RUN.match, before[-1:])), None)
        saved = _SAVED.search(" ".join(each for each in before))
        kind = _kind(language, body, saved is not None)
        if kind:
            name = saved[1] if saved else None
            yield Block(page, line, kind, body, name, marker[1] if marker else None)


def _kind(language: str, body: str, saved: bool) -> str | None:
    if saved:
        return "file"
    if language in ("python", "console"):
        return language
    if language == "yaml" and re.match(r"name: (\S+)", body):
        return "file"
    return "console" if language == "" and _COMMAND.match(body) else None


def _code(text: str) -> Iterator[tuple[int, str, str, list[str]]]:
    """Give each block of code: its line, its language, its text, and the lines of text before it."""
    lines = [*text.splitlines(), ""]
    before: list[str] = []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        end = at + 1
        if fence:
            while lines[end].rstrip() != "```":
                end += 1
            yield at + 1, fence[1] or "text", "\n".join(lines[at + 1 : end]) + "\n", before
            before = []
            end += 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith("    ")):
                end += 1
            body = "\n".join(line[4:] for line in lines[at:end]).rstrip() + "\n"
            yield at + 1, "", body, before
            before = []
        elif lines[at].strip():
            before = [*before, lines[at]] if lines[at - 1].strip() or not at else [lines[at]]
        at = end


def pages(root: Path) -> list[Path]:
    """Return the pages whose blocks are run: the README and everything in docs."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]
