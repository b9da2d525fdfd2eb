"""Regular expressions that cannot backtrack: those of RE2, as Arrow has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import missing_extra


def arrow_regex(function: str, given: str | Sequence[str], needed_for: str, **options: Any) -> Any:
    """Return what a function of Arrow makes of a text, or of each of several, by `pattern`.

    Raises
    ------
    ValueError
        When RE2 cannot read the pattern, or a text is not Unicode.

    Examples
    --------
    >>> arrow_regex("match_substring_regex", "a" * 100_000, "an example", pattern="(a+)+b")
    False
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import compute  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, needed_for) from missing
    is_one = isinstance(given, str)
    try:
        values = pa.scalar(given, pa.string()) if is_one else pa.array(given, pa.string())
        found = getattr(compute, function)(values, **options)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None
    return found.as_py() if is_one else found.to_pylist()
