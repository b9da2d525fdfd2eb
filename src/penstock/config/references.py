"""Resolution of `${env:NAME}` and `${file:PATH}`, so that settings files need not contain secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from penstock.config.secrets import is_secret_key, remember_secret
from penstock.config.trust import inside
from penstock.errors import ConfigError

_Locate = Callable[[str, str], Path]
_elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)
_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}")


@contextmanager
def without_lookups() -> Iterator[None]:
    """Refuse references of definitions: their variables and files are those of another process.

    Those of settings files, which have a `base`, are resolved as ever.

    >>> with without_lookups():
    ...     resolve_references("${env:HOME}")
    Traceback (most recent call last):
    penstock.errors.ConfigError: a reference is looked up where the definition runs, and not here
    """
    token = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def resolve_references(value: Any, base: Path | None = None, *, confined: bool = False) -> Any:
    """Resolve the references in every string of nested data; `$${` is an escaped `${`.

    A relative path of a file is looked up from `base`, else from the working directory. With `confined`,
    a file must be below `base`, wherever its links lead.

    >>> resolve_references({"a": ["${env:PENSTOCK_NO_SUCH:-none}", 5], "b": "$${kept}"})
    {'a': ['none', 5], 'b': '${kept}'}
    """

    if base is None and _elsewhere.get():
        return _filled(value, None, "")

    def locate(given: str, where: str) -> Path:
        if confined and base is not None:
            return inside(base, Path(given), f"{where}${{file:{given}}}")
        return (base or Path()) / Path(given).expanduser()

    return _filled(value, locate, "")


def has_reference(value: Any) -> bool:
    """Return whether a string of nested data has a reference, of any form; `$${` is none.

    >>> [has_reference(each) for each in ({"a": ["${file:/x}"]}, "${env:X:-y}", "$${env:X}", 5)]
    [True, True, False, False]
    """
    if isinstance(value, str):
        return any(match[1] is not None for match in _REFERENCE.finditer(value))
    if isinstance(value, Mapping):
        return any(has_reference(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_reference(item) for item in value)
    return False


def _filled(value: Any, locate: _Locate | None, name: str) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: _resolved(match, locate, name), value)
    if isinstance(value, Mapping):
        return {key: _filled(item, locate, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_filled(item, locate, name) for item in value]
    return value


def _resolved(match: re.Match[str], locate: _Locate | None, name: str) -> str:
    if match[1] is None:
        return "${"
    scheme, _, rest = match[1].partition(":")
    where = f"{name}: " if name else ""
    if locate is None and scheme in ("env", "file") and rest:
        raise ConfigError(
            f"{where}a reference is looked up where the definition runs, and not here"
        )
    if scheme == "env" and rest:
        value = _from_environment(rest, where)
    elif scheme == "file" and rest and locate:
        value = _from_file(rest, locate, where)
    else:
        # In a secret it may be a part of the secret itself.
        shown = "..." if is_secret_key(name) else match[1]
        raise ConfigError(
            f"{where}${{{shown}}} is not a reference; allowed: ${{env:NAME}}, "
            "${env:NAME:-default}, ${file:PATH}; write $${ for a plain ${"
        )
    if is_secret_key(name):
        remember_secret(value)
    return value


def _from_environment(rest: str, where: str) -> str:
    name, has_default, default = rest.partition(":-")
    value = os.environ.get(name)
    if value is None and not has_default:
        raise ConfigError(
            f"{where}${{env:{name}}}: the environment variable {name} is not set; set it, "
            f"or write ${{env:{name}:-default}}"
        )
    # As in a shell, the default also replaces an empty variable.
    return default if has_default and not value else str(value)


def _from_file(rest: str, locate: _Locate, where: str) -> str:
    path = locate(rest, where)
    try:
        return path.read_text("utf-8").rstrip("\r\n")
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise ConfigError(f"{where}${{file:{rest}}}: cannot read {path.absolute()}: {reason}")
