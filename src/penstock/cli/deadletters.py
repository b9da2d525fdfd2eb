"""`penstock deadletters`: look at the records that a pipeline put aside, mend and replay or drop them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import JsonOption, YesOption
from penstock.cli.output import ask_first, counted, print_json, print_table, say, write
from penstock.cli.pipelines import on_the_cluster_given
from penstock.errors import ConfigError, nearest
from penstock.pipeline import Pipeline, read_pipeline

if TYPE_CHECKING:
    from penstock.engine.letters import DeadLetter

app = typer.Typer(
    no_args_is_help=True,
    help="List, show, replay and drop the records that a pipeline could not decode, shape or write.",
)


class Stage(str, Enum):
    """Where a record failed."""

    decode = "decode"
    step = "step"
    write = "write"


Definition = Annotated[
    Path, typer.Argument(metavar="FILE|JOB", help="A pipeline definition (YAML), or a job's name.")
]
StageOption = Annotated[Stage | None, typer.Option(help="Only those that failed there.")]
ErrorOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only those whose error has this text.")
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
        metavar="[ID...]", help="Letters, as `list` names them: topic-partition-offset."
    ),
]


@dataclass(frozen=True)
class Choice:
    """Which letters are meant."""

    ids: tuple[str, ...] = ()
    stage: Stage | None = None
    error: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing was said about which."""
        return self == Choice()

    def of(self, letters: Iterable[DeadLetter]) -> list[DeadLetter]:
        """Return the letters that are meant; an id that is none of them is refused."""
        all_of_them = list(letters)
        known = [letter.id for letter in all_of_them]
        for wanted in self.ids:
            if wanted not in known:
                hint = nearest(wanted, known[:1000]) if known else "none is waiting"
                raise ConfigError(f"there is no dead letter {wanted!r}; {hint}")
        return [letter for letter in all_of_them if self._means(letter)]

    def _means(self, letter: DeadLetter) -> bool:
        text = f"{letter.error_type}: {letter.error}".lower()
        at = letter.timestamp
        return all(
            (
                not self.ids or letter.id in self.ids,
                self.stage is None or letter.stage == self.stage.value,
                self.error is None or self.error.lower() in text,
                self.since is None or (at is not None and at >= self.since),
                self.until is None or (at is not None and at < self.until),
            )
        )


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
    """List the dead letters of a pipeline that nobody has replayed or dropped.

    For example: penstock deadletters list trades.yaml --stage decode --since 2026-01-31
    """
    found = _choice((), stage, error, since, until).of(_waiting(_pipeline(context, file)))
    if as_json:
        return print_json([_document(letter) for letter in found])
    print_table(
        ("id", "stage", "time", "error"),
        [(x.id, x.stage, _time(x), _short(f"{x.error_type}: {x.error}")) for x in found],
    )
    return say(counted(len(found), "dead letter"))


