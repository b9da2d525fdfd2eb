"""The base of models whose fields may contain secrets under any name, as Spark's settings do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SerializationInfo, SerializerFunctionWrapHandler
from pydantic import model_serializer as serializes
from pydantic import model_validator as validates

from penstock.config.secrets import is_secret_key, mask, mask_mapping, remember_secret

WITH_SECRETS = {"with_secrets": True}
"""The context of `model_dump` for a copy that is stored, not shown."""


class SafeModel(BaseModel):
    """A model that shows and dumps its secrets masked, and has them masked in every other text.

    >>> class Settings(SafeModel):
    ...     conf: dict[str, str]
    >>> settings = Settings(conf={"fs.s3a.secret.key": "hunter2"})
    >>> settings
    Settings(conf={'fs.s3a.secret.key': '********'})
    >>> settings.model_dump(), settings.conf
    ({'conf': {'fs.s3a.secret.key': '********'}}, {'fs.s3a.secret.key': 'hunter2'})
    """

    @validates(mode="before")
    @classmethod
    def _remember_secrets(cls, given: Any) -> Any:
        remember_secrets(given)
        return given

    @serializes(mode="wrap")
    def _masked(self, dump: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        dumped = dump(self)
        if info.context and info.context.get("with_secrets"):
            return dumped
        return mask_mapping(dumped) if isinstance(dumped, Mapping) else dumped

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, _shown(name, value)


def remember_secrets(value: Any, name: Any = None) -> None:
    """Register every value under the name of a secret, in nested data."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            remember_secrets(item, key)
    elif isinstance(value, (list, tuple)):
        for item in value:
            remember_secrets(item, name)
    elif isinstance(name, str) and isinstance(value, (str, int)) and is_secret_key(name):
        remember_secret(value)


def _shown(name: Any, value: Any) -> Any:
    if isinstance(value, (str, Mapping)):
        return mask_mapping({str(name): value})[str(name)]
    return _Text(mask(repr(value))) if isinstance(value, (list, tuple, set)) else value


class _Text(str):
    """A string whose repr is itself: it already is the repr of something else."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
