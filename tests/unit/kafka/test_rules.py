import pytest

from penstock.errors import ConfigError
from penstock.kafka import Acl
from penstock.kafka.admin.acls import OPERATIONS, RESOURCES


def test_words_are_read_in_any_spelling() -> None:
    assert Acl("User:a", "DescribeConfigs", "Topic", "t", "ALLOW", "Prefixed") == Acl(
        "User:a", "describe-configs", "topic", "t", pattern="prefixed"
    )
    assert Acl("User:a", "all", "transactional-id", "x").resource == "transactional_id"


@pytest.mark.parametrize(
    ("field", "given", "allowed"),
    [
        (
            "operation",
            "reed",
            "all, alter, alter_configs, cluster_action, create, delete, describe",
        ),
        ("resource", "queue", "cluster, group, topic, transactional_id"),
        ("permission", "maybe", "allow, deny"),
        ("pattern", "regex", "literal, prefixed"),
    ],
)
def test_a_wrong_word_is_an_error_that_lists_what_is_allowed(
    field: str, given: str, allowed: str
) -> None:
    words = {"operation": "read", "resource": "topic", "name": "t", field: given}
    with pytest.raises(
        ConfigError, match=f"'{given}' is not a valid {field} of an ACL; allowed: {allowed}"
    ):
        Acl("User:a", **words)


@pytest.mark.parametrize("principal", ["alice", "User:", ":alice", ""])
def test_a_principal_has_a_type_and_a_name(principal: str) -> None:
    with pytest.raises(ConfigError, match=f"'{principal}' is not a principal.*User:alice"):
        Acl(principal, "read", "topic", "t")


def test_the_cluster_has_one_name_and_others_need_one() -> None:
    assert Acl("User:a", "alter", "cluster").name == "kafka-cluster"
    with pytest.raises(ConfigError, match="'kafka-cluster', not 'mine'"):
        Acl("User:a", "alter", "cluster", "mine")
    with pytest.raises(ConfigError, match=r"needs its name; '\*' means every topic"):
        Acl("User:a", "read", "topic")


def test_a_rule_reads_as_a_sentence() -> None:
    rule = Acl("User:a", "write", "group", "g", "deny", host="10.0.0.1")
    assert str(rule) == "User:a from 10.0.0.1 may not write group 'g'"


def test_the_words_are_those_of_kafka() -> None:
    assert len(OPERATIONS) == 11
    assert {"unknown", "any"}.isdisjoint({*OPERATIONS, *RESOURCES})
