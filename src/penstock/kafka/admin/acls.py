"""Who may do what on the cluster: its rules listed, added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from penstock.kafka.admin.asking import Asker, code_of
from penstock.kafka.admin.rules import (
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    RESOURCES,
    UNKNOWN,
    Acl,
    AclFilter,
    word_of,
)

_SOON = 2.0


def list_acls(ask: Asker, wanted: AclFilter) -> list[Acl]:
    """The rules that a filter means, in order."""
    found = _listed(ask, wanted)
    if not found:
        _require_readable(ask)
    return found


def create_acls(ask: Asker, acls: Iterable[Acl]) -> None:
    """Let rules hold; one that holds already is no error."""
    rules = set(acls)
    if rules:
        _change(ask, "adding ACLs", ask.client.create_acls, _bindings(AclBinding, rules))
        # The controller has taken them; brokers learn of them a moment later.
        ask.settles(lambda: rules <= {*_listed(ask, AclFilter())}, _SOON)


def delete_acls(ask: Asker, acls: Iterable[Acl]) -> list[Acl]:
    """Let exactly these rules hold no longer; give those that did."""
    rules = set(acls)
    if not rules:
        return []
    call = ask.client.delete_acls
    told = _change(ask, "removing ACLs", call, _bindings(AclBindingFilter, rules))
    ask.settles(lambda: rules.isdisjoint(_listed(ask, AclFilter())), _SOON)
    return sorted(_acl(gone) for removed in told.values() for gone in removed)


def _listed(ask: Asker, wanted: AclFilter) -> list[Acl]:
    told = ask.one("listing ACLs", ask.client.describe_acls, _filter(wanted))
    return sorted(map(_acl, told))


def _change(ask: Asker, doing: str, call: Any, wanted: list[Any]) -> dict[Any, Any]:
    try:
        return ask.each(doing, call, wanted)
    except PenstockError as error:
        raise _explained(error) from error


def _explained(error: PenstockError) -> PenstockError:
    return _no_authorizer() if code_of(error) == KafkaError.SECURITY_DISABLED else error


def _no_authorizer() -> TerminalError:
    return TerminalError(
        "this cluster keeps no ACLs: its brokers run without an authorizer; "
        "set authorizer.class.name in their properties"
    )


def _require_readable(ask: Asker) -> None:
    """Tell "there are none" from "you may not see them": librdkafka gives an empty list for both."""
    call = partial(ask.client.describe_cluster, include_authorized_operations=True)
    told = ask.one("listing ACLs", call)
    if AclOperation.DESCRIBE not in (told.authorized_operations or ()):
        raise TerminalError(
            "listing ACLs: the broker does not allow it to this user; ask for an ACL "
            "(describe cluster), or use a connection with another user"
        )
    if _authorizer(ask, told.nodes[0].id) == "":
        raise _no_authorizer()


def _authorizer(ask: Asker, broker: int) -> str | None:
    """The class that decides on one broker; None where this user may not know it."""
    where = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    hidden = KafkaError.CLUSTER_AUTHORIZATION_FAILED
    told = ask.each("listing ACLs", ask.client.describe_configs, [where], quiet=hidden)
    entry = next((entries.get("authorizer.class.name") for entries in told.values()), None)
    return None if entry is None else entry.value or ""


def _bindings(kind: Any, rules: Iterable[Acl]) -> list[Any]:
    return [_binding(kind, rule) for rule in sorted(rules)]


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
