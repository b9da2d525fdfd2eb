"""The sink `opensearch` (alias `elasticsearch`): its options, and what it promises."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from penstock.http.http_options import Auth, Url
from penstock.pipeline import EVERY_DELIVERY, Opening, Sink, Writer
from penstock.pipeline.values import Duration
from penstock.sinks.messages.column_template import ColumnTemplate
from penstock.sinks.opensearch.index_names import name_problem
from penstock.sinks.opensearch.opensearch_writer import OpensearchWriter

Operation = Literal["index", "create", "upsert", "delete"]


class OpensearchSink(Sink):
    """Rows as documents of a search index: OpenSearch, or Elasticsearch.

    At-least-once: a batch is done when the server has confirmed each of its documents. A batch that is
    repeated after a crash writes the same ids: by default an id is the place of the row's record
    (`topic-partition-offset`), so that each document is in the index once. With `id`, it is the value of
    columns; a repeat then writes the documents of the batch again, in the same order.

    A document that the server refuses (`mapper_parsing_exception` and others) goes to the dead letters
    with the server's reason; all others of the batch are written. While the server is busy (429), only
    what it did not take is sent again; while it is away, the pipeline waits.
    """

    python_tasks = EVERY_DELIVERY
    names_refused = True
    why_not = (
        "an index has no transaction of documents and progress; with at-least-once and ids of places "
        "(the default) a repeat replaces the same documents, and each record is in the index once"
    )
    name = "opensearch"

    url: tuple[Url, ...] = Field(
        min_length=1,
        description="The addresses of one or more nodes of one cluster, with http or https.",
    )
    index: str = Field(
        min_length=1,
        description="The index, alias or data stream; with columns as `{region}` or, for dates in UTC, "
        "`orders-{at:%Y.%m}`. Values are written in lower case.",
    )
    id: tuple[str, ...] = Field(
        default=(),
        description="The column or columns that are the id of a document; several are joined by `|`. "
        "Default: the place of the record, `topic-partition-offset`.",
    )
    value: str | None = Field(
        default=None,
        description="The column that is the document, a JSON object; default: all other columns.",
    )
    operation: Operation = Field(
        default="index",
        description="`index` replaces a document, `create` leaves an existing one as it is, `upsert` "
        "changes those fields of it that the row has, `delete` removes it.",
    )
    delete_when: str | None = Field(
        default=None, description="A column (boolean): where true, the document is deleted instead."
    )
    delete_null: bool = Field(
        default=False,
        description="Whether a null in the column `value` (a tombstone) deletes the document.",
    )
    version: str | None = Field(
        default=None,
        description="The column (whole number) that is the version of the document: a row that is not "
        "newer than the document is ignored.",
    )
    data_stream: bool = Field(
        default=False, description="Whether `index` is a data stream: documents are only added."
    )
    timestamp: str | None = Field(
        default=None, description="The column that becomes the document's `@timestamp`."
    )
    mapping: dict[str, Any] = Field(
        default={},
        description="The mapping (`properties: ...`) of the index, before the first row.",
    )
    settings: dict[str, Any] = Field(
        default={},
        description="The settings of an index that has to be made, as `number_of_shards`.",
    )
    index_template: dict[str, Any] = Field(
        default={},
        description="An index template of the server, written before the first row under the name of the "
        "pipeline; `index_patterns` is by default what `index` can become.",
    )
    auth: Auth | None = Field(
        default=None,
        description="Who writes: `basic`, `bearer`, `oauth` or `api_key` (a text: the encoded key).",
    )
    ca: str | None = Field(
        default=None,
        description="PEM file of the authorities to trust, on each machine that runs tasks; default: "
        "those of the machine.",
    )
    gzip: bool = Field(default=False, description="Whether requests are compressed.")
    batch_bytes: int = Field(
        default=5 * 2**20,
        ge=1,
        le=100 * 2**20,
        description="About how many bytes a request has; a larger document is sent alone.",
    )
    timeout: Duration = Field(
        default=60.0, gt=0, description="The longest time for a request and its reply."
    )
    retry_time: Duration = Field(
        default=30.0,
        ge=0,
        description="For how long a busy server is asked again before the batch is repeated later.",
    )

    @model_validator(mode="before")
    @classmethod
    def _plain_forms(cls, given: Any) -> Any:
        """Read one address and one column as lists, and the key of an API as the header that has it."""
        if not isinstance(given, dict):
            return given
        read = dict(given)
        for name in ("url", "id"):
            if isinstance(read.get(name), str):
                read[name] = (read[name],)
        auth = read.get("auth")
        if isinstance(auth, dict) and isinstance(auth.get("api_key"), str):
            key = {"header": "Authorization", "secret": f"ApiKey {auth['api_key']}"}
            read["auth"] = {**auth, "api_key": key}
        return read

    @field_validator("url")
    @classmethod
    def _are_nodes(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if "?" in url:
                raise ValueError(f"{url!r} has parameters; give the address of a node alone")
        return urls

    @field_validator("index")
    @classmethod
    def _is_a_name(cls, index: str) -> str:
        template = ColumnTemplate.read(index)
        sample = "".join("x" if part.column else part.text for part in template.parts)
        if problem := name_problem(sample, template.prefix):
            raise ValueError(problem if not template.columns else f"{index!r}: {problem}")
        return index

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> list[str]:
        deletes = self.delete_null or self.delete_when is not None
        named = bool(self.id)
        adds = self.operation == "create"
        checks = {
            "'delete_null' needs the column of the document: give 'value'": self.delete_null
            and not self.value,
            "to delete documents, name them: give their columns in 'id'": not named
            and (deletes or self.operation == "delete"),
            "'operation: upsert' changes a document that has an id of its own: give its columns in "
            "'id'": not named and self.operation == "upsert",
            "'operation: delete' deletes each row's document: leave out 'delete_when', 'delete_null' "
            "and 'value'": self.operation == "delete" and (deletes or self.value is not None),
            f"'version' is allowed with the operations index and delete, given: {self.operation}": (
                self.version is not None and self.operation not in ("index", "delete")
            ),
            "'version' compares rows of one document: give its columns in 'id'": (
                self.version is not None and not named
            ),
            "a data stream only takes new documents: give 'operation: create', "
            f"given: {self.operation}": (self.data_stream and not adds),
            "a data stream cannot delete documents: leave out 'delete_when' and 'delete_null'": (
                self.data_stream and deletes
            ),
            "'timestamp' and 'value' are both given: the document is the column 'value' as it is": (
                self.timestamp is not None and self.value is not None
            ),
            "'index_template' and 'mapping' or 'settings' are both given: put them into the template": (
                bool(self.index_template) and bool(self.mapping or self.settings)
            ),
            "'mapping' and 'settings' of a data stream are in its template: give 'index_template'": (
                self.data_stream and bool(self.mapping or self.settings)
            ),
            "'index_template' of a data stream needs 'data_stream: {}' in it": (
                self.data_stream
                and bool(self.index_template)
                and "data_stream" not in self.index_template
            ),
            "'index' begins with a column, so that a template for it would match every index of the "
            "server: begin it with a text": self._sets_up
            and not ColumnTemplate.read(self.index).prefix,
        }
        return [problem for problem, is_wrong in checks.items() if is_wrong]

    @property
    def _sets_up(self) -> bool:
        return bool(self.index_template or self.mapping or self.settings)

    def open(self, opening: Opening) -> Writer:
        """Return what writes the documents."""
        return OpensearchWriter(self, opening)
