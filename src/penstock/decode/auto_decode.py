"""Records of several formats in one topic: JSON, Arrow and DolphinDB, detected one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock.decode.declared import DeclaredDecode
from penstock.decode.kernels.auto_kernel import AutoKernel
from penstock.decode.kernels.outcome import Kernel


class AutoDecode(DeclaredDecode):
    """JSON (an object or a list of objects), Arrow or DolphinDB, detected by the first bytes of a record.

    A value that starts with `{` or `[` is JSON; each format is read as by its own decode.
    """

    name = "auto"

    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel."""
        return partial(AutoKernel, self.schema_)
