"""Keys and values of a batch of records with their converters, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.connect.aligned import Aligned, moved, scattered
from penstock.decode.kernels.connect.envelopes import EnvelopePlan, EnvelopeReader, Origins
from penstock.decode.kernels.connect.payloads import PayloadReader
from penstock.decode.kernels.outcome import Decoded, Failure
from penstock.decode.kernels.primitive_kernel import Primitive, PrimitiveKernel
from penstock.formats.connect.schema import Schema

Reader = Callable[[pa.Array, Origins], Aligned]
Make = Callable[[], Reader]


def bad_column(part: str) -> str:
    """Return the column that marks records whose key or value Spark found to be bad."""
    return f"_penstock_bad_{part}"


@dataclass(frozen=True)
class RecordPlan:
    """What a worker needs: how keys and values are read there, and what Spark looked at itself."""

    readers: Mapping[str, Make]
    checked: Mapping[str, str]

    def columns(self) -> list[str]:
        """Return the columns that the kernel reads; `value` is one for the marks of bad records."""
        origins = ["topic", "partition", "offset"]
        return [*origins, *{"value": 1, **self.readers}, *map(bad_column, self.checked)]


class RecordKernel:
    """Decodes the parts of records that Python decodes; a bad part is a failure of the record."""

    def __init__(self, plan: RecordPlan) -> None:
        self._readers = {part: make() for part, make in plan.readers.items()}
        self._checked = plan.checked

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the decoded parts of the good records, and the failures."""
        origins = Origins(*(batch.column(name) for name in ("topic", "partition", "offset")))
        failures: dict[int, Failure] = {}
        for part, message in self._checked.items():
            marks = pc.fill_null(batch.column(bad_column(part)), False)
            for at in np.flatnonzero(marks.to_numpy(zero_copy_only=False)).tolist():
                failures.setdefault(at, Failure(at, "MalformedJson", message))
        made: list[pa.Array] = []
        for part, reader in self._readers.items():
            read = reader(batch.column(part), origins)
            made.append(read.values)
            for each in read.failures:
                named = replace(each, message=f"{part}: {each.message}")
                failures.setdefault(each.index, named)
        rows = pa.RecordBatch.from_arrays(made, list(self._readers))
        if not failures:
            return Decoded(rows, ())
        good = np.delete(np.arange(batch.num_rows), list(failures))
        taken = pa.array(good, pa.int64())
        return Decoded(rows.take(taken), [failures[at] for at in sorted(failures)], taken)


def envelope_reader(plan: EnvelopePlan) -> Reader:
    """Return the reader of values with their schemas."""
    return EnvelopeReader(plan)


@dataclass(frozen=True)
class Payloads:
    """Reads values that are payloads of one schema: `schema.content`."""

    schema: Schema
    replace_null: bool

    def __call__(self) -> Reader:
        """Return the reader of a worker."""
        read = PayloadReader(self.schema, self.replace_null)
        return lambda values, _origins: present(values, read)


@dataclass(frozen=True)
class Primitives:
    """Reads values of Kafka's primitive serdes."""

    form: str

    def __call__(self) -> Reader:
        """Return the reader of a worker."""
        if self.form == "boolean":
            return lambda values, _origins: _booleans(values)
        kernel = PrimitiveKernel(_PRIMITIVES[self.form], "value")

        def read(values: pa.Array, _origins: Origins) -> Aligned:
            decoded = kernel(pa.RecordBatch.from_arrays([values], ["value"]))
            places = decoded.origins
            taken = np.arange(len(values)) if places is None else places.to_numpy()
            return Aligned(scattered(decoded.rows.column(0), taken, len(values)), decoded.failures)

        return read


_PRIMITIVES: dict[str, Primitive] = {
    "short": "short",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
}


def present(values: pa.Array, read: Callable[[pa.Array], Aligned]) -> Aligned:
    """Read the values that are not null."""
    if not values.null_count:
        return read(values)
    places = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    made = read(values.take(pa.array(places)))
    return Aligned(scattered(made.values, places, len(values)), moved(made.failures, places))


def _booleans(values: pa.Array) -> Aligned:
    yes, no = pc.equal(values, pa.scalar(b"\1")), pc.equal(values, pa.scalar(b"\0"))
    bad = pc.fill_null(pc.and_(pc.invert(yes), pc.invert(no)), False)
    places = np.flatnonzero(bad.to_numpy(zero_copy_only=False)).tolist()
    failures = [Failure(at, "FormatError", "a boolean is one byte, 0 or 1") for at in places]
    return Aligned(pc.if_else(bad, pa.scalar(None, pa.bool_()), yes), failures)
