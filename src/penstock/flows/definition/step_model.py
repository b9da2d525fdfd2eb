"""A step of a definition: one kind with its options, and what all kinds have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import Self

from penstock.errors import nearest
from penstock.flows.definition.model import FlowModel, build, refused
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from penstock.flows.running.bound_step import BoundStep
    from penstock.flows.running.stages import Bind

DEEPEST = 16
MOST_OF_A_BATCH = 1_000_000
_depth: ContextVar[int] = ContextVar("depth", default=0)


class FlowStep(FlowModel):
    """The base of all kinds of steps."""

    name: ClassVar[str]
    # The option that a bare value stands for: `filter: ...` is `filter: {condition: ...}`.
    main_option: ClassVar[str | None] = None

    @abstractmethod
    def bound(self, bind: Bind, path: str) -> BoundStep:
        """Return what runs the step; `path` is its place in the definition, `bind` binds steps in it."""

    def blocks(self) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
        """Yield the lists of steps in it: where they are, what leads there, and the steps."""
        yield from ()

    def acts_outside(self) -> bool:
        """Return whether it changes another system than Kafka, which it does again after a crash."""
        return False

    def most_of_a_batch(self) -> int:
        """Return how many messages a batch should have at most."""
        return MOST_OF_A_BATCH

    def summary(self) -> str:
        """Return what it does, in a few words, for drawings and traces."""
        main = getattr(self, self.main_option, "") if self.main_option else ""
        return str(getattr(main, "given", main))


KINDS: dict[str, type[FlowStep]] = {}
"""All kinds of steps by their names."""


def step_kind(cls: type[FlowStep]) -> type[FlowStep]:
    """Add a kind of steps to the table."""
    KINDS[cls.name] = cls
    return cls


class Retry(FlowModel):
    """How often a step is tried again for a message, and how long it waits before."""

    attempts: int = Field(default=3, ge=1, le=100, description="The most attempts, with the first.")
    wait: Duration = Field(
        default=1.0, ge=0, le=3600, description="The first wait; each is twice the last."
    )
    longest: Duration = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="The longest of these waits. A `Retry-After` of a server may be longer: an hour at "
        "most.",
    )
    codes: tuple[str, ...] = Field(
        default=(),
        description="The codes of errors after which it is tried again, as `HTTP:5*`; default: those of "
        "systems that are unavailable or busy.",
    )

    @model_validator(mode="before")
    @classmethod
    def _number_alone(cls, given: Any) -> Any:
        return {"attempts": given} if isinstance(given, int) else given

    @model_validator(mode="after")
    def _codes_exist(self) -> Self:
        check_codes(self.codes)
        return self

    def waits(self) -> Iterator[float]:
        """Yield the waits between the attempts.

        >>> list(Retry(attempts=4, wait=1, longest=3).waits())
        [1.0, 2.0, 3.0]
        """
        for number in range(self.attempts - 1):
            yield min(self.longest, self.wait * 2.0**number)


def check_codes(codes: tuple[str, ...]) -> None:
    """Raise where a text does not name codes of errors."""
    from penstock.flows.error_codes import CODES, is_pattern  # noqa: PLC0415 - it imports expressions

    for code in codes:
        if not is_pattern(code):
            known = [each.code for each in CODES]
            raise refused(
                f"{code!r} names no code of an error; {nearest(code, known)}; * at its end stands for any"
            )


class Handler(FlowModel):
    """Steps for messages that failed; `error` has the reason."""

    handler: Steps = Field(min_length=1, description="The steps.")
    then: Literal["end", "continue", "dead-letter"] = Field(
        default="end",
        description="What becomes of the message after them: it ends, goes on with the next step, or "
        "goes to the dead letters.",
    )


OnError = Literal["stop", "continue", "dead-letter", "handler"] | Handler
_WORDS = ("stop", "continue", "dead-letter", "handler")


def read_on_error(given: Any) -> Any:
    """Read what happens to messages that fail: a word, or a mapping with steps."""
    if isinstance(given, Mapping):
        return build(Handler, "", given, None) if not given else _handler(given)
    if isinstance(given, Handler) or given is None or given in _WORDS:
        return given
    hint = nearest(given, _WORDS) if isinstance(given, str) else "allowed: " + ", ".join(_WORDS)
    raise refused(f"given {given!r:.60}; {hint}, or a mapping with 'handler: [steps]'")


def _handler(given: Mapping[str, Any]) -> Handler:
    return Handler.model_validate(dict(given))


class _OnErrorReader:
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            read_on_error,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: value.model_dump() if isinstance(value, Handler) else value
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"enum": list(_WORDS)}, {"type": "object", "required": ["handler"]}]}


AnyOnError = Annotated[OnError | None, _OnErrorReader()]


class StepOptions(FlowModel):
    """What every step may have in addition to its kind."""

    id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$",
        description="A name of the step: for traces, dead letters, replays and tests.",
    )
    retry: Retry | None = Field(
        default=None, description="How often it is tried again for a message; a number, or options."
    )
    on_error: AnyOnError = Field(
        default=None,
        description="What becomes of a message for which it fails: `stop`, `continue`, `dead-letter`, "
        "`handler` (of the flow), or `{handler: [steps]}`; default: as around it (a `try`, the flow).",
    )


class Step(StepOptions):
    """A step with its kind."""

    kind: FlowStep

    @classmethod
    def read(cls, given: Any) -> Step:
        """Read `{KIND: options}` with the common options next to it."""
        if isinstance(given, Step):
            return given
        token = _depth.set(_depth.get() + 1)
        try:
            if _depth.get() > DEEPEST:
                raise refused(
                    f"steps are nested deeper than {DEEPEST} levels; publish to a topic in between, "
                    "and read it with a second flow"
                )
            return cls._read(given)
        finally:
            _depth.reset(token)

    @classmethod
    def _read(cls, given: Any) -> Step:
        if isinstance(given, str) and given in KINDS:
            given = {given: {}}
        if not isinstance(given, Mapping):
            raise refused(
                f"given {given!r:.60}; a step is written as one kind with its options, as in "
                f"'filter: payload.total > 100'; kinds: {', '.join(sorted(KINDS))}"
            )
        common = [*StepOptions.model_fields]
        kinds = [str(key) for key in given if key not in common]
        unknown = next((kind for kind in kinds if kind not in KINDS), None)
        if unknown is not None:
            raise refused(f"there is no step {unknown!r}; {nearest(unknown, [*KINDS, *common])}")
        if len(kinds) != 1:
            what = f"given {' and '.join(kinds)}" if kinds else "given none"
            raise refused(f"a step has exactly one kind, {what}; kinds: {', '.join(sorted(KINDS))}")
        (name,) = kinds
        options = build(StepOptions, "", {key: given[key] for key in common if key in given}, None)
        made = build(
            KINDS[name], name, {} if given[name] is None else given[name], KINDS[name].main_option
        )
        return cls.model_construct(
            _fields_set={*options.model_fields_set, "kind"}, kind=made, **dict(options)
        )

    def unused(self) -> dict[str, str]:
        """Return the options around a step that itself never fails."""
        is_used = self.kind.name != "try"
        return self._unless(is_used, "give it to the steps in the 'try'", "retry", "on_error")

    def written(self, context: Any = None) -> dict[str, Any]:
        """Return the step as a definition writes it."""
        common = {name: getattr(self, name) for name in StepOptions.model_fields}
        dumped = StepOptions.model_construct(**common).model_dump(
            mode="json", exclude_defaults=True, context=context
        )
        options = self.kind.model_dump(mode="json", exclude_unset=True, context=context)
        return {**dumped, self.kind.name: options}


class _StepReader:
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            Step.read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda step, info: step.written(info.context), info_arg=True
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        names = [*KINDS, *StepOptions.model_fields]
        return {"type": "object", "propertyNames": {"enum": names}, "minProperties": 1}


AnyStep = Annotated[Step, _StepReader()]
Steps = tuple[AnyStep, ...]
Handler.model_rebuild()
StepOptions.model_rebuild()
