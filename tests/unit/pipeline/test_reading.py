"""Definitions: both ways to write one are the same model, and every mistake is reported with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigError, DefinitionError, Problem
from penstock.pipeline import Delivery, Pipeline, parse_pipeline, read_pipeline, registry
from penstock.sinks.database.database_sink import DatabaseSink
from penstock.sinks.files import FilesSink
from penstock.sources.kafka import KafkaSource

TEXT = """\
name: trades
connection: {bootstrap.servers: "localhost:9092"}
source:
  kafka: {topics: [trades, quotes], start: latest}
decode:
  json: {schema: {symbol: string not null, price: double}}
steps:
  - sql: SELECT * FROM rows WHERE price > 0
sink:
  files: {path: /data/trades, partition_by: [symbol]}
delivery: at-most-once
every: 500ms
"""


def problems(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        parse_pipeline(text)
    return [str(problem) for problem in caught.value.problems]


def test_yaml_and_python_write_the_same_model() -> None:
    from penstock.decode.json import JsonDecode
    from penstock.steps.sql import SqlStep

    read = parse_pipeline(TEXT)
    written = Pipeline(
        name="trades",
        connection={"bootstrap.servers": "localhost:9092"},
        source=KafkaSource(topics=["trades", "quotes"], start="latest"),
        decode=JsonDecode(schema="symbol string not null, price double"),
        steps=[SqlStep(query="SELECT * FROM rows WHERE price > 0")],
        sink=FilesSink(path="/data/trades", partition_by=["symbol"]),
        delivery=Delivery.AT_MOST_ONCE,
        every=0.5,
    )
    assert read == written
    assert read.group_id == "trades"
    assert read.dead_letter_sink.model_dump(exclude_unset=True) == {"topic": "trades.dead-letters"}


def test_short_forms_stand_for_the_main_option() -> None:
    pipeline = Pipeline(name="p", source={"kafka": "a, b"}, sink={"files": "/t"}, dead_letters="d")
    assert pipeline.source == KafkaSource(topics=["a", "b"])
    assert pipeline.sink == FilesSink(path="/t")
    assert pipeline.decode.name == "raw"
    assert pipeline.dead_letter_sink.name == "kafka"


def test_a_model_written_out_reads_back() -> None:
    pipeline = parse_pipeline(TEXT)
    written = pipeline.model_dump(mode="json", exclude_unset=True)
    assert written["sink"] == {"files": {"path": "/data/trades", "partition_by": ["symbol"]}}
    assert written["steps"] == [{"sql": {"query": "SELECT * FROM rows WHERE price > 0"}}]
    again = Pipeline(**(written | {"connection": {"bootstrap.servers": written["connection"]}}))
    assert again == pipeline


def test_an_earlier_name_of_a_component_is_read_and_dumped_as_the_current_one() -> None:
    text = TEXT.replace(
        "files: {path: /data/trades, partition_by: [symbol]}",
        "jdbc: {url: 'sqlite:///t', table: t}",
    )
    pipeline = parse_pipeline(text)
    assert pipeline.sink == DatabaseSink(url="sqlite:///t", table="t")
    dumped = pipeline.model_dump(mode="json", exclude_unset=True)
    assert dumped["sink"] == {"database": {"url": "sqlite:///t", "table": "t"}}
    assert problems(text.replace("table: t", "tabl: t"))[0] == (
        "line 10: sink.jdbc.table: is required"
    )


def test_all_problems_come_at_once_in_the_order_of_their_lines() -> None:
    text = TEXT.replace("topics", "topic").replace("SELECT *", "DELETE").replace("every", "evry")
    found = problems(text)
    assert found[0] == "line 4: source.kafka.topic: is not an option here; did you mean 'topics'?"
    assert found[1].startswith("line 8: steps[0].sql.query: given 'DELETE FROM rows")
    assert found[-1] == "line 12: evry: is not an option here; did you mean 'every'?"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("name: trades", "name: a b"), "line 1: name: given 'a b'; string should match pattern"),
        (("  kafka", "  kafke"), "there is no source 'kafke'; did you mean 'kafka'?"),
        (("start: latest", "start: newest"), "line 4: source.kafka.start"),
        (("price: double", "price: dubble"), "did you mean 'double'?"),
        (("FROM rows", "FROM trades"), "there is no table 'trades'; the rows so far are 'rows'"),
        (("every: 500ms", "every: soon"), "a duration is a number with ms, s, m, h or d"),
        (("{path: /data/trades, ", "{"), "line 10: sink.files.path: is required"),
        (("delivery: at-most-once", "delivery: twice"), "input should be 'at-most-once'"),
        (("bootstrap.servers", "bootstrap.server"), "did you mean 'bootstrap.servers'?"),
    ],
)
def test_a_mistake_names_what_was_given_and_what_is_allowed(
    change: tuple[str, str], expected: str
) -> None:
    assert expected in "\n".join(problems(TEXT.replace(*change)))


def test_a_key_given_twice_is_refused() -> None:
    assert problems(TEXT + "name: other\n") == ["line 13: name: is given twice"]


def test_what_is_not_yaml_is_reported_with_its_line() -> None:
    (found,) = problems("name: x\nsource: {kafka: [")
    assert found.startswith("line 2: not YAML: ")


def test_an_empty_file_and_a_list_are_refused() -> None:
    for text in ("", "- 1"):
        assert problems(text) == ["line 1: a definition is a mapping with name, source and sink"]


def test_exactly_once_is_refused_where_the_sink_cannot() -> None:
    exact = TEXT.replace("at-most-once", "exactly-once")
    assert parse_pipeline(exact).delivery is Delivery.EXACTLY_ONCE
    table = "  files: {path: /data/trades, partition_by: [symbol]}"
    (found,) = problems(exact.replace(table, "  console: {}"))
    assert "the sink 'console' cannot promise exactly-once" in found


def test_references_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLE", "/data/from-env")
    pipeline: Any = parse_pipeline(TEXT.replace("/data/trades", "'${env:TABLE}'"))
    assert pipeline.sink.path == "/data/from-env"


def test_a_reference_that_cannot_be_filled_in_is_reported_with_its_line() -> None:
    (found,) = problems(TEXT.replace("/data/trades", "'${env:NO_SUCH_TABLE}'"))
    assert found.startswith("line 9: sink: ")
    assert "NO_SUCH_TABLE" in found


def test_a_parser_is_looked_up_beside_the_definition(tmp_path: Path) -> None:
    (tmp_path / "beside_parser.py").write_text("def parse(value): return {'n': int(value)}\n")
    file = tmp_path / "p.yaml"
    file.write_text(
        "name: p\nsource: {kafka: t}\nsink: console\n"
        "decode: {python: {function: 'beside_parser:parse', schema: n int}}\n"
    )
    pipeline: Any = read_pipeline(file)
    assert pipeline.decode.function.load()("3") == {"n": 3}
    assert pipeline.decode.columns() == ["value"]


def test_a_parser_with_too_many_arguments_is_refused(tmp_path: Path) -> None:
    (tmp_path / "greedy_parser.py").write_text("def parse(a, b, c, d): ...\n")
    file = tmp_path / "p.yaml"
    file.write_text(
        "name: p\nsource: {kafka: t}\nsink: console\n"
        "decode: {python: {function: 'greedy_parser:parse', schema: n int}}\n"
    )
    with pytest.raises(ConfigError, match=r"takes 4 arguments; a parser takes one \(value\)"):
        read_pipeline(file)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot read /nowhere/p\.yaml: No such file"):
        read_pipeline("/nowhere/p.yaml")


def test_the_schema_for_editors_knows_every_component() -> None:
    schema = Pipeline.model_json_schema()
    assert schema["additionalProperties"] is False
    written = str(schema)
    for kind in ("source", "decode", "step", "sink"):
        for name in registry.names(kind):
            assert f"'{name}'" in written


def test_secrets_are_not_in_the_repr_of_a_pipeline() -> None:
    pipeline = Pipeline(
        name="p",
        connection={
            "bootstrap.servers": "b:1",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "hunter2",
        },
        source={"kafka": "t"},
        sink="console",
    )
    assert "hunter2" not in repr(pipeline) + str(pipeline.model_dump()) + pipeline.model_dump_json()


def test_a_problem_prints_without_what_it_lacks() -> None:
    assert str(Problem((), "is wrong")) == "is wrong"


def test_spark_options_count_only_where_the_definition_names_them() -> None:
    assert parse_pipeline(TEXT).session_options is None
    named = parse_pipeline(TEXT + "spark: {memory: 2g}\n").session_options
    assert named is not None
    assert (named.memory, named.master) == ("2g", "local[*,2]")


def test_a_pipeline_without_a_connection_takes_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "penstock.yaml"
    settings.write_text("connections: {only: {bootstrap.servers: 'kafka-9:9092'}}\n")
    monkeypatch.chdir(tmp_path)
    without = "\n".join(line for line in TEXT.splitlines() if not line.startswith("connection"))

    assert parse_pipeline(without).find_connection().brokers == "kafka-9:9092"
    assert parse_pipeline(TEXT).find_connection().brokers == "localhost:9092"
