"""What a kernel says about a record it could not decode."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import RecordError


class MisfitError(RecordError):
    """One record does not decode; `error_type` is the short name that dead letters carry."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


@dataclass(frozen=True)
class Failure:
    """One record that could not be decoded: its place in the batch, and why."""

    index: int
    error_type: str
    message: str

    @classmethod
    def of(cls, index: int, misfit: MisfitError) -> Failure:
        """Say where a misfit was found."""
        return cls(index, misfit.error_type, str(misfit))
