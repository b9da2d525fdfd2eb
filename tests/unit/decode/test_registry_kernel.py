"""Records with schema ids: grouped, read by their schemas, in their order; columns that change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from penstock.decode.avro_decode import AvroColumns
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.registry_kernel import (
    BodyReader,
    FormatColumns,
    RegistryKernel,
    RegistryPlan,
    Wanted,
)
from penstock.errors import ConfigError, SchemaChangedError, TransientError
from penstock.formats.registry import Registered, Registry, Schema
from penstock.formats.registry.registry_model import AVRO
from penstock.formats.registry.registry_options import RegistryOptions
from penstock.pipeline.schema import Schema as Columns

KIND = "DDL"


@dataclass(frozen=True)
class DdlColumns(FormatColumns):
    """A format whose schemas are the columns, and whose bodies are JSON."""

    kind = KIND

    def table_schema(self, schema: Schema, _registry: Registry | None) -> Columns:
        return Columns.parse(schema.text)

    def bodies(self, written: Schema, wanted: Schema, _registry: Registry | None) -> BodyReader:
        if "text string" in written.text:
            raise ConfigError("text was written")
        return JsonKernel(Columns.parse(wanted.text)).decode


class Client:
    """What the kernel asks a registry."""

    url = "http://registry"

    def __init__(self, **schemas: str) -> None:
        self.schemas = {int(n[1:]): Schema(text, KIND) for n, text in schemas.items()}
        self.newest = max(self.schemas)
        self.asked: list[int] = []

    def find(self, schema_id: int, _form: str) -> Schema | None:
        self.asked.append(schema_id)
        if schema_id == 999:
            raise TransientError("the registry is away")
        return self.schemas.get(schema_id)

    def latest(self, subject: str, _form: str = "") -> Registered:
        return Registered(subject, self.newest, self.newest, self.schemas[self.newest])


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(
        client: Client, wanted: int, columns: FormatColumns | None = None, **options: bool
    ) -> RegistryKernel:
        monkeypatch.setattr(RegistryOptions, "client", lambda _: client)
        monkeypatch.setattr(RegistryOptions, "fresh_client", lambda _: client)
        found = Registered("t-value", wanted, wanted, client.schemas[wanted])
        registry = RegistryOptions.model_construct(url="http://registry")
        plan = RegistryPlan(columns or DdlColumns(), registry, Wanted.registered(found), **options)
        return RegistryKernel(plan)

    return make


def record(schema_id: int, body: str) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body.encode()


def batch(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], ["value"])


def test_records_of_one_schema_are_read_as_they_are(kernel: Any) -> None:
    decoded = kernel(Client(s1="n int"), 1)(batch(record(1, '{"n": 1}'), record(1, '{"n": 2}')))
    assert decoded.rows.to_pylist() == [{"n": 1}, {"n": 2}]
    assert (decoded.failures, decoded.origins) == ((), None)


def test_rows_of_several_schemas_are_in_the_order_of_the_records(kernel: Any) -> None:
    client = Client(s1="n int", s2="n int, m int")
    values = [record(1 + n % 2, f'{{"n": {n}, "m": 7}}') for n in range(9)]
    decoded = kernel(client, 2)(batch(*values))
    assert [row["n"] for row in decoded.rows.to_pylist()] == list(range(9))
    assert decoded.origins.to_pylist() == list(range(9))
    assert sorted(client.asked) == [1, 2]


def test_every_record_that_cannot_be_read_is_a_failure_of_its_own(kernel: Any) -> None:
    client = Client(s1="n int", s3="text string")
    values = [
        record(1, '{"n": 0}'), None, b"", b"\0\0\0", b'{"n": 4}', record(7, "{}"), record(3, "{}"),
        record(1, "bad"), record(1, '{"n": 8}'),
    ]  # fmt: skip
    decoded = kernel(client, 1)(batch(*values))
    assert decoded.rows.to_pylist() == [{"n": 0}, {"n": 8}]
    assert decoded.origins.to_pylist() == [0, 8]
    assert [(each.index, each.error_type) for each in decoded.failures] == [
        (1, "EmptyValue"), (2, "NoSchemaId"), (3, "NoSchemaId"), (4, "NoSchemaId"),
        (5, "UnknownSchema"), (6, "IncompatibleSchema"), (7, "MalformedJson"),
    ]  # fmt: skip
    assert "text was written" in decoded.failures[5].message


def test_a_schema_that_does_not_fit_stops_the_pipeline_where_that_is_asked_for(kernel: Any) -> None:
    client = Client(s1="n int", s3="text string")
    with pytest.raises(ConfigError, match="schema 3 does not fit version 1 of 't-value'"):
        kernel(client, 1, stops=True)(batch(record(3, "{}")))


def test_a_registry_that_is_away_is_no_fault_of_the_records(kernel: Any) -> None:
    with pytest.raises(TransientError):
        kernel(Client(s1="n int"), 1)(batch(record(999, "{}")))


def test_a_version_with_other_columns_is_followed_or_refused(kernel: Any) -> None:
    client = Client(s1="n int", s2="n bigint, m int")
    with pytest.raises(
        SchemaChangedError, match=r"version 2 .* m int is new, n int is now n bigint"
    ):
        kernel(client, 1, latest=True, evolves=True)(batch(record(2, '{"n": 1, "m": 2}')))
    with pytest.raises(ConfigError, match="set 'evolve: follow'"):
        kernel(client, 1, latest=True)(batch(record(2, '{"n": 1, "m": 2}')))
    pinned = kernel(client, 1)(batch(record(2, '{"n": 1, "m": 2}')))
    assert pinned.rows.to_pylist() == [{"n": 1}]


def test_a_version_with_the_same_columns_changes_nothing(kernel: Any) -> None:
    client = Client(s1="n int", s2="n int")
    decoded = kernel(client, 1, latest=True, evolves=True)(batch(record(2, '{"n": 1}')))
    assert decoded.rows.to_pylist() == [{"n": 1}]


def test_a_newer_version_with_the_same_columns_is_what_its_records_are_read_by(
    kernel: Any,
) -> None:
    def symbols(*names: str) -> str:
        return json.dumps(_enum_record(list(names)))

    client = Client(s1=symbols("BUY"), s2=symbols("BUY", "SELL"))
    client.schemas = {n: Schema(each.text, AVRO) for n, each in client.schemas.items()}
    values = batch(record(1, "\0"), record(2, "\2"))
    followed = kernel(client, 1, AvroColumns(), latest=True)(values)
    assert followed.rows.to_pylist() == [{"side": "BUY"}, {"side": "SELL"}]
    pinned = kernel(client, 1, AvroColumns())(values)
    assert [failure.index for failure in pinned.failures] == [1]


def _enum_record(symbols: list[str]) -> dict[str, Any]:
    side = {"type": "enum", "name": "Side", "symbols": symbols}
    return {"type": "record", "name": "T", "fields": [{"name": "side", "type": side}]}


def test_a_schema_that_was_unknown_is_asked_for_again(kernel: Any) -> None:
    client = Client(s1="n int")
    reader = kernel(client, 1)
    assert reader(batch(record(2, '{"n": 1}'))).failures
    client.schemas[2] = Schema("n int", KIND)
    assert reader(batch(record(2, '{"n": 1}'))).rows.to_pylist() == [{"n": 1}]


def test_an_empty_batch_has_no_rows(kernel: Any) -> None:
    decoded = kernel(Client(s1="n int"), 1)(batch())
    assert (decoded.rows.to_pylist(), decoded.rows.schema.names) == ([], ["n"])
