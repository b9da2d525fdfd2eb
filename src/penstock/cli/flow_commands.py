"""`penstock flows`: flows from a template, checked, tested without Kafka, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import yaml

from penstock.cli.definition_files import read_definitions
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import counted, print_json, say, write
from penstock.cli.server_options import CaOption, ServerOption
from penstock.config.printable import printable
from penstock.config.secrets import mask
from penstock.errors import ConfigError, DefinitionError
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.reading import defines_flow, parse_flow, read_flow
from penstock.flows.drawing import draw as drawn
from penstock.flows.message import Message
from penstock.flows.running.flow_run import TraceEntry, shown
from penstock.flows.templates import TEMPLATES, definition_of
from penstock.flows.testing import TestResult, run_tests

app = typer.Typer(
    no_args_is_help=True,
    help="Flows: messages through steps to other systems; new, check, test, run, deploy, draw.",
)
_BITS_OF_ORJSON = 63
FlowFile = Annotated[Path, typer.Argument(metavar="FILE", help="A flow (YAML).")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where it is written.")
]


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the flow.")],
    *,
    template: Annotated[
        str, typer.Option(metavar="TEMPLATE", help=f"One of: {', '.join(TEMPLATES)}.")
    ] = "kafka-to-rabbitmq",
    output: OutputOption = None,
) -> None:
    """Write a definition to begin with, which is valid and has a test.

    For example: penstock flows new large-orders --template http-to-kafka
    """
    text = definition_of(template, name)
    parse_flow(text)
    file = output or Path(f"{name}.yaml")
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} exists; give another name, or --output") from None
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None
    say(f"{file}: try it with: penstock flows test {file}")


@app.command()
def check(file: FlowFile, *, as_json: JsonOption = False) -> None:
    """Check a flow: every error with its line, and every option without an effect.

    For example: penstock flows check orders.yaml
    """
    try:
        flow = read_flow(file)
    except DefinitionError as error:
        if as_json:
            problems = [vars(problem) for problem in error.problems]
            print_json({"problems": problems, "notes": []})
            raise typer.Exit(error.exit_code) from None
        raise
    notes = flow.notes()
    if as_json:
        print_json({"problems": [], "notes": notes})
        return
    for note in notes:
        say(f"note: {note}")
    say(f"{file}: {flow.name} is a valid flow of {counted(len(list(flow.all_steps())), 'step')}")


@app.command()
def test(
    file: FlowFile,
    *,
    only: Annotated[
        str | None, typer.Option("--only", metavar="TEXT", help="Tests with this in their name.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Each message before and after each step.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the tests in a flow's file, without Kafka, Spark or any other system.

    Steps that ask a system get the replies of the test; nothing is sent.

    For example: penstock flows test orders.yaml --trace
    """
    flow = read_flow(file)
    results = run_tests(_selected(flow, only, file), traces=trace or as_json)
    if as_json:
        print_json(_as_printed([_as_json(result) for result in results]))
    else:
        for result in results:
            _show(result, trace)
    failed = sum(bool(result.differences) for result in results)
    say(f"{counted(len(results), 'test')}, {failed} failed")
    if failed:
        raise typer.Exit(1)


def _selected(flow: Flow, only: str | None, file: Path) -> Flow:
    tests = tuple(case for case in flow.tests if only is None or only in case.name)
    if not tests:
        known = ", ".join(case.name for case in flow.tests)
        raise ConfigError(
            f"{file} has no test with {only!r} in its name; it has: {known}"
            if known
            else f"{file} has no tests; add 'tests:' with messages and what is expected of them"
        )
    return flow.model_copy(update={"tests": tests})


def _show(result: TestResult, trace: bool) -> None:
    lines = [f"{'FAILED' if result.differences else 'ok'}  {result.case.name}"]
    if trace:
        lines += [line for entry in result.result.trace for line in _trace_lines(entry)]
    lines += [f"    {difference}" for difference in result.differences]
    write("".join(f"{printable(mask(line))}\n" for line in lines).encode("utf-8", "replace"))


def _trace_lines(entry: TraceEntry) -> list[str]:
    lines = [f"    {entry.step} ({entry.kind})", f"      before {_message(entry.before)}"]
    lines += [f"      after  {_message(message)}" for message in entry.after]
    if entry.error:
        lines.append(f"      error  {entry.error['Code']}: {entry.error['Description']}")
    elif not entry.after:
        lines.append("      after  nothing: the message ends here")
    return lines


def _message(message: Message) -> str:
    parts = {name: value for name, value in message.shown().items() if value not in ({}, None)}
    return "  ".join(f"{name}={shown(value)!r:.500}" for name, value in parts.items())


def _as_printed(value: Any) -> Any:
    """Return a value of JSON without the secrets of the definition; whole numbers have any length."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_as_printed(each) for each in value]
    if isinstance(value, dict):
        return {mask(name): _as_printed(each) for name, each in value.items()}
    if type(value) is int and value.bit_length() > _BITS_OF_ORJSON:
        return orjson.Fragment(str(value))
    return value


def _as_json(result: TestResult) -> dict[str, Any]:
    return {
        "name": result.case.name,
        "passed": not result.differences,
        "differences": result.differences,
        "trace": [
            {
                "step": entry.step,
                "kind": entry.kind,
                "before": shown(entry.before.shown()),
                "after": [shown(message.shown()) for message in entry.after],
                "error": entry.error,
            }
            for entry in result.result.trace
        ],
    }


@app.command()
def run(
    context: typer.Context,
    file: FlowFile,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Process the current backlog, then exit.")
    ] = False,
) -> None:
    """Run a flow, until Ctrl-C or, with --once, until the backlog is processed.

    For example: penstock flows run orders.yaml --once
    """
    flow = read_flow(file)
    cluster = context.obj.find() if context.obj.connection or context.obj.brokers else None
    # Spark is imported only when the definition is valid.
    from penstock.cli.pipelines import run_pipelines  # noqa: PLC0415
    from penstock.flows.spark.flow_pipeline import flow_pipeline, require_partitions  # noqa: PLC0415

    pipeline = flow_pipeline(flow, cluster)
    require_partitions(flow, pipeline)
    run_pipelines([pipeline], once=once)


@app.command()
def deploy(
    file: FlowFile,
    *,
    yes: YesOption = False,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="KEY=VALUE", help="A label; repeatable."),
    ] = None,
    server: ServerOption = None,
    ca: CaOption = None,
) -> None:
    """Deploy a flow on a server: show what changes, ask, and change it.

    The same as `penstock apply FILE`, which also takes folders of flows and pipelines.

    For example: penstock flows deploy orders.yaml --server https://penstock.example.com
    """
    from penstock.cli.apply import apply  # noqa: PLC0415 - the client of a server

    (definition,) = read_definitions([file])
    if not defines_flow(yaml.safe_load(definition.text)):
        raise ConfigError(
            f"{file} is not a flow: it has no trigger; a pipeline is deployed with: penstock apply {file}"
        )
    apply([file], yes=yes, label=label, server=server, ca=ca)


@app.command()
def draw(file: FlowFile, *, output: OutputOption = None) -> None:
    """Draw a flow as SVG, to standard output or into a file.

    For example: penstock flows draw orders.yaml -o orders.svg
    """
    svg = drawn(read_flow(file)).encode()
    if output is None:
        write(svg)
        return
    try:
        output.write_bytes(svg)
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from None
    say(f"{output} is drawn")
