"""Who may do what: ACLs in plain words, checked before the broker sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from penstock.errors import ConfigError, PenstockError, TerminalError
from penstock.kafka.asking import Asker, code_of

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
        _put(self, "operation", _word("operation", self.operation, OPERATIONS))
        _put(self, "resource", _word("resource", self.resource, RESOURCES))
        _put(self, "permission", _word("permission", self.permission, PERMISSIONS))
        _put(self, "pattern", _word("pattern", self.pattern, PATTERNS))
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


def list_acls(ask: Asker, wanted: AclFilter) -> list[Acl]:
    """The rules that a filter means, in order."""
    try:
        told = ask.one("listing ACLs", ask.client.describe_acls, _filter(wanted))
    except PenstockError as error:
        raise _explained(error) from error
    return sorted(map(_acl, told))


def create_acls(ask: Asker, acls: Iterable[Acl]) -> None:
    """Let rules hold; one that holds already is no error."""
    wanted = [_binding(AclBinding, acl) for acl in dict.fromkeys(acls)]
    if wanted:
        _change(ask, "adding ACLs", ask.client.create_acls, wanted)


def delete_acls(ask: Asker, acls: Iterable[Acl]) -> list[Acl]:
    """Let exactly these rules hold no longer; give those that did."""
    wanted = [_binding(AclBindingFilter, acl) for acl in dict.fromkeys(acls)]
    told = _change(ask, "removing ACLs", ask.client.delete_acls, wanted) if wanted else {}
    return sorted(_acl(gone) for removed in told.values() for gone in removed)


def _change(ask: Asker, doing: str, call: Any, wanted: list[Any]) -> dict[Any, Any]:
    try:
        return ask.each(doing, call, wanted)
    except PenstockError as error:
        raise _explained(error) from error


def _explained(error: PenstockError) -> PenstockError:
    if code_of(error) != KafkaError.SECURITY_DISABLED:
        return error
    return TerminalError(
        "this cluster keeps no ACLs: its brokers run without an authorizer; "
        "set authorizer.class.name in their properties"
    )


def _binding(kind: Any, acl: Acl) -> Any:
    if UNKNOWN in (acl.resource, acl.operation, acl.permission, acl.pattern):
        raise ConfigError(
            f"this ACL has a word that librdkafka does not know, so use kafka-acls: {acl}"
        )
    return kind(
        RESOURCES[acl.resource],
        acl.name,
        PATTERNS[acl.pattern],
        acl.principal,
        acl.host,
        OPERATIONS[acl.operation],
        PERMISSIONS[acl.permission],
    )


def _filter(wanted: AclFilter) -> Any:
    patterns = PATTERNS | {"match": ResourcePatternType.MATCH}
    # None means any name, though the types of confluent_kafka do not say so.
    make: Any = AclBindingFilter
    return make(
        _or_any("resource", wanted.resource, RESOURCES, ResourceType.ANY),
        wanted.name,
        _or_any("pattern", wanted.pattern, patterns, ResourcePatternType.ANY),
        wanted.principal,
        wanted.host,
        _or_any("operation", wanted.operation, OPERATIONS, AclOperation.ANY),
        _or_any("permission", wanted.permission, PERMISSIONS, AclPermissionType.ANY),
    )


def _acl(binding: Any) -> Acl:
    return Acl(
        principal=binding.principal,
        operation=binding.operation.name,
        resource="cluster" if binding.restype is ResourceType.BROKER else binding.restype.name,
        name=binding.name,
        permission=binding.permission_type.name,
        pattern=binding.resource_pattern_type.name,
        host=binding.host,
    )


def _or_any(what: str, given: str | None, allowed: Mapping[str, Any], anything: Enum) -> Any:
    return anything if given is None else allowed[_word(what, given, allowed)]


def _word(what: str, given: str, allowed: Mapping[str, object]) -> str:
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
