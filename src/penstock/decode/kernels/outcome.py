"""What decoding a batch of records gives: rows, and the records that are bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.decode.kernels.failure import Failure


@dataclass(frozen=True)
class Decoded:
    """What came out of a batch of records.

    `origins` has, for each row, the index of its record; None where row and record are one to one.
    """

    rows: pa.RecordBatch
    failures: Sequence[Failure]
    origins: pa.Array | None = None


Kernel = Callable[[pa.RecordBatch], Decoded]
