"""Who may do what: roles, for all deployments or for those with a label."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from penstock.errors import ConfigError, nearest


class Role(IntEnum):
    """What someone may do; a greater one includes the smaller ones."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @classmethod
    def read(cls, text: str) -> Role:
        """Return the role of this name.

        >>> Role.read("operator") is Role.OPERATOR
        True
        """
        names = {role.name.lower(): role for role in cls}
        if text not in names:
            raise ConfigError(f"{text!r} is not a role; {nearest(text, list(names))}")
        return names[text]


@dataclass(frozen=True)
class Grant:
    """A role, for everything or for deployments with one label.

    >>> Grant.read("operator:team=payments")
    Grant(role=<Role.OPERATOR: 2>, label=('team', 'payments'))
    """

    role: Role
    label: tuple[str, str] | None = None

    @classmethod
    def read(cls, text: str) -> Grant:
        """Return the grant of a text: a role, or a role and a label."""
        role, colon, label = text.partition(":")
        key, equals, value = label.partition("=")
        if not colon:
            return cls(Role.read(role))
        if not (key and equals and value):
            raise ConfigError(
                f"{text!r} is not a grant: write a role, or a role and a label as in "
                "'operator:team=payments'"
            )
        return cls(Role.read(role), (key, value))

    @property
    def text(self) -> str:
        """Return the text of the grant."""
        label = f":{'='.join(self.label)}" if self.label else ""
        return self.role.name.lower() + label

    def allows(self, role: Role, labels: Mapping[str, str] | None) -> bool:
        """Return whether this is enough for a deployment with these labels; None: for everything."""
        if self.role < role:
            return False
        if self.label is None:
            return True
        return labels is not None and labels.get(self.label[0]) == self.label[1]


Grants = tuple[Grant, ...]


def read_grants(texts: Iterable[str]) -> Grants:
    """Return the grants of these texts."""
    return tuple(Grant.read(text) for text in texts)


def grants_text(grants: Iterable[Grant]) -> str:
    """Return grants as a column has them."""
    return json.dumps([grant.text for grant in grants])


@dataclass(frozen=True)
class Access:
    """What a person or a token may do. A token has no more rights than its user at any time."""

    user: str
    grants: Grants
    limits: Grants | None = None

    def allows(self, role: Role, labels: Mapping[str, str] | None = None) -> bool:
        """Return whether a role is allowed for a deployment with these labels.

        Without labels it is about the service as a whole: grants with a label do not count.

        >>> access = Access("ann", read_grants(["viewer", "operator:team=a"]))
        >>> access.allows(Role.OPERATOR, {"team": "a"}), access.allows(Role.OPERATOR, {"team": "b"})
        (True, False)
        """
        own = any(grant.allows(role, labels) for grant in self.grants)
        if self.limits is None:
            return own
        return own and any(grant.allows(role, labels) for grant in self.limits)
