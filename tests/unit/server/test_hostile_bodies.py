"""Whatever is sent to any route, the reply is a problem with a reason, never a failure of the server."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from tests.unit.server.conftest import PASSWORD, SPEC, YAML, Api

from penstock.control.store import ControlStore
from penstock.server import deployment_actions

ONE = "/api/v1/deployments/orders"
BODIES: list[bytes] = [
    b"", b"null", b"[]", b"{}", b"5", b'"x"', b"\xff\xfe", b"\x00", b"{" * 5000, b'{"a":' * 5000,
    b'{"name": "\\ud800", "password": "\\ud800\\ud800", "grants": ["\\ud800"], "user": "\\ud800"}',
    b'{"user": "\\ud800", "password": "long enough"}', b'{"user": "a\\u0000b", "password": "x"}',
    b'{"\\ud800": 1}', b'{"labels": {"\\ud800": "x"}}', b'{"labels": {"a": "\\u0000"}}',
    b'{"generation": 99999999999999999999}', b'{"generation": "1"}', b'{"generation": 1e400}',
    b'{"definition": "a: !!python/object:os.system x"}', b'{"definition": {"name": "\\u0000"}}',
    b'{"definition": "name: orders\\n<<: *x"}', b'{"definition": "2001-99-99"}',
    b'{"definition": {"name": null, "source": [], "sink": {"": {}}}}', b'{"desired": "\\ud800"}',
]  # fmt: skip
NAMES = [
    "orders",
    "a%00b",
    "%F0%9F%98%80",
    "..",
    "%0d%0aSet-Cookie:x",
    "a" * 300,
    "%ed%a0%80",
    "'",
    "*",
]


def test_no_body_makes_the_server_fail(api: Api, people: None) -> None:
    ann = api("ann")
    ann.put(ONE, content=SPEC.format("orders"), headers=YAML)
    for method, path in routes(ann):
        if method in ("GET", "DELETE"):
            continue
        kinds = (
            ("application/json", "application/yaml")
            if "validate" in path
            else ("application/json",)
        )
        for body, kind in itertools.product(BODIES, kinds):
            check(ann, method, filled(path, "orders"), body, kind)


def test_no_name_makes_the_server_fail(api: Api, people: None) -> None:
    ann = api("ann")
    for method, path in routes(ann):
        for name in NAMES if "{" in path else ():
            check(ann, method, filled(path, name), b"{}", "application/json")


def check(client: TestClient, method: str, path: str, body: bytes, kind: str) -> None:
    reply = client.request(method, path, content=body, headers={"Content-Type": kind})
    assert reply.status_code < 500, (method, path, body, reply.text)
    assert "set-cookie" not in reply.headers


def filled(path: str, name: str) -> str:
    return path.replace("{generation}", "1").replace("{name}", name).replace("{id}", name)


def routes(client: TestClient) -> list[tuple[str, str]]:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    found = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    # Those that only ask for a state have no body; one of them is enough.
    return [each for each in found if not re.search("/(pause|stop|resume)$", each[1])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: !!python/object/apply:os.system ['true']", "not YAML"),
        ("a: !x b", "not YAML"),
        ("a: 2001-99-99", "not YAML"),
        ("[" * 60_000, "more than 50 levels"),
        ("- " * 40_000, "more than 50 levels"),
        ("a: [" + "1," * 40_000 + "]", "more than 5000 values"),
        ("#\n" * 6000, "6000 lines; allowed: 5000"),
        ("a: '" + "${file:" * 600 + "'", "600 references; allowed: 500"),
        ("a: " + "x" * 100_001, "characters; allowed: 100000"),
        ("a0: &a0 {x: 1, y: 2}\n" + "".join(
            f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 8)}]}}\n" for n in range(1, 20)
        ), "more than 5000 values"),
    ],
)  # fmt: skip
def test_a_text_that_would_take_long_is_refused(client: TestClient, text: str, words: str) -> None:
    reply = client.put(ONE, content=text, headers=YAML)

    assert (reply.status_code, words in reply.json()["detail"]) == (422, True), reply.text


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[]] * 6000, "values; allowed: 5000"),
        (["x" * 30_000] * 4, "characters; allowed: 100000"),
    ],
)
def test_json_that_would_be_a_long_text_is_refused_before_it_is_one(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, values: list[Any], words: str
) -> None:
    monkeypatch.setattr(yaml, "safe_dump", None)
    for body in ({"name": "orders", "steps": values}, {"definition": {"steps": values}}):
        reply = client.put(ONE, json=body)

        assert (reply.status_code, words in reply.json()["detail"]) == (422, True), reply.text


def test_a_difference_of_long_definitions_is_not_compared_line_by_line(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SPEC.format("orders")
    client.put(ONE, content=text + "# a\n" * 2000, headers=YAML)
    monkeypatch.setattr(deployment_actions.difflib, "unified_diff", None)
    reply = client.post(f"{ONE}/diff", content=text + "# b\n" * 2000, headers=YAML)

    lines = reply.json()["diff"].splitlines()
    assert lines[:3] == ["--- orders (stored)", "+++ orders (given)", "@@ -1,2003 +1,2003 @@"]
    assert (lines.count("-# a"), lines.count("+# b")) == (2000, 2000)
    same = client.post(f"{ONE}/diff", content=text + "# a\n" * 2000, headers=YAML)
    assert (same.json()["diff"], same.json()["changed"]) == ("", False)


@pytest.mark.parametrize(
    "step",
    [
        {"sql": "@" * 20_000},
        {"sql": "SELECT " + "(" * 20_000},
        {"aggregate": {"time": "ts", "window": "1m", "values": {"n": "(" * 20_000}}},
    ],
)
def test_sql_that_is_nested_too_deeply_is_a_problem(client: TestClient, step: Any) -> None:
    given = {"name": "orders", "source": {"kafka": "t"}, "steps": [step], "sink": "discard"}
    reply = client.put(ONE, json=given)

    assert (reply.status_code, "nested too deeply" in reply.json()["detail"]) == (422, True)


def test_a_definition_runs_no_code_in_the_server(client: TestClient, store: ControlStore) -> None:
    text = SPEC.format("orders") + "steps: [{python: 'pip.__main__:main'}]\n"
    parser = "decode: {python: {function: 'only.on_workers:parse', schema: 'a int'}}\n"

    assert client.put(ONE, content=text + parser, headers=YAML).status_code == 201
    wrong = client.put(ONE, content=text.replace(":main", ""), headers=YAML)
    assert (wrong.status_code, "module:function" in wrong.text) == (422, True)


def test_a_viewer_cannot_make_the_server_read_a_definition(api: Api, people: None) -> None:
    for action in ("", "/validate", "/diff"):
        method = "PUT" if not action else "POST"
        reply = api("vic").request(method, ONE + action, content=b"[", headers=YAML)
        assert (reply.status_code, "takes the role operator" in reply.text) == (403, True)


def test_a_user_with_a_name_that_no_database_has_is_refused(api: Api, people: None) -> None:
    body: dict[str, Any] = {"user": "a\x00b", "password": PASSWORD}

    assert api(login=True).post("/api/v1/login", json=body).status_code == 401
