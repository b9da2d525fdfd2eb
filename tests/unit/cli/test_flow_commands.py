"""`penstock flows`: from a template to a tested flow, without any other system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from tests.services.penstock_server import PenstockServer
from tests.unit.cli.conftest import Command

from penstock.cli import flow_commands
from penstock.cli.flow_commands import check, draw, new
from penstock.cli.main import main
from penstock.errors import ConfigError, DefinitionError
from penstock.flows.templates import TEMPLATES

run_tests_of = flow_commands.test


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_valid_and_its_tests_pass(
    template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.yaml"

    new("f", template=template, output=file)
    check(file)
    run_tests_of(file)

    printed = capsys.readouterr()
    assert printed.out.startswith("ok  ")
    assert "f is a valid flow of" in printed.err
    assert "1 test, 0 failed" in printed.err


def test_new_overwrites_nothing_and_names_its_templates(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("mine")

    with pytest.raises(ConfigError, match="exists; give another name"):
        new("f", output=file)
    with pytest.raises(ConfigError, match="did you mean 'http-to-kafka'"):
        new("f", template="http-kafka", output=file)
    with pytest.raises(DefinitionError, match="given 'a/b'"):
        new("a/b", output=file)
    assert file.read_text() == "mine"


def saved(folder: Path, text: str) -> Path:
    file = folder / "flow.yaml"
    file.write_text(text)
    return file


FLOW = """
name: t
trigger: {kafka: {topics: orders, advanced: {heartbeat_ms: 2000}}}
steps:
  - id: add
    map: payload.n + 1
  - publish: {kafka: {topic: out}}
tests:
  - name: adds one
    messages: [{payload: {n: 1}}, {payload: {n: a}}]
    expect: {published: [{topic: out, value: %s}], dead_letters: [{step: add}]}
  - name: another
    messages: [{payload: {n: 5}}]
    now: "2024-05-01T12:00:00Z"
    expect: {status: {done: 1}}
"""


def test_a_failed_test_names_the_difference_and_the_command_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["flows", "test", str(saved(tmp_path, FLOW % 3))])

    printed = capsys.readouterr()
    assert ended.value.code == 1
    assert "FAILED  adds one\n    published[0].value: expected 3, found 2\n" in printed.out
    assert "2 tests, 1 failed" in printed.err


def test_a_trace_shows_each_step_before_and_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_tests_of(saved(tmp_path, FLOW % 2), only="adds", trace=True)

    lines = capsys.readouterr().out.splitlines()
    assert lines[:8] == [
        "ok  adds one",
        "    add (map)",
        "      before payload='{\"n\":1}'",
        "      after  payload=2",
        "    add (map)",
        '      before payload=\'{"n":"a"}\'',
        "      error  CORE:EXPRESSION: payload.n + 1: + takes numbers, given a text; texts are joined "
        "with ||",
        "    steps[1] (publish)",
    ]


def test_results_and_traces_are_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_tests_of(saved(tmp_path, FLOW % 2), as_json=True)

    first, second = json.loads(capsys.readouterr().out)
    assert (first["name"], first["passed"], second["passed"]) == ("adds one", True, True)
    assert first["trace"][0]["after"][0]["payload"] == 2


def test_traces_have_numbers_of_any_length_times_and_no_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = 10**30
    text = f"""
name: t
trigger: {{kafka: a}}
steps:
  - http: {{url: "https://a.example/", auth: {{bearer: token-of-this-test}}, into: variable.reply}}
    id: ask
  - map: {{n: payload.n, at: "parse_time('2024-05-01')", token: "'token-of-this-test'"}}
tests:
  - name: a
    messages: [{{payload: {{n: {number}}}}}]
    replies: {{ask: {{body: token-of-this-test}}}}
    expect: {{status: {{done: 1}}}}
