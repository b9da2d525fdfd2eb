"""One access rule in plain words, checked before a broker sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from penstock.errors import ConfigError

CLUSTER = "kafka-cluster"
"""The name under which Kafka keeps what may be done to the cluster itself."""
UNKNOWN = "unknown"
"""What librdkafka makes of words that are younger than itself: shown, but not to be written."""


def _words(kind: Iterable[Enum], without: set[str]) -> dict[str, Any]:
    return {each.name.lower(): each for each in kind if each.name not in without}


OPERATIONS = _words(AclOperation, {"UNKNOWN", "ANY"})
PERMISSIONS = _words(AclPermissionType, {"UNKNOWN", "ANY"})
PATTERNS = _words(ResourcePatternType, {"UNKNOWN", "ANY", "MATCH"})
# librdkafka calls it broker, Kafka and everybody else cluster.
RESOURCES = _words(ResourceType, {"UNKNOWN", "ANY", "BROKER"}) | {"cluster": ResourceType.BROKER}


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One rule: this principal may, or may not, do this to these resources.

    Words may be written in any case, with '-' or '_' or neither.

    >>> Acl("User:alice", "Read", "topic", "trades")
    Acl(principal='User:alice', operation='read', resource='topic', name='trades', permission='allow', \
pattern='literal', host='*')
    >>> str(Acl("User:bob", "write", "topic", "trades-", "deny", "prefixed"))
    "User:bob from any host may not write topics whose names begin with 'trades-'"
    """

    principal: str
    operation: str
    resource: str
    name: str = ""
    permission: str = "allow"
    pattern: str = "literal"
    host: str = "*"

    def __post_init__(self) -> None:
        _put(self, "operation", word_of("operation", self.operation, OPERATIONS))
        _put(self, "resource", word_of("resource", self.resource, RESOURCES))
        _put(self, "permission", word_of("permission", self.permission, PERMISSIONS))
        _put(self, "pattern", word_of("pattern", self.pattern, PATTERNS))
        _put(self, "name", _named(self.resource, self.name))
        _check_principal(self.principal)

    def __str__(self) -> str:
        may = "may" if self.permission == "allow" else "may not"
        host = "any host" if self.host == "*" else self.host
        what = f"{self.resource}s" if self.pattern == "prefixed" else self.resource
        which = (
            f"whose names begin with {self.name!r}" if what != self.resource else repr(self.name)
        )
        return f"{self.principal} from {host} {may} {self.operation} {what} {which}"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs are meant: those that agree with every word that is given.

    The pattern `match` means every rule that touches the name: its own, those of its prefixes,
    and those for all names ('*').
    """

    principal: str | None = None
    operation: str | None = None
    resource: str | None = None
    name: str | None = None
    permission: str | None = None
    pattern: str | None = None
    host: str | None = None


def word_of(what: str, given: str, allowed: Mapping[str, object]) -> str:
    """The word that was meant, as it is kept; an error that lists what is allowed otherwise."""
    if given.lower() == UNKNOWN:
        return UNKNOWN
    plain = {word.replace("_", ""): word for word in allowed}
    found = plain.get(given.lower().replace("_", "").replace("-", ""))
    if found is None:
        raise ConfigError(
            f"{given!r} is no {what} of an ACL; allowed: {', '.join(sorted(allowed))}"
        )
    return found


def _named(resource: str, name: str) -> str:
    if resource == "cluster":
        if name not in ("", CLUSTER):
            raise ConfigError(f"an ACL for the cluster has the name {CLUSTER!r}, not {name!r}")
        return CLUSTER
    if not name:
        raise ConfigError(f"an ACL for a {resource} needs its name; '*' means every {resource}")
    return name


def _check_principal(principal: str) -> None:
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ConfigError(
            f"{principal!r} is no principal: write TYPE:NAME, for example User:alice; "
            "User:* means everybody"
        )


def _put(acl: Acl, field: str, value: str) -> None:
    object.__setattr__(acl, field, value)
