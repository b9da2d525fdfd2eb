"""Which connectors of a cluster can run here, and what of their configurations has no effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.config.secrets import is_secret_key
from penstock.connect.common_keys import CONNECTOR_CLASS, NAME
from penstock.connect.config_definition import HIDDEN
from penstock.connect.config_providers import is_resolvable, references
from penstock.connect.takeover.connect_cluster import STOPPED, ConnectCluster, Listed
from penstock.connect.worker_defaults import CONVERTERS, WorkerDefaults
from penstock.errors import ConfigError, NotFoundError

_MASKED = re.compile(r"\*{3,}|" + re.escape(HIDDEN))
_OF_PARTS = (*(f"{each}." for each in CONVERTERS), "transforms.", "predicates.", "topic.creation.")
_OVERRIDES = ("producer.override.", "consumer.override.", "admin.override.")


@dataclass(frozen=True)
class Assessment:
    """A connector there, the configuration that it gets here, and what was found."""

    there: Listed
    config: dict[str, str]
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    exists: bool = False

    @property
    def can_run(self) -> bool:
        """Return whether it can be taken over."""
        return not self.problems


def assess(
    there: Listed,
    here: ConnectCluster,
    known: Mapping[str, Listed],
    worker: WorkerDefaults | None = None,
) -> Assessment:
    """Check a connector with the server that is to run it; `known` are the connectors that it has.

    `worker` has the converters and config providers of the workers there, which the API does not show.
    """
    config = {**(worker or WorkerDefaults()).completed(there.config), NAME: there.name}
    providers = (worker or WorkerDefaults()).providers
    problems = [*_unreadable(config, providers), *_without_converters(config, worker)]
    remarks: list[str] = []
    if not there.class_name:
        problems.append(f"it has no {CONNECTOR_CLASS}")
    else:
        _validate(here, config, problems, remarks)
    other = known.get(there.name)
    if other is not None:
        problems += _obstacles(other, config)
    return Assessment(there, config, tuple(problems), tuple(remarks), other is not None)


def _validate(
    here: ConnectCluster, config: dict[str, str], problems: list[str], remarks: list[str]
) -> None:
    try:
        found = here.validation(config)
    except (ConfigError, NotFoundError) as error:
        name = config[CONNECTOR_CLASS]
        is_unknown = "Failed to find any class" in str(error)
        problems.append(f"the class {name} is not here" if is_unknown else str(error))
        return
    problems += [error for each in found["configs"] for error in each["value"]["errors"]]
    if without := keys_without_effect(config, found):
        remarks.append(f"without effect here: {', '.join(without)}")


def keys_without_effect(config: Mapping[str, str], validation: Mapping[str, Any]) -> list[str]:
    """Return the keys that change nothing here: those of the reply's warnings, or unknown ones.

    >>> keys_without_effect({"a": "1", "transforms.x.type": "Y"}, {"configs": []})
    ['a']
    """
    if "warnings" in validation:
        return [*dict.fromkeys(each["name"] for each in validation["warnings"])]
    known = {each["value"]["name"] for each in validation["configs"]}
    return [key for key in config if key not in known and not key.startswith(_OF_PARTS)]


def _unreadable(config: Mapping[str, str], providers: Mapping[str, str]) -> list[str]:
    """Return secrets that are not in the configuration, and references that have no value here."""
    found = [
        f"{key} refers to {text}: there is no provider {provider!r} here; allowed: "
        f"{', '.join(name for name in providers if name != 'dir')}"
        for key, text, provider in references(config)
        if not is_resolvable(text, providers)
    ]
    return found + [
        f"{key} is masked there; create the connector here from a file that has its value"
        for key, value in config.items()
        if _MASKED.fullmatch(value.strip()) and (is_secret_key(key) or value.strip() == HIDDEN)
    ]


def _without_converters(config: Mapping[str, str], worker: WorkerDefaults | None) -> list[str]:
    missing = [key for key in CONVERTERS[:2] if not config.get(key)]
    if not missing or worker is not None:
        return []
    return [
        f"it names no {' and no '.join(missing)}, and the API does not show those of its worker; give "
        "the property file of the workers there with --worker FILE"
    ]


def _obstacles(other: Listed, config: Mapping[str, str]) -> list[str]:
    shown = {key: value for key, value in other.config.items() if not is_secret_key(key)}
    wanted = {key: value for key, value in config.items() if not is_secret_key(key)}
    if shown != wanted:
        return ["a connector of this name is here already, with another configuration"]
    if other.state != STOPPED:
        return [f"it is here already, and its state is {other.state}"]
    return []
