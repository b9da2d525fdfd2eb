"""Commands that are imported when they are called, so that `penstock --help` stays fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Entry(NamedTuple):
    """The location of a command ("module:attribute": a Typer app or a function), and its help line.

    A client command also accepts the options that select the cluster after its own name.
    """

    where: str
    help: str
    client: bool = False


def load(where: str) -> Any:
    """Return the object at "module:attribute"."""
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


class LazyCommand(TyperCommand):
    """A placeholder in the list of commands that loads the real command when called."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.help)
        self.entry = entry

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the context of the real command, which replaces the placeholder from now on."""
        if self.entry.client and parent is not None and parent.obj is not None:
            args = parent.obj.take(args)
        return self.real().make_context(info_name, args, parent, **extra)

    def real(self) -> Any:
        """Return the command itself, made from an app or from a plain function."""
        loaded: typer.Typer | Callable[..., Any] = load(self.entry.where)
        if isinstance(loaded, typer.Typer):
            return get_group(loaded)
        app = typer.Typer(add_completion=False)
        app.command(self.name)(loaded)
        return get_command(app)


def group_of(entries: Mapping[str, Entry]) -> type[TyperGroup]:
    """Return a group with these commands, without those whose module is not installed."""

    class LazyGroup(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            for name, entry in entries.items():
                if find_spec(entry.where.partition(":")[0]):
                    self.add_command(LazyCommand(name, entry))

    return LazyGroup