@app.command("show")
def show_letter(
    context: typer.Context,
    file: Definition,
    letter: Annotated[str, typer.Argument(metavar="ID", help="As `list` names it.")],
    value_only: Annotated[
        bool, typer.Option("--value", help="Only the bytes of the value, to edit them in a file.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one dead letter whole: the record as it was, where it came from, what was wrong.

    For example: penstock deadletters show trades.yaml trades-0-42

    penstock deadletters show trades.yaml trades-0-42 --value > value.json
    """
    found = Choice((letter,)).of(_waiting(_pipeline(context, file)))[-1]
    if value_only:
        return write(found.value or b"")
    if as_json:
        return print_json(_document(found))
    return print_table(("field", "value"), list(_document(found).items()))


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
    every: Annotated[bool, typer.Option("--all", help="Replay all that are waiting.")] = False,
    value: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Another value, for one letter.")
    ] = None,
    value_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another value, from a file.")
    ] = None,
    yes: YesOption = False,
) -> None:
    """Run dead letters through their pipeline once more, as they are or with another value.

    For example: penstock deadletters replay trades.yaml --all

    penstock deadletters replay trades.yaml trades-0-42 --value-file value.json

    Each is replayed once: what fails again is a new dead letter. A replay that was cut short is
    finished by the next one. With upsert, a replayed record replaces a newer row of its key.
    """
    pipeline = _pipeline(context, file)
    choice = _choice(tuple(ids or ()), stage, error, since, until)
    _refuse_everything(choice, every, "replay")
    found = choice.of(_waiting(pipeline))
    edited = _edited(found, value, value_file)
    if not yes and found:
        ask_first(f"replay {counted(len(found), 'dead letter')}?", "nothing was replayed")
    from penstock.engine import stop_session  # noqa: PLC0415
    from penstock.engine.letters import replay  # noqa: PLC0415

    try:
        done = replay(pipeline, found, edited)
    finally:
        stop_session()
    say(
        f"{counted(done.letters, 'dead letter')} replayed: {counted(done.rows, 'row')} written, "
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
    every: Annotated[bool, typer.Option("--all", help="Drop all that are waiting.")] = False,
    yes: YesOption = False,
) -> None:
    """Say that nothing shall be done with dead letters: they are not listed or replayed any more.

    For example: penstock deadletters drop trades.yaml --error "not JSON"

    The records stay in the dead-letter topic or table; only a note is added.
    """
    pipeline = _pipeline(context, file)
    choice = _choice(tuple(ids or ()), stage, error, since, until)
    _refuse_everything(choice, every, "drop")
    found = choice.of(_waiting(pipeline))
    if not yes and found:
        ask_first(f"drop {counted(len(found), 'dead letter')}?", "nothing was dropped")
    _with_box(pipeline, lambda box: box.drop(found))
    say(f"{counted(len(found), 'dead letter')} dropped")


def _pipeline(context: typer.Context, file: Path) -> Pipeline:
    if file.suffix in (".yaml", ".yml") or file.exists():
        return on_the_cluster_given(read_pipeline(file), context.obj)
    from penstock.jobs import find_job  # noqa: PLC0415 - it brings Spark along

    return on_the_cluster_given(find_job(str(file)).pipeline, context.obj)


def _waiting(pipeline: Pipeline) -> list[DeadLetter]:
    found: list[DeadLetter] = _with_box(pipeline, lambda box: box.waiting())
    return found


def _with_box(pipeline: Pipeline, use: Callable[[Any], Any]) -> Any:
    """Letters in a topic need no Spark; those in a table start it, and it ends with the command."""
    from penstock.engine import stop_session  # noqa: PLC0415
    from penstock.engine.letters import Letterbox  # noqa: PLC0415

    try:
        return use(Letterbox(pipeline))
    finally:
        stop_session()


def _choice(
    ids: tuple[str, ...],
    stage: Stage | None,
    error: str | None,
    since: str | None,
    until: str | None,
) -> Choice:
    return Choice(ids, stage, error, _moment(since, "--since"), _moment(until, "--until"))


def _moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} is not a time; allowed: ISO-8601, as in 2026-01-31T08:00 (UTC)"
        ) from None
    return given if given.tzinfo else given.replace(tzinfo=timezone.utc)


def _refuse_everything(choice: Choice, every: bool, what: str) -> None:
    if choice.is_all and not every:
        raise ConfigError(
            f"say which dead letters to {what}: ids, --stage, --error, --since, --until, or --all"
        )


def _edited(
    found: list[DeadLetter], value: str | None, value_file: Path | None
) -> dict[str, bytes]:
    if value is None and value_file is None:
        return {}
    if value is not None and value_file is not None:
        raise ConfigError("given --value and --value-file: give one of them")
    if len(found) != 1:
        raise ConfigError(
            f"another value is for one dead letter; {len(found)} are chosen: name one by its id"
        )
    new = value.encode() if value is not None else _content(value_file)
    return {found[0].id: new}


def _content(file: Path | None) -> bytes:
    assert file is not None  # noqa: S101
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None


def _document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "pipeline": letter.pipeline,
        "stage": letter.stage,
        "error_type": letter.error_type,
        "error": letter.error,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "time": _time(letter),
        "epoch": letter.epoch,
        "batch": letter.batch,
        "key": _text(letter.key),
        "value": _text(letter.value),
        "headers": {name: _text(value) for name, value in letter.headers},
    }


def _time(letter: DeadLetter) -> str | None:
    return letter.timestamp.isoformat(timespec="milliseconds") if letter.timestamp else None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _short(text: str, most: int = 100) -> str:
    line = text.replace("\n", " ")
    return line if len(line) <= most else f"{line[: most - 1]}…"
