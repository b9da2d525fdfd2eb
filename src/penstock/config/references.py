"""Fills in `${env:NAME}` and `${file:PATH}`, so that secrets need not stand in a file of settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config.secrets import is_secret_key
from penstock.errors import ConfigError

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}")


def resolve_references(value: Any, base: Path | None = None) -> Any:
    """Fill in the references in every text of nested data; `$${` stands for a plain `${`.

    A relative path of a file is looked up from `base`, else from the working directory.

    >>> resolve_references({"a": ["${env:PENSTOCK_NO_SUCH:-none}", 5], "b": "$${kept}"})
    {'a': ['none', 5], 'b': '${kept}'}
    """
    return _filled(value, base, "")


def _filled(value: Any, base: Path | None, name: str) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _resolved(found, base, name), value)
    if isinstance(value, Mapping):
        return {key: _filled(item, base, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_filled(item, base, name) for item in value]
    return value


def _resolved(found: re.Match[str], base: Path | None, name: str) -> str:
    if found[1] is None:
        return "${"
    scheme, _, rest = found[1].partition(":")
    where = f"{name}: " if name else ""
    if scheme == "env" and rest:
        return _from_environment(rest, where)
    if scheme == "file" and rest:
        return _from_file(rest, base, where)
    # In a secret it may be a part of the secret itself.
    shown = "..." if is_secret_key(name) else found[1]
    raise ConfigError(
        f"{where}${{{shown}}} is not a reference; allowed: ${{env:NAME}}, "
        "${env:NAME:-default}, ${file:PATH}; write $${ for a plain ${"
    )


def _from_environment(rest: str, where: str) -> str:
    name, has_default, default = rest.partition(":-")
    value = os.environ.get(name)
    if value is None and not has_default:
        raise ConfigError(
            f"{where}${{env:{name}}}: the environment variable {name} is not set; set it, "
            f"or write ${{env:{name}:-default}}"
        )
    # As in a shell, the default also stands in for an empty variable.
    return default if has_default and not value else str(value)


def _from_file(rest: str, base: Path | None, where: str) -> str:
    path = (base or Path()) / Path(rest).expanduser()
    try:
        return path.read_text("utf-8").rstrip("\r\n")
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise ConfigError(f"{where}${{file:{rest}}}: cannot read {path.absolute()}: {reason}")
