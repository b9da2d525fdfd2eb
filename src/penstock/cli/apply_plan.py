"""What `penstock apply` changes: computed from the server's differences, then done, each on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.api_client.server_client import ServerClient, in_path
from penstock.cli.definition_files import DefinitionFile
from penstock.errors import ConfigError, DefinitionError, PenstockError

Action = Literal["create", "update", "unchanged", "delete"]


@dataclass(frozen=True)
class Planned:
    """One deployment, and what happens to it; `revision` is the one that was compared with."""

    name: str
    action: Action
    revision: int = 0
    diff: str = ""
    text: str = field(default="", repr=False)
    file: str | None = None
    labels_before: Mapping[str, str] = field(default_factory=dict)
    labels_after: Mapping[str, str] = field(default_factory=dict)

    def shown(self, *, is_applied: bool) -> dict[str, Any]:
        """Return what --json prints."""
        return {
            "name": self.name,
            "action": self.action,
            "file": self.file,
            "diff": self.diff,
            "labels": dict(self.labels_after),
            "applied": is_applied and self.action != "unchanged",
        }


def plan(
    client: ServerClient,
    definitions: list[DefinitionFile],
    labels: Mapping[str, str],
    *,
    prune: bool,
) -> list[Planned]:
    """Return what has to be done; raise if any definition is not valid."""
    compared = client.each(lambda one: _compared(client, one, labels), definitions)
    errors = [
        _of_file(definition, outcome)
        for definition, outcome in zip(definitions, compared, strict=True)
        if isinstance(outcome, PenstockError)
    ]
    if errors:
        raise _together(errors)
    planned = [each for each in compared if isinstance(each, Planned)]
    if prune:
        planned += _pruned(client, {each.name for each in definitions}, labels)
    return planned


def carry_out(
    client: ServerClient, changes: list[Planned], labels: Mapping[str, str]
) -> list[PenstockError]:
    """Do it; return the errors of those that failed."""
    outcomes = client.each(lambda each: _done(client, each, labels), changes)
    return [each for each in outcomes if isinstance(each, PenstockError)]


def _compared(
    client: ServerClient, definition: DefinitionFile, labels: Mapping[str, str]
) -> Planned:
    path = f"/deployments/{in_path(definition.name)}/diff"
    reply = client.send("POST", path, _body(definition.text, labels)).data
    action: Action = "update" if reply["changed"] else "unchanged"
    return Planned(
        definition.name,
        action if reply["exists"] else "create",
        reply["revision"],
        reply["diff"],
        definition.text,
        str(definition.file),
        reply["labels"]["before"],
        reply["labels"]["after"],
    )


def _pruned(client: ServerClient, given: set[str], labels: Mapping[str, str]) -> list[Planned]:
    wanted = [f"{key}={value}" for key, value in labels.items()]
    return [
        Planned(
            each["name"],
            "delete",
            each["revision"],
            labels_before=each["labels"],
            labels_after=each["labels"],
        )
        for kind in ("pipeline", "flow")
        for each in client.items("/deployments", label=wanted, kind=kind)
        if each["name"] not in given and each["desired"] != "deleted"
    ]


def _done(client: ServerClient, planned: Planned, labels: Mapping[str, str]) -> None:
    path = f"/deployments/{in_path(planned.name)}"
    try:
        if planned.action == "delete":
            client.send("DELETE", path, headers={"If-Match": f'"{planned.revision}"'})
            return
        is_new = planned.action == "create"
        condition = {"If-None-Match": "*"} if is_new else {"If-Match": f'"{planned.revision}"'}
        client.send("PUT", path, _body(planned.text, labels), headers=condition)
    except PenstockError as error:
        raise _named(error, planned.name) from error


def _body(text: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {"definition": text, **({"labels": dict(labels)} if labels else {})}


def _of_file(definition: DefinitionFile, error: PenstockError) -> PenstockError:
    if isinstance(error, DefinitionError):
        return DefinitionError(error.problems, str(definition.file))
    return _named(error, str(definition.file))


def _named(error: PenstockError, name: str) -> PenstockError:
    """Return an error of the same kind whose text begins with a name."""
    if name in str(error):
        return error
    error.args = (f"{name}: {error}",)
    return error


def _together(errors: list[PenstockError]) -> PenstockError:
    """Return one error for all; where the server is away, that is the reason of all of them."""
    other = [error for error in errors if not isinstance(error, ConfigError)]
    if other:
        return other[0]
    texts = list(dict.fromkeys(str(error) for error in errors))
    return ConfigError("\n".join([*texts, "nothing was applied"]))
