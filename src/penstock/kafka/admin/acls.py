"""Who may do what on the cluster: access rules in plain words; listed, added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from penstock.errors import ConfigError, PenstockError, TerminalError
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.kafka_errors import code_of

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
_ALLOWED = {
    "operation": OPERATIONS,
    "resource": RESOURCES,
    "permission": PERMISSIONS,
    "pattern": PATTERNS,
}
_SOON = 2.0


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
        for what, allowed in _ALLOWED.items():
            object.__setattr__(self, what, word_of(what, getattr(self, what), allowed))
        object.__setattr__(self, "name", _named(self.resource, self.name))
        kind, _, name = self.principal.partition(":")
        if not (kind and name):
            raise ConfigError(
                f"{self.principal!r} is not a principal: write TYPE:NAME, for example User:alice; "
                "User:* means everybody"
            )

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
    """Return the word that was meant, as it is stored; else raise an error that lists what is allowed."""
    if given.lower() == UNKNOWN:
        return UNKNOWN
    plain = {word.replace("_", ""): word for word in allowed}
    known = plain.get(given.lower().replace("_", "").replace("-", ""))
    if known is None:
        raise ConfigError(
            f"{given!r} is not a valid {what} of an ACL; allowed: {', '.join(sorted(allowed))}"
        )
    return known


def _named(resource: str, name: str) -> str:
    if resource == "cluster":
        if name not in ("", CLUSTER):
            raise ConfigError(f"an ACL for the cluster has the name {CLUSTER!r}, not {name!r}")
        return CLUSTER
    if not name:
        raise ConfigError(f"an ACL for a {resource} needs its name; '*' means every {resource}")
    return name


def list_acls(ask: AdminCalls, wanted: AclFilter) -> list[Acl]:
    """Return the rules that a filter means, in order."""
    rules = _listed(ask, wanted)
    if not rules:
        _require_readable(ask)
    return rules


def create_acls(ask: AdminCalls, acls: Iterable[Acl]) -> None:
    """Let rules hold; one that holds already is ignored."""
    rules = set(acls)
    if rules:
        wanted = [_binding(AclBinding, rule) for rule in sorted(rules)]
        _change(ask, "adding ACLs", ask.client.create_acls, wanted)
        # The controller has taken them; brokers learn of them a moment later.
        ask.settles(lambda: rules <= {*_listed(ask, AclFilter())}, _SOON)


def delete_acls(ask: AdminCalls, acls: Iterable[Acl]) -> list[Acl]:
    """Let exactly these rules hold no longer; give those that did."""
    rules = set(acls)
    if not rules:
        return []
    wanted = [_binding(AclBindingFilter, rule) for rule in sorted(rules)]
    answer = _change(ask, "removing ACLs", ask.client.delete_acls, wanted)
    ask.settles(lambda: rules.isdisjoint(_listed(ask, AclFilter())), _SOON)
    return sorted(_acl(gone) for removed in answer.values() for gone in removed)


def _listed(ask: AdminCalls, wanted: AclFilter) -> list[Acl]:
    answer = ask.one("listing ACLs", ask.client.describe_acls, _filter(wanted))
    return sorted(map(_acl, answer))


def _change(ask: AdminCalls, doing: str, call: Any, wanted: list[Any]) -> dict[Any, Any]:
    try:
        return ask.each(doing, call, wanted)
    except PenstockError as error:
        if code_of(error) == KafkaError.SECURITY_DISABLED:
            raise _no_authorizer() from error
        raise


def _no_authorizer() -> TerminalError:
    return TerminalError(
        "this cluster keeps no ACLs: its brokers run without an authorizer; "
        "set authorizer.class.name in their properties"
    )


def _require_readable(ask: AdminCalls) -> None:
    """Tell "there are none" from "you may not see them": librdkafka gives an empty list for both."""
    call = partial(ask.client.describe_cluster, include_authorized_operations=True)
    answer = ask.one("listing ACLs", call)
    if AclOperation.DESCRIBE not in (answer.authorized_operations or ()):
        raise TerminalError(
            "listing ACLs: the broker does not allow it to this user; ask for an ACL "
            "(describe cluster), or use a connection with another user"
        )
    if _authorizer(ask, answer.nodes[0].id) == "":
        raise _no_authorizer()


def _authorizer(ask: AdminCalls, broker: int) -> str | None:
    """Return the class that decides on one broker; None where this user may not know it."""
    where = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    hidden = KafkaError.CLUSTER_AUTHORIZATION_FAILED
    answer = ask.each("listing ACLs", ask.client.describe_configs, [where], quiet=hidden)
    entry = next((entries.get("authorizer.class.name") for entries in answer.values()), None)
    return None if entry is None else entry.value or ""


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
    return anything if given is None else allowed[word_of(what, given, allowed)]
