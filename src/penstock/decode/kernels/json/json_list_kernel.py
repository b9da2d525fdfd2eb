"""JSON records that are an object or a list of objects: one row for each object."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.strict import refuse_deep, refuse_large
from penstock.decode.kernels.merging import without
from penstock.decode.kernels.outcome import Decoded, Failure, MisfitError
from penstock.pipeline.schema import Schema

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class JsonListKernel:
    """Decodes JSON lists; an object that does not fit is an error of its whole record.

    >>> kernel = JsonListKernel(Schema.parse("n int"))
    >>> kernel.decode(pa.array([b'[{"n": 1}, {"n": 2}]', b"[]"])).rows.to_pylist()
    [{'n': 1}, {'n': 2}]
    """

    def __init__(self, schema: Schema) -> None:
        self._objects = JsonKernel(schema)

    def decode(self, values: pa.Array) -> Decoded:
        """Return the rows of the good records, in order, and a failure for each of the others."""
        failures: dict[int, Failure] = {}
        objects: list[bytes] = []
        places: list[tuple[int, int]] = []
        for index, value in enumerate(values.to_pylist()):
            try:
                found = _objects_of(value)
            except MisfitError as misfit:
                failures[index] = Failure(index, misfit.error_type, str(misfit))
                continue
            objects += found
            places += [(index, item) for item in range(len(found))]
        rows, bad = self._objects.decode(pa.array(objects, pa.binary()))
        for one in bad:
            index, item = places[one.index]
            failures.setdefault(index, Failure(index, one.error_type, f"[{item}]: {one.message}"))
        gone = {one.index for one in bad}
        origins = [index for at, (index, _) in enumerate(places) if at not in gone]
        decoded = Decoded(
            rows, [failures[at] for at in sorted(failures)], pa.array(origins, pa.int64())
        )
        return without(list(failures), decoded)


def _objects_of(value: bytes) -> list[bytes]:
    refuse_large(value)
    refuse_deep(value)
    try:
        str(value, "utf-8")
        return [bytes(item) for item in _items(value)]
    except UnicodeDecodeError as error:
        raise MisfitError("NotUtf8", f"not UTF-8: byte {error.start}, {error.reason}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise MisfitError("MalformedJson", f"not JSON: {error}") from None
