"""Short ways to run steps over messages."""

from __future__ import annotations

from typing import Any

from penstock.flows import CompiledFlow, Flow, Message, RunResult
from penstock.flows.testing import CannedReplies


def flow_of(*steps: Any, **options: Any) -> Flow:
    given = {"name": "t", "trigger": {"kafka": "orders"}, "steps": list(steps), **options}
    return Flow(**given)


def ran(
    *steps: Any, payloads: list[Any], canned: CannedReplies | None = None, **options: Any
) -> RunResult:
    flow = flow_of(*steps, **options)
    canned = canned or CannedReplies()
    canned.names = {path: step.id or path for path, step in flow.all_steps()}
    messages = [
        each
        if isinstance(each, Message)
        else Message(each, {"topic": "orders", "partition": 0, "offset": n})
        for n, each in enumerate(payloads)
    ]
    return CompiledFlow(flow).run(messages, canned.systems(), traces=True)


def payloads(result: RunResult) -> list[Any]:
    return [message.payload for message in result.results]


def codes(result: RunResult) -> list[tuple[str, str]]:
    return [(letter.from_step, letter.error["Code"]) for letter in result.dead_letters]
