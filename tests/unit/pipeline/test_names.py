"""A list of columns is read by one rule, in every component that takes one."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.jobs.job_table import Table
from penstock.pipeline import Pipeline, registry
from penstock.pipeline.names import ColumnNames, column_names, quoted, unquoted

TEXT = " a.b ,`a,b`, `a``b`,c`d,select"
NAMES = ["a.b", "a,b", "a`b", "c`d", "select"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("symbol", ["symbol"]),
        ("a, b", ["a", "b"]),
        ("a b , ä", ["a b", "ä"]),
        (TEXT, NAMES),
        ("`a `", ["a "]),
    ],
)
def test_a_text_is_names_with_commas_between_them(text: str, names: list[str]) -> None:
    assert column_names(text) == names


@pytest.mark.parametrize("text", ["", " ", "a,", ",a", "a,,b", "`a", "`a`b", "``", "`a` b, c"])
def test_a_text_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of columns"):
        column_names(text)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_any_names_can_be_written_in_backticks(names: list[str]) -> None:
    assert column_names(", ".join(map(quoted, names))) == names
    assert [unquoted(quoted(name)) for name in names] == names


NEEDED: dict[tuple[str, str], dict[str, Any]] = {
    ("step", "aggregate"): {"time": "at", "window": "1m", "values": {"n": "count(*)"}},
    ("step", "deduplicate"): {"time": "at", "within": "1m"},
    ("step", "enrich"): {"table": {"files": "t"}},
    ("step", "join"): {"time": "at", "source": {"kafka": "t"}},
    ("sink", "files"): {"path": "t"},
    ("sink", "delta"): {"path": "t"},
    ("sink", "iceberg"): {"warehouse": "w", "table": "db.t"},
    ("sink", "database"): {"url": "sqlite:///t", "table": "t"},
    ("sink", "memory"): {"table": "t"},
}
OPTIONS = [
    ("step", "aggregate", "by"), ("step", "deduplicate", "by"), ("step", "enrich", "by"),
    ("step", "join", "by"), ("sink", "files", "partition_by"), ("sink", "delta", "partition_by"),
    ("sink", "delta", "key"), ("sink", "iceberg", "key"), ("sink", "database", "key"),
    ("sink", "memory", "key"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "option"), OPTIONS, ids="-".join)
def test_every_option_reads_its_columns_by_the_same_rule(kind: str, name: str, option: str) -> None:
    given = NEEDED[kind, name] | ({"mode": "upsert"} if option == "key" else {})
    component = registry.component(kind, name)

    for written in (TEXT, NAMES):
        read = component.model_validate({**given, option: written})
        assert list(getattr(read, option)) == NAMES


def test_what_divides_an_iceberg_table_is_read_by_the_same_rule() -> None:
    def read(written: str | list[str]) -> list[str]:
        options = {**NEEDED["sink", "iceberg"], "partition_by": written}
        sink: Any = registry.component("sink", "iceberg").model_validate(options)
        return list(sink.divided_by())

    assert read("a.b, days(at), bucket(16, id),`a,b`, days( `x)y` )") == [
        "a.b", "at", "id", "a,b", "x)y",
    ]  # fmt: skip
    assert read(["a,b", "truncate(4, n)"]) == ["a,b", "n"]


# Lists of other names.
NO_COLUMNS = {
    *("exclude", "exclude_configs", "groups", "metadata", "paths", "queues", "tables", "topics")
}


def test_no_component_has_a_list_of_columns_that_the_tests_do_not_know() -> None:
    lists = {
        (kind, name, option)
        for kind in ("source", "decode", "step", "sink")
        for name in registry.names(kind)
        for option, field in registry.component(kind, name).model_fields.items()
        if field.annotation == get_args(ColumnNames)[0] and option not in NO_COLUMNS
    }
    assert lists - {("sink", "iceberg", "partition_by")} == {*OPTIONS} - {("step", "join", "by")}


def test_the_key_of_a_jobs_table_is_read_by_the_same_rule() -> None:
    assert Table("`a,b` string, c string", key="`a,b`, c").key == ["a,b", "c"]


def test_a_mistake_in_a_list_names_the_option() -> None:
    with pytest.raises(ConfigError, match=r"partition_by.*is not a list of columns"):
        Pipeline(
            name="p", source={"kafka": "t"}, sink={"files": {"path": "x", "partition_by": "a,,b"}}
        )
