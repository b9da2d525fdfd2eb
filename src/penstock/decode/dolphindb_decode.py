"""DolphinDB's binary values: tables, vectors and scalars into declared columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock.decode.declared import DeclaredDecode
from penstock.decode.kernels.message_kernel import dolphindb_kernel
from penstock.decode.kernels.outcome import Kernel


class DolphindbDecode(DeclaredDecode):
    """A value of DolphinDB per record: a table, a vector (rows of one column), a scalar or a dictionary.

    Columns are matched by name; one that is missing is null. A value that is not exact in the declared
    type, or a column that is not declared, is an error of that record. Types that Spark lacks, such as
    times of day, UUIDs and addresses, are read as text.
    """

    name = "dolphindb"

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        return partial(dolphindb_kernel, self.schema_)
