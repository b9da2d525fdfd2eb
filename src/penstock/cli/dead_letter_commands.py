"""`penstock deadletters`: list and show the dead letters of a pipeline, replay or drop them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import engine, jobs
from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, counted, print_json, print_table, say, write
from penstock.cli.pipelines import with_cluster
from penstock.engine.dead_letters.dead_letter_choice import Choice, Stage, choice, named
from penstock.errors import ConfigError
from penstock.flows.dead_letters import payload_of, text_of
from penstock.flows.definition.flow import Flow
from penstock.flows.definition.reading import is_flow, read_flow
from penstock.flows.spark.flow_pipeline import flow_pipeline, flow_step
from penstock.pipeline import Pipeline, read_pipeline

if TYPE_CHECKING:
    from penstock.engine.dead_letters import DeadLetter, Replayed

app = typer.Typer(
    no_args_is_help=True,
    help="List, show, replay and drop the records that a pipeline could not decode, process or write.",
)


Definition = Annotated[
    Path, typer.Argument(metavar="FILE|JOB", help="A pipeline or flow (YAML), or a job's name.")
]
StageOption = Annotated[Stage | None, typer.Option(help="Only this stage.")]
ErrorOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only errors with this text.")
]
SinceOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only records of that time or later (ISO-8601).")
]
UntilOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only records before that time (ISO-8601).")
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID...]",
        help="Ids, as `list` shows them: topic-partition-offset, followed by ~epoch~batch if a "
        "record failed more than once.",
    ),
]


@app.command("list")
def list_letters(
    context: typer.Context,
    file: Definition,
    *,
    stage: StageOption = None,
    error: ErrorOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the dead letters of a pipeline that were neither replayed nor dropped.

    For example: penstock deadletters list trades.yaml --stage decode --since 2026-01-31
    """
    letters = choice((), stage, error, since, until).of(_waiting(_pipeline(context, file)))
    if as_json:
        return print_json([_document(letter) | {"id": name} for name, letter in named(letters)])
    print_table(
        ("id", "stage", "time", "error"),
        [
            (name, x.stage, _time(x), _short(f"{x.error_type}: {x.error}"))
            for name, x in named(letters)
        ],
    )
    return say(counted(len(letters), "dead letter"))


