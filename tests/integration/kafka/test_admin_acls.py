"""Rules hold when they are added, and no longer when they are removed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from penstock.embedded import Broker, Security
from penstock.errors import PenstockError, TerminalError
from penstock.kafka import Acl, AclFilter, Admin
from penstock.testing import eventually


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    users = {"alice": "wonderland", "bob": "builder"}
    with Broker(security=Security(protocol="sasl_plaintext", acls=True, users=users)) as broker:
        yield broker


@pytest.fixture
def admin(guarded: Broker) -> Iterator[Admin]:
    with Admin(guarded.connection) as admin:
        yield admin
        admin.delete_acls(admin.acls())


RULES = [
    Acl("User:alice", "describe", "topic", "trades-", pattern="prefixed"),
    Acl("User:alice", "read", "topic", "trades-1"),
    Acl("User:bob", "alter", "cluster", permission="deny", host="10.0.0.1"),
    Acl("User:bob", "write", "transactional_id", "tx"),
    Acl("User:bob", "delete", "group", "*"),
]


def test_rules_come_back_as_they_were_added(admin: Admin) -> None:
    admin.create_acls([*RULES, RULES[0]])
    admin.create_acls(RULES[:2])
    assert admin.acls() == sorted(RULES)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(principal="User:alice"), RULES[:2]),
        (AclFilter(resource="Topic", name="trades-1"), RULES[1:2]),
        (AclFilter(resource="topic", name="trades-1", pattern="match"), RULES[:2]),
        (AclFilter(pattern="prefixed"), RULES[:1]),
        (AclFilter(permission="deny"), RULES[2:3]),
        (AclFilter(operation="WRITE"), RULES[3:4]),
        (AclFilter(host="10.0.0.1"), RULES[2:3]),
        (AclFilter(principal="User:unknown"), []),
    ],
)
def test_a_filter_finds_what_agrees_with_every_word(
    admin: Admin, wanted: AclFilter, found: list[Acl]
) -> None:
    admin.create_acls(RULES)
    assert admin.acls(wanted) == sorted(found)


def test_exactly_the_given_rules_are_removed(admin: Admin) -> None:
    admin.create_acls(RULES)
    never = Acl("User:alice", "alter", "topic", "trades-1")
    assert admin.delete_acls([RULES[0], never]) == [RULES[0]]
    assert admin.acls() == sorted(RULES[1:])
    assert admin.delete_acls([]) == []


def may_create(admin: Admin, topic: str) -> bool:
    try:
        admin.create_topic(topic)
    except TerminalError as error:
        assert "ask for an ACL" in str(error)
        return False
    return True


def test_a_rule_lets_its_user_in_and_only_as_long_as_it_is_there(
    admin: Admin, guarded: Broker, unique: str
) -> None:
    rule = Acl("User:alice", "create", "topic", f"{unique}-", pattern="prefixed")
    describe = Acl("User:alice", "describe", "topic", f"{unique}-", pattern="prefixed")
    names = (f"{unique}-{number}" for number in count())
    with Admin(guarded.connection_as("alice")) as alice:
        assert not may_create(alice, next(names))
        admin.create_acls([rule, describe])
        eventually(lambda: may_create(alice, next(names)))
        admin.delete_acls([rule])
        eventually(lambda: not may_create(alice, next(names)))


def test_a_rule_that_forbids_wins(admin: Admin, guarded: Broker, unique: str) -> None:
    admin.create_acls([Acl("User:*", "describe", "topic", "*")])
    admin.create_topic(unique)
    with Admin(guarded.connection_as("bob")) as bob:
        eventually(lambda: unique in [topic.name for topic in bob.topics()])
        admin.create_acls([Acl("User:bob", "all", "topic", unique, "deny")])
        eventually(lambda: unique not in [topic.name for topic in bob.topics()])


def test_a_user_who_may_not_list_acls_gets_an_error_and_not_an_empty_list(guarded: Broker) -> None:
    with (
        Admin(guarded.connection_as("alice")) as alice,
        pytest.raises(TerminalError, match=r"does not allow it.*describe cluster"),
    ):
        alice.acls()


def test_no_rules_are_an_empty_list(admin: Admin) -> None:
    assert admin.acls() == []


def test_one_who_may_see_rules_but_no_settings_sees_that_there_are_none(
    admin: Admin, guarded: Broker
) -> None:
    admin.create_acls([Acl("User:alice", "describe", "cluster")])
    with Admin(guarded.connection_as("alice")) as alice:
        assert alice.acls(AclFilter(principal="User:unknown")) == []


@pytest.mark.parametrize("call", ["acls", "create_acls", "delete_acls"])
def test_a_cluster_without_an_authorizer_says_so(broker: Broker, call: str) -> None:
    arguments = [] if call == "acls" else [RULES]
    with (
        Admin(broker.connection) as admin,
        pytest.raises(PenstockError, match=r"keeps no ACLs.*authorizer.class.name"),
    ):
        getattr(admin, call)(*arguments)
