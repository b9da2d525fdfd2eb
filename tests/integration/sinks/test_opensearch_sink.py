"""Pipelines into a real search index."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.services.json_api import JsonApi
from tests.services.opensearch import OpenSearch
from tests.services.outage import stay_away

from penstock import Connection, State, start
from penstock.errors import PenstockError
from penstock.testing import eventually, fill, read_all

SCHEMA = {"json": {"schema": "n bigint, region string, at timestamp, gone boolean"}}


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        running.wait(240)
        return running.progress()


def orders(count: int) -> list[dict[str, Any]]:
    return [
        {
            "n": n,
            "region": "EU" if n % 2 else "us",
            "at": f"2024-0{1 + n % 3}-15T23:59:59.123456Z",
            "gone": n % 10 == 9,
        }
        for n in range(count)
    ]


@pytest.fixture
def search(opensearch: OpenSearch, unique: str, pipeline: Any, topic: Any) -> Any:
    """Makes definitions with the sink; the index begins with the name of the test."""

    def make(sink: dict[str, Any], **more: Any) -> Any:
        given = {"url": opensearch.url, "index": unique, **sink}
        return pipeline(
            **{
                "source": {"kafka": topic()},
                "decode": SCHEMA,
                "sink": {"opensearch": given},
                **more,
            }
        )

    return make


def test_rows_are_documents_and_refused_ones_dead_letters(
    connection: Connection, opensearch: OpenSearch, search: Any, topic: Any, unique: str
) -> None:
    fill(connection, topic(), orders(100), partitions=2)
    mapping = {"dynamic": "strict", "properties": {
        "n": {"type": "byte"}, "region": {"type": "keyword"}, "at": {"type": "date"},
        "gone": {"type": "boolean"}, "big": {"type": "long"},
    }}  # fmt: skip
    steps = [{"sql": "SELECT CASE WHEN n = 42 THEN 300 ELSE n END AS n, region, at FROM rows"}]
    progress = run_once(search({"mapping": mapping}, steps=steps))

    found = opensearch.documents(unique)
    assert (progress.rows, progress.failed) == (99, 1)
    assert {d["n"] for d in found.values()} == {*range(100)} - {42}
    assert found.keys() <= {f"{topic()}-{p}-{o}" for p in range(2) for o in range(100)}
    assert next(d for d in found.values() if d["n"] == 7) == {
        "n": 7, "region": "EU", "at": "2024-02-15T23:59:59.123456Z",
    }  # fmt: skip
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    headers = dict(letter.headers)
    assert json.loads(letter.value)["n"] == 42
    assert headers["penstock.error_type"] == b"mapper_parsing_exception"
    assert b"out of range for a byte" in headers["penstock.error"]


def test_index_id_version_and_deletes_of_columns(
    connection: Connection, opensearch: OpenSearch, search: Any, topic: Any, unique: str
) -> None:
    fill(connection, topic(), [*orders(30), {"n": 5, "region": "EU", "at": "2024-03-15T00:00:00Z"}])
    sink = {
        "index": unique + "-{region}-{at:%Y.%m}", "id": ["region", "n"], "version": "n",
        "delete_when": "gone", "settings": {"number_of_replicas": 0}, "gzip": True,
    }  # fmt: skip
    progress = run_once(search(sink))

    assert progress.rows == 31
    assert opensearch.count(f"{unique}-*") == 27
    found = opensearch.documents(f"{unique}-eu-2024.03")
    assert found["EU|5"] == {"n": 5, "region": "EU", "at": "2024-03-15T23:59:59.123456Z"}
    names = opensearch.ask("GET", f"/{unique}-*/_settings")
    assert {name.removeprefix(unique) for name in names} == {
        f"-{region}-2024.0{month}" for region in ("eu", "us") for month in (1, 2, 3)
    }
    assert {n["settings"]["index"]["number_of_replicas"] for n in names.values()} == {"0"}


def test_tombstones_of_raw_records_delete(
    connection: Connection, opensearch: OpenSearch, search: Any, topic: Any, unique: str
) -> None:
    values = [b'{"n": 0}', b'{"n":\n1}', b"not json", None, b'{"n": 4}']
    fill(connection, topic(), values, key=lambda n: b"k%d" % (0 if n == 3 else n))
    steps = [{"sql": "SELECT CAST(key AS STRING) AS id, value FROM rows"}]
    sink = {"id": "id", "value": "value", "delete_null": True, "operation": "upsert"}
    progress = run_once(search(sink, decode="raw", steps=steps))

    assert (progress.rows, progress.failed) == (4, 1)
    assert opensearch.documents(unique) == {"k1": {"n": 1}, "k4": {"n": 4}}


def test_a_data_stream(
    connection: Connection, opensearch: OpenSearch, search: Any, topic: Any, unique: str
) -> None:
    fill(connection, topic(), orders(20))
    sink = {
        "operation": "create", "data_stream": True, "timestamp": "at",
        "index": unique + "-{region}", "index_template": {"data_stream": {}, "priority": 500},
    }  # fmt: skip
    run_once(search(sink))

    streams = opensearch.ask("GET", f"/_data_stream/{unique}-*")["data_streams"]
    assert {each["name"] for each in streams} == {f"{unique}-eu", f"{unique}-us"}
    assert opensearch.count(f"{unique}-*") == 20
    hit = opensearch.documents(f"{unique}-eu")[f"{topic()}-0-1"]
    assert (hit["@timestamp"], hit["n"]) == ("2024-02-15T23:59:59.123456Z", 1)


WRONG = [
    ({"id": "m"}, "configured to use the column 'm'"),
    ({"index": "x-{nn}"}, "'index' has the column 'nn', which does not exist; did you mean 'n'?"),
    ({"index": "x-{n:%Y}"}, "it must be a timestamp or a date"),
    ({"id": "n", "version": "region"}, "which is string: it must be a whole number"),
    ({"id": "n", "delete_when": "n"}, "which is bigint: it must be a boolean"),
    ({"value": "n"}, "it must be a JSON object, as a string or as bytes"),
    ({"timestamp": "region"}, "it must be a timestamp or a date"),
    ({"data_stream": True, "operation": "create"}, "need '@timestamp': name its column"),
    (
        {"data_stream": True, "operation": "create", "timestamp": "at"},
        "refuses the data stream .*no matching index template",
    ),
    ({"mapping": {"properties": {"n": {"type": "nmber"}}}}, r"No handler for type \[nmber\]"),
    ({"settings": {"number_of_shrds": 1}}, "unknown setting .*check 'mapping' and 'settings'"),
    ({"index_template": {"x": 1}}, "refuses the index template .*unknown field"),
    ({"url": "http://127.0.0.1:{api}/"}, "is not a search server; check 'url'"),
    ({"ca": "/nowhere.pem", "url": "https://127.0.0.1:9"}, "'/nowhere.pem' cannot be loaded"),
]


def test_what_does_not_fit_is_refused_before_a_record_is_read(
    connection: Connection, search: Any, topic: Any
) -> None:
    fill(connection, topic(), orders(1))
    with JsonApi() as other:
        for sink, message in WRONG:
            given = {k: v.format(api=other.port) if k == "url" else v for k, v in sink.items()}
            with pytest.raises(PenstockError, match=message):
                run_once(search(given))


def test_a_row_whose_record_is_hidden_needs_an_id(
    connection: Connection, search: Any, topic: Any
) -> None:
    fill(connection, topic(), orders(3))
    steps = [{"sql": "SELECT region, count(*) AS n FROM rows GROUP BY region"}]
    with pytest.raises(PenstockError, match="give the columns of the id in 'id'"):
        run_once(search({}, steps=steps))


def test_a_server_that_goes_and_returns_has_every_row_once(
    connection: Connection, pipeline: Any, topic: Any, unique: str
) -> None:
    fill(connection, topic(), orders(100))
    with OpenSearch() as server:
        definition = pipeline(
            source={"kafka": {"topics": topic(), "max_records_per_batch": 50}},
            decode=SCHEMA,
            sink={"elasticsearch": {"url": server.url, "index": unique}},
            restart={"wait": "100ms", "longest": "500ms"},
        )
        with start(definition) as running:
            eventually(lambda: server.count(unique) == 100, timeout=120)
            server.kill()
            fill(connection, topic(), orders(200))
            waiting = eventually(
                lambda: (p := running.progress()).state is State.RETRYING and p, timeout=120
            )
            assert "cannot be reached" in str(waiting.last_error)
            stay_away()
            server.start()
            eventually(lambda: server.count(unique) == 300, timeout=120)
            assert eventually(lambda: running.progress().state is State.RUNNING, timeout=60)
        assert len(server.documents(unique)) == 300