"""
    run_tests_of(saved(tmp_path, text), as_json=True)
    printed = capsys.readouterr().out
    run_tests_of(saved(tmp_path, text), trace=True)
    shown = capsys.readouterr().out

    (after,) = json.loads(printed)[0]["trace"][1]["after"]
    assert (after["payload"]["n"], after["payload"]["at"]) == (number, "2024-05-01T00:00:00Z")
    assert "token-of-this-test" not in printed + shown
    assert f"{{'n': {number}, 'at': '2024-05-01T00:00:00Z'" in shown


def test_tests_that_do_not_exist_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="no test with 'x' in its name; it has: adds one, another"
    ):
        run_tests_of(saved(tmp_path, FLOW % 2), only="x")
    with pytest.raises(ConfigError, match="has no tests; add 'tests:'"):
        run_tests_of(saved(tmp_path, "name: t\ntrigger: {kafka: a}\n"))


def test_check_notes_options_without_an_effect_and_reports_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(saved(tmp_path, FLOW % 2))
    assert "note: trigger.kafka.advanced.heartbeat_ms: has no effect:" in capsys.readouterr().err

    with pytest.raises(SystemExit) as ended:
        main(["flows", "check", str(saved(tmp_path, "name: t\ntrigger: {kafk: a}\n")), "--json"])
    assert ended.value.code == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["line"], problem["path"]) == (2, ["trigger"])


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    root = Xml.fromstring(svg)
    found = [each.attrib for each in root.iter() if each.tag.endswith("rect")]
    return [tuple(float(b[name]) for name in ("x", "y", "width", "height")) for b in found]  # type: ignore[misc]


DRAWN = """
name: t
trigger: {http: /a}
steps:
  - branch:
      when:
        - if: payload.a < 1 and '<&' = "]]>"
          steps:
            - try: {steps: [join, {filter: payload.ok}], catch: [{log: lost}]}
        - {if: payload.b, steps: [{branch: {when: [{if: payload.c, steps: [join]}], otherwise: [join]}}]}
      otherwise: [{publish: {kafka: {topic: b}}}]
  - publish: {http: {url: "https://a.example/?token=hunter2-secret"}}
on_error: {handler: [{log: lost}]}
"""


def test_a_drawing_has_every_step_and_no_two_in_one_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path, DRAWN)
    draw(file)
    draw(file, output=tmp_path / "flow.svg")

    svg = capsys.readouterr().out
    assert (tmp_path / "flow.svg").read_text() == svg
    assert "hunter2" not in svg
    found = boxes(svg)
    assert len(found) == 13
    for n, (x, y, width, height) in enumerate(found):
        assert x >= 0 and y >= 0
        for other_x, other_y, *_ in found[:n]:
            assert abs(x - other_x) >= width or abs(y - other_y) >= height


def test_the_group_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["flows", "--help"])

    shown: Any = capsys.readouterr().out
    assert all(name in shown for name in ("new", "check", "test", "draw"))


TIMED = "name: {}\ntrigger: {{timer: 5s}}\nsteps:\n  - publish: {{kafka: {{topic: out}}}}\n"


def test_a_flow_is_deployed_shown_and_pruned(server: PenstockServer, command: Command) -> None:
    Path("defs").mkdir()
    for name in ("a", "b"):
        (Path("defs") / f"{name}.yaml").write_text(TIMED.format(name))

    first = command("flows", "deploy", "defs/a.yaml", "--yes", "--server", server.url)
    again = command("flows", "deploy", "defs/a.yaml", "--yes", "--server", server.url)
    both = command("apply", "defs", "--yes")
    listed, described = command("get"), command("describe", "a")
    (Path("defs") / "a.yaml").unlink()
    pruned = command("apply", "defs", "--yes", "--prune")

    assert (first.out, again.out, both.out) == ("create a\n", "", "create b\n")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == ["a", "b"]
    assert "flow" in described.out
    assert pruned.out == "delete a\n"


def test_only_a_flow_is_deployed_as_one(server: PenstockServer, command: Command) -> None:
    Path("orders.yaml").write_text("name: orders\nsource: {kafka: t}\nsink: discard\n")
    Path("wrong.yaml").write_text(TIMED.format("wrong").replace("kafka", "kafak"))

    pipeline = command("flows", "deploy", "orders.yaml", "--yes")
    wrong = command("flows", "deploy", "wrong.yaml", "--yes")

    assert pipeline.code == 2
    assert "penstock apply orders.yaml" in pipeline.err
    assert wrong.code == 2
    assert "line 4: steps[0].publish" in wrong.err
    assert not server.store.deployments.all()
