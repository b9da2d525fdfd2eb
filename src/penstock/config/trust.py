"""Restrictions of a `penstock.yaml` in the working directory: it comes with the folder.

Entering a folder that someone else wrote must not load their code, run their commands, or send files from
elsewhere to their brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.config.keys import Value
from penstock.errors import ConfigError

LOADS_CODE = frozenset(
    {
        "plugin.library.paths",
        "ssl.engine.location",
        "ssl.engine.id",
        "ssl.providers",
        "sasl.kerberos.kinit.cmd",
    }
)
"""The keys with which librdkafka loads a library or runs a command."""
WRITES_FILES = frozenset({"offset.store.path"})
SENDS_FILES = frozenset(
    {
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
    }
)
"""The keys whose file, or what is made of it, goes to an address that the same settings give."""
_INSTEAD = (
    "write it into the penstock.yaml of your own configuration folder, into the definition, or into "
    "the environment"
)


def refuse_untrusted(
    values: Mapping[str, Value], given_elsewhere: Iterable[str], base: Path
) -> None:
    """Raise ConfigError for a key that a file of the working directory may not have."""
    for name in values.keys() - set(given_elsewhere):
        if name in LOADS_CODE:
            raise ConfigError(
                f"{name} loads code, and is not allowed in a file of the working directory; {_INSTEAD}"
            )
        if name in WRITES_FILES:
            raise ConfigError(
                f"{name} names a file that is written, and is not allowed in a file of the working "
                f"directory; {_INSTEAD}"
            )
        if name in SENDS_FILES:
            inside(base, Path(str(values[name])), name)


def inside(base: Path, path: Path, what: str) -> Path:
    """Return the real path of a file below a folder; links and `..` out of it are refused."""
    real = (base / path.expanduser()).resolve()
    if not real.is_relative_to(base.resolve()):
        raise ConfigError(
            f"{what}: {path} is outside of {base}; a file of the working directory may name files below "
            f"its own folder only; {_INSTEAD}"
        )
    return real
