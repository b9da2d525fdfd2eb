"""The name of a connector as the name of its deployment, which has no slashes."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[/\\]|%(?=25|2E|2F|5C)")


def stored_name(name: str) -> str:
    """Return the name of the deployment of a connector: its own, unless a deployment cannot have it.

    No two connectors have the same deployment.

    >>> stored_name("orders 100%"), stored_name("a/b"), stored_name("a%2Fb"), stored_name("..")
    ('orders 100%', 'a%2Fb', 'a%252Fb', '%2E%2E')
    """
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", name)


def is_possible(name: str) -> bool:
    """Return whether a database can look the name up.

    >>> is_possible("a b"), is_possible("a\\x00"), is_possible("\\ud800")
    (True, False, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in name
