"""Kafka's primitive serdes to one column, all records of a batch at once."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.outcome import Decoded, Failure
from penstock.errors import FormatError
from penstock.formats import find_format

Primitive = Literal["string", "short", "int", "long", "float", "double", "bytes", "uuid"]
PRIMITIVES: tuple[str, ...] = get_args(Primitive)
# The bytes as Kafka's serde writes them, the type of the column, and its name in Spark.
_NUMBERS: dict[str, tuple[str, pa.DataType, str]] = {
    "short": (">i2", pa.int16(), "smallint"),
    "int": (">i4", pa.int32(), "int"),
    "long": (">i8", pa.int64(), "bigint"),
    "float": (">f4", pa.float32(), "float"),
    "double": (">f8", pa.float64(), "double"),
}
_UUID = r"\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"
_FORMATS = {"int": "integer"}


def spark_type(primitive: Primitive) -> str:
    """Return the type of the column; a UUID is its text."""
    if primitive in _NUMBERS:
        return _NUMBERS[primitive][2]
    return "binary" if primitive == "bytes" else "string"


class PrimitiveKernel:
    """Decodes values of one primitive type; a record without a value is a null.

    >>> kernel = PrimitiveKernel("int", "n")
    >>> batch = pa.record_batch({"value": [bytes([0, 0, 1, 0]), None, b"abc"]})
    >>> decoded = kernel(batch)
    >>> decoded.rows.to_pylist(), decoded.failures[0].message
    ([{'n': 256}, {'n': None}], 'integer is 4 bytes long, not 3')
    """

    def __init__(self, primitive: Primitive, column: str) -> None:
        self._primitive = primitive
        self._column = column
        self._format = find_format(_FORMATS.get(primitive, primitive))

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch of records."""
        values = batch.column("value")
        good = self._good(values)
        if pc.all(good).as_py() is not False:
            return Decoded(self._rows(values), ())
        failures = [self._failure(values, at) for at in np.flatnonzero(~_marks(good)).tolist()]
        origins = pa.array(np.flatnonzero(_marks(good)), pa.int64())
        return Decoded(self._rows(values.take(origins)), failures, origins)

    def _good(self, values: pa.Array) -> pa.Array:
        """Return which values decode; null where the value is null."""
        if self._primitive in _NUMBERS:
            width = np.dtype(_NUMBERS[self._primitive][0]).itemsize
            return pc.equal(pc.binary_length(values), width)
        if self._primitive == "bytes":
            return pa.repeat(True, len(values))
        if self._primitive == "uuid":
            return pc.match_substring_regex(values, _UUID)
        return _are_texts(values)

    def _rows(self, values: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._converted(values)], [self._column])

    def _converted(self, values: pa.Array) -> pa.Array:
        if self._primitive in _NUMBERS:
            return _numbers(values, *_NUMBERS[self._primitive][:2])
        if self._primitive == "bytes":
            return values
        texts = values.cast(pa.string())
        return pc.ascii_lower(texts) if self._primitive == "uuid" else texts

    def _failure(self, values: pa.Array, index: int) -> Failure:
        try:
            self._format.decode(values[index].as_py())
        except FormatError as error:
            return Failure(index, "FormatError", str(error))
        raise AssertionError(f"a value of {self._primitive} was refused, and decodes")


def _marks(good: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    marks: np.ndarray[tuple[int], np.dtype[np.bool_]]
    marks = pc.fill_null(good, True).to_numpy(zero_copy_only=False)
    return marks


def _are_texts(values: pa.Array) -> pa.Array:
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if each is None else _is_text(each) for each in values.to_pylist()])
    return pa.repeat(True, len(values))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbers(values: pa.Array, code: str, type_: pa.DataType) -> pa.Array:
    big = np.dtype(code)
    fixed = values.cast(pa.binary(big.itemsize))
    data = fixed.buffers()[1]
    numbers = np.frombuffer(data if data is not None else b"", big, -1)
    part = numbers[fixed.offset : fixed.offset + len(fixed)].astype(big.newbyteorder("="))
    nulls = fixed.is_null().to_numpy(zero_copy_only=False) if fixed.null_count else None
    return pa.array(part, type_, mask=nulls, from_pandas=False)
