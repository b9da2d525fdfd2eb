"""Secrets in the text of a definition: found by name, type and form; sealed, shown masked, opened.

A reference (`${env:NAME}`, `${file:PATH}`) remains as it is. Any other secret is encrypted before the
text reaches the store.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from penstock.config.secrets import MASK, is_secret_key, mask, remember_secret
from penstock.control.secrets.known_secrets import KnownSecret, KnownSecrets, is_in_list
from penstock.control.secrets.sealing import SEALED, Sealer, is_sealed
from penstock.control.secrets.secret_options import secret_options
from penstock.control.secrets.yaml_scalars import Document, Scalar
from penstock.errors import ConfigError, SetupError

# Without a default: that would be a value.
_REFERENCE = re.compile(r"\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|file:[^}]+)\}")
_PURE = re.compile(
    rf"(?:(?:basic|bearer|digest|negotiate)\s+)?(?:{re.escape(MASK)})?", re.IGNORECASE
)
_BETWEEN = re.compile(r"\$\{sealed:")


class SpecSecrets:
    """Seals and opens the secrets of definitions."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def sealed(self, deployment: str, text: str, previous: str | None = None) -> str:
        """Return a text as it may be stored.

        A value that is as `shown` masks it in the previous text is the previous value: a person has read
        the definition, changed something else, and given it back. In a list nothing else of its element
        may have changed: a mask does not say of which element it is.
        """
        document = Document(text, f"the definition of {deployment!r}")
        known = self._known(deployment, previous, document)
        options = secret_options(document.data())
        for each in document.scalars:
            _refuse_sealed(each, deployment)
            if _is_named_secret(each.names, options):
                remember_secret(each.value())
        # All before the first is replaced: they are found by the values next to them.
        stored = [self._stored(deployment, each, options, known) for each in document.scalars]
        for each, new in zip(document.scalars, stored, strict=True):
            if new is not None:
                document.replace(each, new)
        document.rewrite_comments(mask)
        return document.text()

    def sealed_data(self, deployment: str, data: Any) -> Any:
        """Return data as it may be stored; it is the definition of a pipeline, or contains one."""
        definition = data.get("definition", data) if isinstance(data, Mapping) else data
        options = secret_options(definition)

        def walk(value: Any, names: list[str]) -> Any:
            if isinstance(value, Mapping):
                return {key: walk(item, [*names, str(key)]) for key, item in value.items()}
            if isinstance(value, list):
                return [walk(item, names) for item in value]
            secret = _is_secret(value, is_named=_is_named_secret(names, options))
            return self._sealer.seal(deployment, value) if secret else value

        return walk(data, [])

    def opened_data(self, deployment: str, data: Any) -> Any:
        """Return what `sealed_data` was given."""
        if isinstance(data, Mapping):
            return {key: self.opened_data(deployment, item) for key, item in data.items()}
        if isinstance(data, list):
            return [self.opened_data(deployment, item) for item in data]
        return self._sealer.unseal(deployment, data) if is_sealed(data) else data

    def readable_data(self, deployment: str, data: Any) -> Any:
        """Return what `sealed_data` was given, with masks for secrets whose key is lost."""
        if isinstance(data, Mapping):
            return {key: self.readable_data(deployment, item) for key, item in data.items()}
        if isinstance(data, list):
            return [self.readable_data(deployment, item) for item in data]
        if not is_sealed(data):
            return data
        value = self._readable(deployment, data)
        return MASK if value is None else value

    def sealed_record(self, deployment: str, data: bytes) -> str:
        """Return the bytes of a record of a deployment as they may be stored: they may be personal."""
        return self._sealer.seal(deployment, b64encode(data).decode())

    def opened_record(self, deployment: str, sealed: str) -> bytes:
        """Return what `sealed_record` was given."""
        return b64decode(self._sealer.unseal(deployment, sealed, is_secret=False))

    def shown(self, deployment: str, text: str) -> str:
        """Return a stored text for people: references by name, everything else masked."""
        document = Document(text, f"the definition of {deployment!r}")
        sealed = [each for each in document.scalars if is_sealed(each.value())]
        values = [self._readable(deployment, each.value()) for each in sealed]
        options = secret_options(document.data())
        for each, value in zip(sealed, values, strict=True):
            document.replace(each, _masked(each, value, options))
        return document.text()

    def opened(self, deployment: str, text: str) -> Any:
        """Return the data of a stored text with its secrets; references are not resolved yet."""
        document = Document(text, f"the definition of {deployment!r}")
        for each in document.scalars:
            if is_sealed(each.value()):
                value = self._sealer.unseal(deployment, each.value())
                each.set(value) if isinstance(value, str) else _set_number(each, value)
        return document.data()

    def opened_text(self, deployment: str, text: str) -> str:
        """Return a stored text with its secrets, to check it; nothing may store or show it."""
        document = Document(text, f"the definition of {deployment!r}")
        for each in document.scalars:
            if is_sealed(each.value()):
                document.replace(each, str(self._sealer.unseal(deployment, each.value())))
        return document.text()

    def resealed(self, deployment: str, text: str) -> str:
        """Return a stored text with all secrets encrypted with the newest key."""

        def again(match: re.Match[str]) -> str:
            if self._sealer.is_current(match[0]):
                return match[0]
            return self._sealer.seal(deployment, self._sealer.unseal(deployment, match[0]))

        return SEALED.sub(again, text)

    def _known(self, deployment: str, previous: str | None, given: Document) -> KnownSecrets:
        """Return the sealed values of the previous text."""
        if previous is None:
            return KnownSecrets(None, {}, given)
        document = Document(previous, "the previous definition")
        sealed = [each for each in document.scalars if is_sealed(each.value())]
        values = [self._readable(deployment, each.value()) for each in sealed]
        options = secret_options(document.data())
        secrets = {
            each.path: KnownSecret(each.value(), value, _masked(each, value, options))
            for each, value in zip(sealed, values, strict=True)
            if value is not None
        }
        return KnownSecrets(document, secrets, given)

    def _readable(self, deployment: str, text: str) -> Any:
        """Return a sealed value; None where it cannot be opened, as after its key was lost."""
        try:
            return self._sealer.unseal(deployment, text)
        except (ConfigError, SetupError):
            return None

    def _stored(
        self,
        deployment: str,
        scalar: Scalar,
        options: frozenset[str],
        known: KnownSecrets,
    ) -> str | None:
        """Return the text that replaces a value; None where it may be stored as it is."""
        value = scalar.value()
        before = known.find(scalar.path)
        if before and value in (before.shown, before.value):
            # Not encrypted again: the same definition must give the same text.
            return before.sealed
        if isinstance(value, str) and MASK in value:
            where = ".".join(map(str, scalar.path))
            there = "there"
            if is_in_list(scalar.path):
                there += ", in an element of a list in which nothing else was changed"
            raise ConfigError(
                f"the definition of {deployment!r} has a masked value at {where}, and no stored secret "
                f"is shown like that {there}; give the secret again: the value, ${{env:NAME}} or "
                "${file:PATH}"
            )
        secret = _is_secret(value, is_named=_is_named_secret(scalar.names, options))
        return self._sealer.seal(deployment, value) if secret else None


