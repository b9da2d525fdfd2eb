"""A definition is checked without what only workers have: environment variables and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.server.conftest import SPEC

from penstock.config import references
from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store import ControlStore
from penstock.server.definition_check import checked_definition

TEXT = (
    "name: orders\n"
    "source: {{kafka: {{topics: '{topic}'}}}}\n"
    "sink: {{database: {{url: '{url}', table: t}}}}\n"
    "{more}"
)


def problems(
    store: ControlStore, topic: str = "t", url: str = "sqlite:///x", more: str = ""
) -> list[str]:
    text = TEXT.format(topic=topic, url=url, more=more)
    return [str(each) for each in checked_definition(store.secrets, "orders", text).problems]


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "${env:PENSTOCK_NO_SUCH}"},
        {"url": "postgresql://app:${env:PENSTOCK_NO_SUCH}@db/x"},
        {"url": "${file:/no/such/file}"},
        {"more": "every: ${env:PENSTOCK_NO_SUCH}"},
        {"more": "every: ${env:PENSTOCK_NO_SUCH:-5s}"},
        {"more": "connection: {bootstrap.servers: '${env:NO_SUCH}', sasl.password: '${file:/no}'}"},
    ],
)
def test_a_reference_is_left_to_the_worker(store: ControlStore, given: dict[str, str]) -> None:
    assert problems(store, **given) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"topic": "${env:X}", "more": "every: soon"}, "every"),
        ({"topic": "${evn:X}"}, "is not a reference"),
        ({"url": "${env:X}", "more": "stat: x"}, "did you mean 'state'?"),
        ({"more": "steps: [{sqk: '${env:X}'}]"}, "did you mean 'sql'?"),
        ({"more": "decode: {jsn: {schema: '${env:X}'}}"}, "did you mean 'json'?"),
    ],
)
def test_problems_next_to_a_reference_are_found(
    store: ControlStore, given: dict[str, str], words: str
) -> None:
    assert words in "\n".join(problems(store, **given))


def test_the_server_reads_no_file_and_no_variable_for_a_caller(
    store: ControlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("canary-of-a-file")
    monkeypatch.setenv("PENSTOCK_CANARY", "canary-of-a-variable")
    for reference in (f"${{file:{tmp_path}/key}}", "${env:PENSTOCK_CANARY}"):
        text = TEXT.format(
            topic="t", url=reference, more=f"delivery: {reference}\nstate: {reference}\n"
        )
        checked = checked_definition(store.secrets, "orders", text)
        assert "canary-of" not in repr(checked)


def test_a_problem_does_not_show_a_secret(store: ControlStore) -> None:
    found = problems(
        store, url="postgresql://app:hunter2hunter2@db:port/x", more="password: hunter3hunter3"
    )

    assert found
    assert "hunter" not in "\n".join(found)


@pytest.mark.parametrize("given", ["${env:NAME}", "${env:NAME:-orders}", "${file:/name}", "other"])
@pytest.mark.parametrize("name", ["orders", "reference"])
def test_the_name_is_the_name_of_the_deployment_and_no_reference(
    store: ControlStore, given: str, name: str
) -> None:
    text = TEXT.format(topic="t", url="sqlite:///x", more="").replace("orders", f"'{given}'")
    (problem,) = checked_definition(store.secrets, name, text).problems

    assert f"the deployment is {name!r}" in str(problem)


def test_where_the_state_is_may_be_known_to_the_workers_only(store: ControlStore) -> None:
    text = TEXT.format(topic="t", url="sqlite:///x", more="state: '${env:STATE}'")

    assert not checked_definition(store.secrets, "orders", text).state_is_known


def test_a_flow_that_listens_is_checked_and_its_secrets_are_sealed(store: ControlStore) -> None:
    example = Path(__file__).parents[3] / "examples/flows/http-to-kafka.yaml"
    text = example.read_text()
    assert checked_definition(store.secrets, "orders-from-http", text).problems == []
    for auth in (
        "hmac: {secret: hidden-words-of-20-x}",
        "token: hidden-words-of-20-x",
        "basic: {username: u, password: hidden-words-of-20-x}",
    ):
        text = f"name: t\ntrigger: {{http: {{path: /a, auth: {{{auth}}}}}}}\nsteps: [{{log: a}}]\n"
        checked = checked_definition(store.secrets, "t", text)
        assert checked.problems == []
        assert "hidden-words" not in checked.sealed


@pytest.mark.parametrize(
    "reference",
    [
        "${env:NONE:-${file:CANARY}}",
        "${fi${env:NONE:-le:CANARY}}",
        "${env:NONE:-${env:CANARY-1}}",
        "${env:CANARY-1}",
        "$${file:CANARY}",
        "$$${file:CANARY}",
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        "commit: 'REFERENCE'",
        "decode: {json: {schema: 'REFERENCE'}}",
        "connection: {bootstrap.servers: h, linger.ms: 'REFERENCE'}",
        "dead_letters: {kafka: {topic: t, connection: {bootstrap.servers: h, linger.ms: 'REFERENCE'}}}",
        "dead_letters: {kafka: {topic: t, connection: {bootstrap.servers: h, x.y: 'REFERENCE'}}}",
    ],
)
def test_no_form_of_a_reference_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, line: str
) -> None:
    file = tmp_path / "keys"
    file.write_text("canary-of-a-file")
    monkeypatch.setenv("CANARY-1", "canary-of-a-variable")
    looked_up: list[str] = []
    monkeypatch.setattr(references, "_from_file", lambda *given: looked_up.append(given[0]) or "x")
    monkeypatch.setattr(
        references, "_from_environment", lambda *given: looked_up.append(given[0]) or "x"
    )
    given = reference.replace("file:CANARY", f"file:{file}").replace("le:CANARY", f"le:{file}")
    text = SPEC.format("orders") + line.replace("REFERENCE", given) + "\n"

    checked = checked_definition(SpecSecrets(Sealer([b"k" * 32])), "orders", text)

    assert looked_up == []
    assert "canary-of" not in repr(checked.problems)


def test_a_connection_of_the_servers_settings_has_its_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROKERS", "kafka:9092")
    (tmp_path / "penstock.yaml").write_text(
        "connections: {shop: {bootstrap.servers: '${env:BROKERS}'}}"
    )
    text = SPEC.format("orders") + "connection: shop\n"

    checked = checked_definition(SpecSecrets(Sealer([b"k" * 32])), "orders", text)

    assert checked.problems == []
