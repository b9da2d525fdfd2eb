"""The steps of one run, bound: they outlive its attempts.

A table that was read once is used on where it cannot be read again.
"""

from __future__ import annotations

from penstock.pipeline import BoundStep, Step


class Bindings:
    """Binds each step once."""

    def __init__(self) -> None:
        self._bound: list[BoundStep] = []
        self._process: object = None

    def bind(self, step: Step) -> BoundStep:
        """Return the step as this run has it."""
        known = next((bound for bound in self._bound if bound.step is step), None)
        if known is None:
            known = step.bind()
            self._bound.append(known)
        return known

    def use(self, process: object) -> None:
        """Forget what was read in another Java process than this one."""
        if process is not self._process:
            self.close()
            self._process = process

    def close(self) -> None:
        """Release what the steps hold."""
        while self._bound:
            self._bound.pop().close()
