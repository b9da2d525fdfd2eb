"""A declared schema is read without Java, says clearly what is wrong, and prints as Spark's DDL."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from penstock.errors import ConfigError
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, walk
from penstock.pipeline.schema import Schema

SCALARS = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "binary", "date", "timestamp", "timestamp_ntz"),
]
names = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), min_size=1, max_size=8)
decimals = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: Decimal(precision, scale))
)


def structs(types):
    fields = st.lists(st.builds(Field, names, types, st.booleans()), min_size=1, max_size=4)
    unique = fields.filter(lambda found: len({f.name.lower() for f in found}) == len(found))
    return unique.map(tuple).map(Struct)


types = st.recursive(
    st.sampled_from(SCALARS).map(Scalar) | decimals,
    lambda inner: inner.map(Array) | inner.map(Map) | structs(inner),
    max_leaves=8,
)


def test_text_becomes_fields():
    schema = Schema.parse(
        "symbol string not null, price decimal(10,2), tags array<string>, at timestamp,"
        " legs array<struct<id: bigint not null, px: double>>, m map<string, int>"
    )
    leg = Struct((Field("id", Scalar("bigint"), True), Field("px", Scalar("double"))))
    assert schema.fields == (
        Field("symbol", Scalar("string"), required=True),
        Field("price", Decimal(10, 2)),
        Field("tags", Array(Scalar("string"))),
        Field("at", Scalar("timestamp")),
        Field("legs", Array(leg)),
        Field("m", Map(Scalar("int"))),
    )


def test_a_mapping_becomes_the_same_fields_as_its_text():
    mapping = {"symbol": "string not null", "quote": {"bid": "double", "at": {"ts": "date"}}}
    text = "symbol string not null, quote struct<bid double, at struct<ts: date>>"
    assert Schema.parse(mapping) == Schema.parse(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("byte", "tinyint"),
        ("SHORT", "smallint"),
        ("integer", "int"),
        ("Long", "bigint"),
        ("real", "float"),
        ("numeric(5)", "decimal(5,0)"),
        ("dec", "decimal(10,0)"),
        ("timestamp_ltz", "timestamp"),
    ],
)
def test_synonyms_mean_sparks_first_name(written, meant):
    assert Schema.parse({"a": written}).ddl() == f"a {meant}"


def test_names_in_backticks_may_hold_anything():
    schema = Schema.parse("`a b``c` int, `from` int")
    assert schema.names == ("a b`c", "from")
    assert schema.ddl() == "`a b``c` int, from int"


@given(structs(types))
def test_printed_text_reads_back_as_the_same_schema(struct):
    schema = Schema(struct.fields)
    assert Schema.parse(schema.ddl()) == schema


@pytest.mark.parametrize(
    ("given_text", "says"),
    [
        ("a strng", "position 3: 'strng' is not a type; did you mean 'string'?"),
        ("a text", "did you mean 'string'?"),
        ("a", "position 2: expected a type, found the end of the text"),
        ("", "expected a field name"),
        ("a int b int", "position 7: expected 'not null', ',' or the end, found 'b'"),
        ("a int,", "expected a field name, found the end"),
        ("a-b int", "position 2: '-' cannot stand here; a name with other characters goes into"),
        ("a decimal(40,2)", "precision is 1 to 38"),
        ("a decimal(5,6)", "scale is 0 to precision"),
        ("a decimal(x)", "expected a number of digits, found 'x'"),
        ("a map<int,int>", "position 7: a map has string keys, not int"),
        ("a array<int not null>", "'not null' cannot stand here"),
        ("a array<int", "expected '>'"),
        ("a int not", "expected 'null' after 'not'"),
        ("a int, A int", "two fields are called 'a' and 'A'"),
        ("s struct<x:int,X:int>", "two fields are called 'x' and 'X'"),
        ("`` int", "expected a field name"),
        ("a " + "array<" * 5000 + "int", "types nest at most 32 deep"),
    ],
)
def test_wrong_text_is_refused_with_its_place(given_text, says):
    with pytest.raises(ConfigError) as error:
        Schema.parse(given_text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ({}, "no fields are declared"),
        ({"q": {"bid": "doubl"}}, "schema, q.bid: schema text, position 1: 'doubl' is not a type"),
        ({"q": {"bid": "int", "BID": "int"}}, "schema, q: two fields are called 'bid' and 'BID'"),
        ({"q": {}}, "schema, q: no fields"),
        ({"a": 1}, "schema, a: a type is text"),
        ({True: "int"}, "put the name in quotes"),
        (["a"], "not list"),
    ],
)
def test_a_wrong_mapping_is_refused_with_its_path(mapping, says):
    with pytest.raises(ConfigError) as error:
        Schema.parse(mapping)
    assert says in str(error.value)


class Model(BaseModel):
    columns: Schema


def test_a_pydantic_model_reads_both_forms_and_writes_text():
    assert Model(columns={"a": "long"}) == Model(columns="a bigint")
    assert Model(columns="a long").model_dump_json() == '{"columns":"a bigint"}'


def test_a_pydantic_error_carries_the_message():
    with pytest.raises(ValidationError) as error:
        Model(columns="a {int}")
    assert "position 3: '{' cannot stand here" in str(error.value)


def test_json_schema_allows_text_and_mapping():
    described = Model.model_json_schema()["properties"]["columns"]["anyOf"]
    assert [form["type"] for form in described] == ["string", "object"]


def test_a_schema_pickles():
    schema = Schema.parse("a int not null, s struct<b:map<string,date>>")
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_walk_gives_every_type_outermost_first():
    found = [type_.ddl() for type_ in walk(Schema.parse("a array<map<string,date>>").struct)]
    assert found[1:] == ["array<map<string,date>>", "map<string,date>", "date"]
