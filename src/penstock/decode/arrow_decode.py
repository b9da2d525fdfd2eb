"""Arrow IPC streams as values: tables, vectors and scalars into declared columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock.decode.declared import DeclaredDecode
from penstock.decode.kernels.message_kernel import arrow_kernel
from penstock.decode.kernels.outcome import Kernel


class ArrowMessageDecode(DeclaredDecode):
    """An Arrow IPC stream per record: a table, a vector (rows of one column), a scalar or a mapping.

    Columns are matched by name; one that is missing is null. A value that is not exact in the declared
    type, or a column that is not declared, is an error of that record.
    """

    name = "arrow"

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        return partial(arrow_kernel, self.schema_)
