"""Retired words stay out of code, tests and documents: readers search for the terms of the field.

The table in CONTRIBUTING ("Glossary") has the terms to use. A pattern here matches only the retired sense
of a word, not its ordinary use.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Retired words, in any case, and what to write instead.
WORDS = {
    r"(?<![a-z])told(?![a-z])": "report, reply, message, log; a summary; 'configured to'",
    r"\bmade[ _]again\b": "recreated",
    r"\b(is|are|was|were|be|stands?|what) in the way\b|\bin the way of\b": "X prevents Y",
    r"\banew\b": "again; to start over",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bfor ever\b": "forever; without a limit",
    r"\b(stands|stood|stand) (at|behind|beside|before|still|there)\b": "is at, after, next to",
    r"\b(after|for|at most|up to|than|to|wait|every|of) so (many|long)\b": "that many; this long",
    r"\b(no|some)body\b": "no one; name the actor: a user, a process, a caller",
    r"\bbeside\b": "next to; in addition to",
    r"\b(cluster|object|stands?|bytes|offset|values?|everything|URI|what is) behind\b": "of, after, at",
    r"\b(what|everything|which|whether it|it) is there\b": "the noun: existing topics, cached jars",
    r"\bwhat (is|was) (kept|left behind)\b": "the noun: stored jobs, leftovers",
    r"\bhand(s|ed|ing)?[ -](over|out)s?\b": "pass; deliver; a batch",
    r"\bwithout a word\b": "silently",
    r"\bput(s|ting)? away\b|\bbur(y|ies|ied) (a|the|records)\b": "write dead letters",
    r"(?<![Tt]here )\b(is|are) no (?!\w+er\b)(valid|JSON|UUID|UTF|text|number|integer|decimal|column|sink"
    r"|format|value|partition|vector|such|place|error|bytes)\b": "is not a ...",
    r"\bsince \d+ (seconds?|minutes?|ms|s)\b": "for 30 seconds",
    r"\bthe arbiter\b": "the reference decoder",
}

# Retired names of classes and modules, and their successors.
NAMES = {
    r"\b(Bystander|Asker|Keeper|Arbiter|Letterbox|Phrases|Kinds|Kept)\b": (
        "OffsetClient, AdminCalls, Supervisor, ReferenceDecoder, DeadLetterStore, SqlDialect, "
        "TypeMap, JobRow"
    ),
    r"\bclass (Following|Found|Taken|Place)\b": (
        "RealTimeMonitor, Resumption, BatchRanges, ResumePoint"
    ),
    r"\b(jobs|cli|engine|pipeline|sinks)[./](keeping|letter_choice|looking|letters|moving|told)\b": (
        "serialization, dead_letter_choice, preflight, dead_letters, topic_watcher, summary"
    ),
}


@cache
def texts() -> dict[str, str]:
    """Return all files of the repository that people read, by their path."""
    folders = ("src", "tests", "docs", "examples", "scripts")
    files = [*ROOT.glob("*.md"), *(file for name in folders for file in (ROOT / name).rglob("*"))]
    found = {file.relative_to(ROOT).as_posix(): file for file in sorted(files)}
    return {
        path: file.read_text(encoding="utf-8")
        for path, file in found.items()
        if (file.suffix in (".py", ".md", ".yaml") or path.startswith("scripts/"))
        and file.is_file()
        and file != Path(__file__)
    }


@pytest.mark.parametrize("pattern", [*WORDS, *NAMES])
def test_retired_words_and_names_are_not_used(pattern: str) -> None:
    retired = re.compile(pattern, re.IGNORECASE if pattern in WORDS else 0)

    uses = [
        f"{path}:{text.count(chr(10), 0, use.start()) + 1}: {use[0]}"
        for path, text in texts().items()
        for use in retired.finditer(text)
    ]

    assert uses == [], f"retired: {pattern}; write instead: {(WORDS | NAMES)[pattern]}"
