"""Rows as requests to a real HTTP service: what is sent, what is refused, and a service that is away."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.services.json_api import Answer, JsonApi, Seen
from tests.services.orders_api import OrdersApi
from tests.services.outage import stay_away

from penstock import Connection, State, start
from penstock.errors import ConfigError, PenstockError, TransientError
from penstock.http.http_options import Auth
from penstock.pipeline import ORIGIN
from penstock.sinks.http.http_outlet import HttpTarget, statuses
from penstock.sinks.http.request_rows import RequestForm
from penstock.sinks.messages import Refusal
from penstock.testing import eventually, fill, read_all

FORM = RequestForm("", (("Content-Type", "application/json"),), (), 1, None, True, True, True)


def target(api: OrdersApi | JsonApi, auth: Auth | None = None, **form: Any) -> HttpTarget:
    given = replace(FORM, **{"url": api.url, **form})
    retried = statuses([408, 425, 429, "5xx"])
    return HttpTarget("POST", auth, None, 10.0, statuses(["2xx"]), retried, 2.0, 1, given)


def rows(values: list[Any], **columns: Any) -> pa.RecordBatch:
    texts = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    places = {ORIGIN[0]: ["t"] * len(values), ORIGIN[1]: pa.array([0] * len(values), pa.int32())}
    offsets = {ORIGIN[2]: pa.array(range(len(values)), pa.int64())}
    return pa.RecordBatch.from_pydict(
        {"value": pa.array(texts, pa.binary()), **columns, **places, **offsets}
    )


def send(given: HttpTarget, *batches: pa.RecordBatch) -> list[Refusal]:
    with given.open() as outlet:
        return [refusal for batch in batches for refusal in outlet.send(batch)]


def test_each_row_is_a_request_over_one_connection_with_its_own_key() -> None:
    with OrdersApi() as api:
        assert send(target(api), rows([{"n": 0}, {"n": 1}]), rows([{"n": 2}])) == []
    assert [json.loads(seen.body)["n"] for seen in api.requests] == [0, 1, 2]
    assert [seen.headers["Idempotency-Key"] for seen in api.requests] == ["t-0-0", "t-0-1", "t-0-0"]
    assert api.connections == 1


def test_a_connection_that_the_service_closed_is_opened_again() -> None:
    with OrdersApi() as api, target(api).open() as outlet:
        for n in range(3):
            assert [*outlet.send(rows([{"n": n}]))] == []
            api.close_connections()
    assert [json.loads(seen.body)["n"] for seen in api.requests] == [0, 1, 2]
    assert api.connections == 3


def test_other_statuses_refuse_the_row_with_the_reply() -> None:
    def respond(seen: Seen) -> Answer:
        n = json.loads(seen.body)["n"]
        return Answer(f"no {n}\n\x1b[31m" + "x" * 9000, 422) if n % 2 else Answer(b"", 204)

    with OrdersApi(respond) as api:
        refused = send(target(api), rows([{"n": n} for n in range(5)]))
    assert [(each.row, each.error_type) for each in refused] == [(1, "http_422"), (3, "http_422")]
    assert refused[0].error.startswith('HTTP 422 "no 1\\n')
    assert len(refused[0].error) < 2100


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with OrdersApi() as other:
        move = Answer(b"", status, {"Location": other.url})
        with OrdersApi(lambda _: move) as api:
            auth = Auth(bearer={"token": "secret-token-1"})  # type: ignore[arg-type]
            (refusal,) = send(target(api, auth), rows([{"n": 1}]))
    assert f"redirects to {other.url}, which is not followed" in refusal.error
    assert other.requests == []


def test_busy_services_are_asked_again_and_retry_after_is_honoured() -> None:
    answers = iter([Answer(b"", 503), Answer(b"", 429, {"Retry-After": "1"}), Answer(b"", 200)])
    with OrdersApi(lambda _: next(answers)) as api:
        assert send(target(api), rows([{"n": 1}])) == []
    assert len(api.requests) == 3
    with OrdersApi(lambda _: Answer(b"", 503, {"Retry-After": "30"})) as api:
        with pytest.raises(TransientError, match="is busy or away") as raised:
            send(target(api), rows([{"n": 1}]))
        assert (raised.value.retry_after, len(api.requests)) == (30, 1)
    with pytest.raises(TransientError, match="cannot be reached"):
        send(replace(target(api), retry_time=0), rows([{"n": 1}]))


def test_wrong_credentials_are_a_wrong_setting() -> None:
    def respond(seen: Seen) -> Answer:
        return Answer(b"", 200 if seen.headers.get("Authorization") == "Bearer right" else 401)

    with OrdersApi(respond) as api:
        assert send(target(api, Auth(bearer={"token": "right"})), rows([{"n": 1}])) == []  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="refuses the credentials; check 'auth'"):
            send(target(api, Auth(bearer={"token": "wrong"})), rows([{"n": 1}]))  # type: ignore[arg-type]


def test_a_token_that_expired_is_fetched_again() -> None:
    tokens = iter(["first", "second"])
    issued = JsonApi(lambda _: {"access_token": next(tokens), "expires_in": 3600})

    def respond(seen: Seen) -> Answer:
        return Answer(b"", 200 if seen.headers["Authorization"] == "Bearer second" else 401)

    with issued, OrdersApi(respond) as api:
        client = {"token_url": issued.url, "client_id": "a", "client_secret": "b-c-d-e-1"}
        assert send(target(api, Auth(oauth=client)), rows([{"n": 1}])) == []  # type: ignore[arg-type]
    assert len(api.requests) == 2


def test_several_rows_are_one_body_and_halves_show_which_are_refused() -> None:
    def respond(seen: Seen) -> Answer:
        return Answer(b"no seven", 400) if 7 in json.loads(seen.body) else Answer(b"", 200)

    with OrdersApi(respond) as api:
        given = target(api, batch=4, joined="array")
        values = [*range(10), b"[1]\n", b'1],["x"', None]
        refused = send(given, rows(values))
    kinds = [(each.row, each.error_type) for each in refused]
    assert kinds == [(11, "not_json"), (12, "no_value"), (7, "http_400")]
    accepted = [json.loads(seen.body) for seen in api.requests]
    assert accepted == [[0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [6, 7], [6], [7], [8, 9, [1]]]
    keys = [seen.headers["Idempotency-Key"] for seen in api.requests]
    assert keys[:3] == ["t-0-0..t-0-3", "t-0-4..t-0-7", "t-0-4..t-0-5"]


def test_lines_are_one_row_each() -> None:
    with OrdersApi() as api:
        given = target(api, batch=3, joined="lines")
        assert send(given, rows([{"n": 1}, b'{"n":\n\r2}'])) == []
    assert api.requests[0].body == b'{"n": 1}\n{"n":  2}\n'


def test_hostile_headers_and_addresses_are_refused() -> None:
    with OrdersApi() as api:
        urls = [f"{api.url}/{part}" for part in ("a", "..", ".", "b", "c", "d")]
        values = ["x", "x", "x", "a\r\nEvil: 1", "\u00e4", None]
        given = target(api, url=None, header_columns=(("X-Id", "h"),))
        refused = send(given, rows([1] * 7, url=[*urls, None], h=[*values, "x"]))
    assert [(each.row, each.error_type) for each in refused] == [
        (1, "invalid_address"), (2, "invalid_address"), (3, "invalid_header"),
        (4, "invalid_header"), (6, "invalid_address"),
    ]  # fmt: skip
    assert [(seen.path, seen.headers.get("X-Id")) for seen in api.requests] == [
        ("/orders/a", "x"), ("/orders/d", None),
    ]  # fmt: skip


def test_parallel_requests_send_every_row_once() -> None:
    def respond(seen: Seen) -> Answer:
        return Answer(b"", 400 if seen.body == b"13" else 200)

    with OrdersApi(respond) as api:
        refused = send(replace(target(api), parallel=4), rows([*range(200)]), rows([*range(200)]))
    assert [each.row for each in refused] == [13, 13]
    assert Counter(seen.body for seen in api.requests) == {b"%d" % n: 2 for n in range(200)}
    assert api.connections == 4


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        running.wait(240)
        return running.progress()


def test_a_pipeline_with_columns_in_address_and_headers(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    names = ["a b", "x/y?z", "ü", "", None, "ok", "no"]
    fill(connection, topic(), [{"n": n, "name": name} for n, name in enumerate(names)])

    def respond(seen: Seen) -> Answer:
        return Answer(b"never", 410) if b'"no"' in seen.body else Answer(b"", 200)

    with OrdersApi(respond) as api:
        progress = run_once(
            pipeline(
                source={"kafka": topic()},
                decode={"json": {"schema": "n int, name string"}},
                sink={
                    "http": {
                        "url": api.url + "/{name}?n={n}&empty={{}}", "method": "PUT",
                        "headers": {"X-Number": "no. {n}", "X-Fixed": "a"},
                    }
                },
            )
        )  # fmt: skip
    assert (progress.rows, progress.failed) == (4, 3)
    assert [seen.path for seen in api.requests] == [
        "/orders/a%20b?n=0&empty={}", "/orders/x%2Fy%3Fz?n=1&empty={}",
        "/orders/%C3%BC?n=2&empty={}", "/orders/ok?n=5&empty={}", "/orders/no?n=6&empty={}",
    ]  # fmt: skip
    first = api.requests[0]
    assert (first.method, first.body) == ("PUT", b'{"n":0,"name":"a b"}')
    assert (first.headers["X-Number"], first.headers["X-Fixed"]) == ("no. 0", "a")
    assert first.headers["Idempotency-Key"] == f"{topic()}-0-0"
    letters = {json.loads(each.value)["n"]: dict(each.headers) for each in read_all(
        connection, f"{unique}.dead-letters"
    )}  # fmt: skip
    assert letters.keys() == {3, 4, 6}
    assert letters[6]["penstock.error"] == b"HTTP 410 never"


def test_a_service_that_goes_and_returns_has_every_row(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic(), [{"n": n} for n in range(100)])
    with OrdersApi() as api:
        definition = pipeline(
            source={"kafka": {"topics": topic(), "max_records_per_batch": 50}},
            decode={"json": {"schema": "n int"}},
            sink={"http": {"url": api.url, "value_format": "csv", "retry_time": "200ms"}},
            restart={"wait": "100ms", "longest": "500ms"},
        )
        with start(definition) as running:
            eventually(lambda: len(api.requests) == 100, timeout=120)
            api.stop()
            fill(connection, topic(), [{"n": n} for n in range(100, 200)])
            waiting = eventually(
                lambda: (p := running.progress()).state is State.RETRYING and p, timeout=120
            )
            assert "cannot be reached" in str(waiting.last_error)
            stay_away()
            api.start()
            eventually(
                lambda: {int(seen.body) for seen in api.requests} == {*range(200)}, timeout=120
            )


def test_what_does_not_fit_is_refused_before_a_record_is_read(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic(), [{"n": 1}])
    wrong = [
        ({"url": "http://h/{m}"}, "'url' has the column 'm', which does not exist"),
        ({"headers": {"X": "{t:%Y}"}}, r"'headers\.X' writes the column 't' as a date, and it is"),
        ({"url": "http://h/{a}"}, "it must be a text, a number, a boolean or a time"),
        ({"value": "v"}, "configured to use the column 'v'"),
        ({"ca": "/nowhere.pem"}, "'/nowhere.pem' cannot be loaded"),
        ({"value_format": "string"}, "writes one column, and there are 3: name it with 'value'"),
    ]
    for sink, message in wrong:
        definition = pipeline(
            source={"kafka": topic()},
            decode={"json": {"schema": "n int, t string, a array<int>"}},
            sink={"http": {"url": "http://127.0.0.1:9/", **sink}},
        )
        with pytest.raises(PenstockError, match=message):
            run_once(definition)
