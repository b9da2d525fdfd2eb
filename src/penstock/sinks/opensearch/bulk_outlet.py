"""Sends rows in bulk requests: again what the server was too busy for, in halves what is too large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa

from penstock.config.logs import event_logger
from penstock.errors import ConfigError
from penstock.http.busy_wait import BusyWait
from penstock.http.http_reply import Reply, retry_after
from penstock.sinks.messages import Outlet, RecordIds, Refusal
from penstock.sinks.opensearch.bulk_reply import Outcome, Verdict, described, outcomes
from penstock.sinks.opensearch.bulk_rows import BulkForm, BulkRows, bulk_rows
from penstock.sinks.opensearch.index_setup import make_data_stream
from penstock.sinks.opensearch.search_nodes import NodeOptions, require_rights

log = event_logger(__name__)
_WANTED = "filter_path=errors,items.*.status,items.*.error"
_CONFLICTS_ARE_KNOWN = ("create", "index", "delete")


@dataclass(frozen=True)
class BulkOptions:
    """What the outlet of a task needs; sent there."""

    nodes: NodeOptions
    form: BulkForm
    data_stream: bool
    batch_bytes: int
    patience: float

    def open(self) -> BulkOutlet:
        """Return the outlet."""
        return BulkOutlet(self)


class BulkOutlet(Outlet):
    """Writes documents. Rows with the same id are written in their order."""

    def __init__(self, options: BulkOptions) -> None:
        self._options = options
        self._nodes = options.nodes.connect()
        self._ids = RecordIds()
        self._known = 0
        self._streams: set[str] = set()
        index = f"/{quote(options.form.index_prefix, safe='')}" if options.form.fixed_index else ""
        self._path = f"{index}/_bulk?{_WANTED}"

    def close(self) -> None:
        """Close the connections."""
        if self._known:
            log.info("documents_known", count=self._known)
        self._nodes.close()

    def send(self, rows: pa.RecordBatch) -> Iterator[Refusal]:
        """Write the rows, each confirmed; return those that the server refuses."""
        ids = None if "id" in rows.schema.names else self._ids.of(rows)
        ready, refused = bulk_rows(self._options.form, rows, ids)
        yield from refused
        if self._options.data_stream:
            self._make_streams(ready.names())
        for part in ready.parts(self._options.batch_bytes):
            yield from self._deliver(part)

    def _deliver(self, rows: BulkRows) -> Iterator[Refusal]:
        waiting = BusyWait(self._options.patience)
        while len(rows):
            reply = self._nodes.bulk(self._path, rows.body())
            if reply.status == 429:
                waiting.wait(f"{reply} is busy", retry_after(reply, 0.0))
                continue
            if reply.status in (400, 413):
                yield from self._divide(rows, reply)
                return
            failed = self._failed(reply, rows)
            yield from _refused(rows, failed)
            resend = [each for each in failed if each.verdict is Verdict.RESEND]
            if not resend:
                return
            waiting.wait(f"the search server is busy: {resend[0].error}")
            rows = rows.take(_to_resend(rows, failed))

    def _divide(self, rows: BulkRows, reply: Reply) -> Iterator[Refusal]:
        """Send halves: the request is too large, or one of its rows makes it invalid."""
        if len(rows) > 1:
            middle = len(rows) // 2
            yield from self._deliver(rows.part(0, middle))
            yield from self._deliver(rows.part(middle, len(rows)))
            return
        kind, why = _of_request(reply)
        yield Refusal(int(rows.numbers[0]), kind, why)

    def _failed(self, reply: Reply, rows: BulkRows) -> list[Outcome]:
        require_rights(reply)
        if reply.status != 200:
            raise ConfigError(f"{reply} does not accept bulk requests; check 'url'")
        known = self._options.form.operation in _CONFLICTS_ARE_KNOWN
        failed = outcomes(reply, len(rows), conflicts_are_known=known)
        self._known += sum(each.verdict is Verdict.KNOWN for each in failed)
        return failed

    def _make_streams(self, names: Iterable[str]) -> None:
        for name in {*names} - self._streams:
            make_data_stream(self._nodes, name)
            self._streams.add(name)


def _refused(rows: BulkRows, failed: list[Outcome]) -> Iterator[Refusal]:
    for each in failed:
        if each.verdict is Verdict.REFUSED:
            yield Refusal(int(rows.numbers[each.row]), each.error_type, each.error)


def _to_resend(rows: BulkRows, failed: list[Outcome]) -> np.ndarray:
    """Return the rows to send again: later ones of the same documents, too, so that the last one wins."""
    targets = rows.targets()
    done = {each.row for each in failed if each.verdict is not Verdict.RESEND}
    busy = {each.row for each in failed if each.verdict is Verdict.RESEND}
    begun: set[object] = set()
    again = []
    for row, target in enumerate(targets):
        if row in busy or (target in begun and row not in done):
            begun.add(target)
            again.append(row)
    return np.array(again, np.int64)


def _of_request(reply: Reply) -> tuple[str, str]:
    """Return the kind and the reason of a request that is refused as a whole."""
    if reply.status == 413:
        return "too_large", f"{reply}: the document is larger than the server accepts"
    try:
        return described(msgspec.json.decode(reply.body)["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return "bad_request", str(reply)