@app.command("show")
def show_letter(
    context: typer.Context,
    file: Definition,
    letter: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `list` shows it.")],
    *,
    value_only: Annotated[
        bool,
        typer.Option(
            "--value",
            help="Only the bytes of the value, to edit them in a file; of a flow the payload at the step "
            "that failed.",
        ),
    ] = False,
    message_only: Annotated[
        bool,
        typer.Option(
            "--message",
            help="Of a flow: only the message at the step that failed, as JSON, to edit it in a file.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one dead letter in full: the original record, its origin and its error.

    For example: penstock deadletters show trades.yaml trades-0-42

    penstock deadletters show trades.yaml trades-0-42 --value > value.json

    penstock deadletters show orders-flow.yaml orders-0-42 --message > message.json
    """
    pipeline = _pipeline(context, file)
    dead_letter = Choice((letter,)).of(_waiting(pipeline))[-1]
    if value_only:
        return write(_value(pipeline, dead_letter))
    if message_only:
        return write(text_of(dead_letter, _flow(pipeline, "--message")).encode())
    if as_json:
        return print_json(_document(dead_letter))
    return print_table(("field", "value"), list(_document(dead_letter).items()))


@app.command("replay")
def replay_letters(
    context: typer.Context,
    file: Definition,
    ids: Ids = None,
    *,
    stage: StageOption = None,
    error: ErrorOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    every: Annotated[bool, typer.Option("--all", help="Replay all waiting dead letters.")] = False,
    value: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Another value, for one dead letter.")
    ] = None,
    value_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another value, from a file.")
    ] = None,
    message_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of a flow: another message, from a file in the form of `show --message`: payload, "
            "attributes, variables.",
        ),
    ] = None,
    from_step: Annotated[
        str | None,
        typer.Option(
            "--from-step",
            metavar="STEP",
            help="Of a flow: begin with this step, by its id or place, not with the one that failed.",
        ),
    ] = None,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Also finish replays that were started with another state folder and have not ended; "
            "make sure that they are not running any more.",
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """Run dead letters through their pipeline again, unchanged or with another value.

    Messages of a flow begin with the step that failed, as they were there; the value is their payload.

    For example: penstock deadletters replay trades.yaml --all

    penstock deadletters replay trades.yaml trades-0-42 --value-file value.json

    Each is replayed once: a record that fails again is a new dead letter. An interrupted replay is
    finished by the next one. Two replays of a dead letter, on any machine, write it once. With upsert, a
    replayed record replaces a newer row of its key.
    """
    pipeline = _pipeline(context, file)
    chosen = choice(tuple(ids or ()), stage, error, since, until)
    _refuse_everything(chosen, every, "replay")
    letters = chosen.of(_waiting(pipeline))
    edited = _edited(letters, value, value_file)
    messages = _edited(letters, None, message_file)
    if edited and messages:
        raise ConfigError("--message-file has the payload, too: leave out --value and --value-file")
    if not yes and letters:
        ask_first(f"replay {counted(len(letters), 'dead letter')}?", "nothing was replayed")
    try:
        done = _replayed(
            pipeline, letters, edited, messages, from_step=from_step, take_over=take_over
        )
    finally:
        engine.stop_session()
    for owner in done.elsewhere:
        say(
            f"a replay that was started on {owner} has not ended, and its dead letters are skipped: if "
            "it is not running any more, finish it with --take-over"
        )
    if done.taken:
        say(
            f"{counted(done.taken, 'dead letter')} not replayed: another replay or drop took them; "
            "list the remaining ones"
        )
    rows = "message" if flow_step(pipeline) else "row"
    say(
        f"{counted(done.letters, 'dead letter')} replayed: {counted(done.rows, rows)} written, "
        f"{done.failed_again} failed again"
    )
    if done.failed_again:
        raise typer.Exit(1)


@app.command("drop")
def drop_letters(
    context: typer.Context,
    file: Definition,
    ids: Ids = None,
    *,
    stage: StageOption = None,
    error: ErrorOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    every: Annotated[bool, typer.Option("--all", help="Drop all waiting dead letters.")] = False,
    yes: YesOption = False,
) -> None:
    """Mark dead letters as dropped: they are not listed or replayed any more.

    For example: penstock deadletters drop trades.yaml --error "not JSON"

    The records stay in the dead-letter topic or table; only a marker is added.
    """
    pipeline = _pipeline(context, file)
    chosen = choice(tuple(ids or ()), stage, error, since, until)
    _refuse_everything(chosen, every, "drop")
    letters = chosen.of(_waiting(pipeline))
    if not yes and letters:
        ask_first(f"drop {counted(len(letters), 'dead letter')}?", "nothing was dropped")
    from penstock.engine.dead_letters import alone  # noqa: PLC0415

    with alone(pipeline):
        dropped = _with_store(pipeline, lambda store: store.drop(letters))
    say(f"{counted(dropped, 'dead letter')} dropped")


def _replayed(
    pipeline: Pipeline,
    letters: list[DeadLetter],
    edited: dict[str, bytes],
    messages: dict[str, bytes],
    *,
    from_step: str | None,
    take_over: bool,
) -> Replayed:
    if step := flow_step(pipeline):
        from penstock.flows.replay import replay_flow  # noqa: PLC0415 - it imports Spark

        return replay_flow(
            pipeline,
            step,
            letters,
            edited,
            messages=messages,
            from_step=from_step,
            take_over=take_over,
        )
    for given, option in ((from_step, "--from-step"), (messages, "--message-file")):
        if given:
            _flow(pipeline, option)
    from penstock.engine.dead_letters import replay  # noqa: PLC0415

    return replay(pipeline, letters, edited, take_over=take_over)


def _flow(pipeline: Pipeline, option: str) -> Flow:
    step = flow_step(pipeline)
    if step is None:
        raise ConfigError(f"{option} is for flows, and {pipeline.name!r} is a pipeline")
    return step.flow


def _value(pipeline: Pipeline, letter: DeadLetter) -> bytes:
    if step := flow_step(pipeline):
        return payload_of(letter, step.flow)
    return letter.value or b""


def _pipeline(context: typer.Context, file: Path) -> Pipeline:
    if is_flow(file):
        cluster = context.obj.find() if context.obj.connection or context.obj.brokers else None
        return flow_pipeline(read_flow(file), cluster)
    if file.suffix in (".yaml", ".yml") or file.exists():
        return with_cluster(read_pipeline(file), context.obj)
    return with_cluster(jobs.find_job(str(file)).pipeline, context.obj)


def _waiting(pipeline: Pipeline) -> list[DeadLetter]:
    letters: list[DeadLetter] = _with_store(pipeline, lambda store: store.waiting())
    return letters


def _with_store(pipeline: Pipeline, use: Callable[[Any], Any]) -> Any:
    """Use the store; only dead letters in a table start Spark, which ends with the command."""
    from penstock.engine.dead_letters import DeadLetterStore  # noqa: PLC0415

    try:
        return use(DeadLetterStore(pipeline))
    finally:
        engine.stop_session()


def _refuse_everything(choice: Choice, every: bool, what: str) -> None:
    if choice == Choice() and not every:
        raise ConfigError(
            f"say which dead letters to {what}: ids, --stage, --error, --since, --until, or --all"
        )


def _edited(
    letters: list[DeadLetter], value: str | None, value_file: Path | None
) -> dict[str, bytes]:
    if value is None and value_file is None:
        return {}
    if value is not None and value_file is not None:
        raise ConfigError("--value and --value-file were both given; give one of them")
    if len(letters) != 1:
        raise ConfigError(
            f"another value is for one dead letter, but {len(letters)} are selected: name one by its id"
        )
    try:
        new = value_file.read_bytes() if value_file is not None else str(value).encode()
    except OSError as error:
        raise ConfigError(f"cannot read {value_file}: {error.strerror}") from None
    return {letters[0].full_id: new}


def _document(letter: DeadLetter) -> dict[str, Any]:
    return {
        **letter.described(),
        "time": _time(letter),
        "key": _text(letter.key),
        "value": _text(letter.value),
        "headers": {name: _text(value) for name, value in letter.headers},
    }


def _time(letter: DeadLetter) -> str | None:
    at = letter.timestamp
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds") if at else None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _short(text: str, most: int = 100) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= most else f"{line[: most - 1]}…"
