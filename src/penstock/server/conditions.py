"""If-Match and If-None-Match: a change only where the caller knows what is changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from penstock.control.store.deployments import ChangedError
from penstock.control.store.rows import DeploymentRow
from penstock.errors import ConfigError

_ETAG = re.compile(r'"(\d{1,18})"')


def etag(row: DeploymentRow) -> str:
    """Return the entity tag of a deployment: its revision."""
    return f'"{row.revision}"'


@dataclass(frozen=True)
class Condition:
    """What must be the case for a change: a revision, any deployment, or none."""

    revision: int | None = None
    must_exist: bool = False
    must_be_new: bool = False

    @property
    def is_given(self) -> bool:
        """Return whether the caller asked for anything."""
        return self.revision is not None or self.must_exist or self.must_be_new

    def check(self, name: str, row: DeploymentRow | None) -> None:
        """Raise `ChangedError` where a deployment is not as the caller expects it."""
        if row is None and (self.must_exist or self.revision is not None):
            raise ChangedError(
                f"there is no deployment {name!r} any more, and If-Match asks for one"
            )
        if row is not None and self.must_be_new:
            raise ChangedError(f"the deployment {name!r} exists already, and If-None-Match is *")
        if row is not None and self.revision not in (None, row.revision):
            raise ChangedError(
                f"{name!r} was changed by {row.changed_by} (revision {row.revision}) since revision "
                f"{self.revision} was read; read it again"
            )


def read_condition(
    if_match: Annotated[str | None, Header(max_length=100)] = None,
    if_none_match: Annotated[str | None, Header(max_length=100)] = None,
) -> Condition:
    """Return the condition of a request's headers.

    >>> read_condition('"7"', None)
    Condition(revision=7, must_exist=False, must_be_new=False)
    """
    if if_match is not None and if_none_match is not None:
        raise ConfigError("If-Match and If-None-Match are both given; give one of them")
    if if_none_match is not None and if_none_match.strip() != "*":
        raise ConfigError(f"If-None-Match is {if_none_match!r}; for a change only * is allowed")
    if if_match is None:
        return Condition(must_be_new=if_none_match is not None)
    if if_match.strip() == "*":
        return Condition(must_exist=True)
    match = _ETAG.fullmatch(if_match.strip())
    if match is None:
        raise ConfigError(
            f'If-Match is {if_match!r}; allowed: the ETag of a reply, as in "12", or *'
        )
    return Condition(revision=int(match[1]))


GivenCondition = Annotated[Condition, Depends(read_condition)]