def _is_named_secret(names: list[str], options: frozenset[str]) -> bool:
    return any(name in options or is_secret_key(name) for name in names)


def _is_secret(value: Any, *, is_named: bool) -> bool:
    """Return whether a value must be sealed: by the names above it, or by what it looks like.

    >>> _is_secret("${env:PASSWORD}", is_named=True), _is_secret("hunter2", is_named=True)
    (False, True)
    >>> _is_secret("${env:PASSWORD:-hunter2}", is_named=True)
    True
    >>> [_is_secret(f"postgresql://app:{p}@db/x", is_named=False) for p in ("${env:P}", "hunter2")]
    [False, True]
    """
    if value is None or isinstance(value, bool) or is_sealed(value):
        return False
    if not isinstance(value, str):
        return is_named
    neutral = _REFERENCE.sub(lambda _: MASK, value)
    return not _PURE.fullmatch(neutral) if is_named else mask(neutral) != neutral


def _masked(scalar: Scalar, value: Any, options: frozenset[str]) -> str:
    if _is_named_secret(scalar.names, options) or not isinstance(value, str):
        return MASK
    shown = mask(value)
    return shown if shown != value else MASK


def _refuse_sealed(scalar: Scalar, deployment: str) -> None:
    if _BETWEEN.search(scalar.node.value):
        raise ConfigError(
            f"the definition of {deployment!r} has a sealed secret at {'.'.join(map(str, scalar.path))}; "
            "only the store may contain those: give the value, ${env:NAME} or ${file:PATH}"
        )


def _set_number(scalar: Scalar, value: float) -> None:
    kind = "int" if isinstance(value, int) else "float"
    scalar.node.value, scalar.node.tag = repr(value), f"tag:yaml.org,2002:{kind}"
