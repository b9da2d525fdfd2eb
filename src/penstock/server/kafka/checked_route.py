"""Routes that refuse wrong parameters and bodies with a text in the form of all other errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

from penstock.errors import nearest
from penstock.server.problems import RefusedRequestError

_MOST = 5


class CheckedRoute(APIRoute):
    """A route that refuses unknown query parameters, and names what is wrong with the others."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with the check before it."""
        handle = super().get_route_handler()
        known = _parameters(self.dependant)

        async def checked(request: Request) -> Response:
            for name in request.query_params:
                if name not in known:
                    raise RefusedRequestError(400, _unknown(name, known))
            check_body(await request.body())
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise RefusedRequestError(422, problems_text(error)) from None

        return checked


def check_body(body: bytes) -> None:
    r"""Refuse a body that is not JSON, and texts that cannot be encoded: some libraries do not check.

    >>> check_body(b'{"a": "\\ud83d"}')
    Traceback (most recent call last):
    penstock.server.problems.RefusedRequestError: the body has half of a surrogate pair, ...
    """
    if not body:
        return
    try:
        value = json.loads(body)
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RefusedRequestError(
            400, "the body has half of a surrogate pair, which is not text; send whole characters"
        ) from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise RefusedRequestError(400, f"the body is not JSON: {reason}") from None


def _parameters(dependant: Dependant) -> list[str]:
    own = [name for field in dependant.query_params for name in _names(field)]
    return own + [name for each in dependant.dependencies for name in _parameters(each)]


def _names(field: ModelField) -> list[str]:
    """Return the name of a parameter, or those of a model of parameters."""
    model = field.field_info.annotation
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return [field.alias]
    return [each.alias or name for name, each in model.model_fields.items()]


def problems_text(error: RequestValidationError) -> str:
    """Return what is wrong with a request, without the values that were given: they may be secrets.

    >>> line = {"loc": ("query", "limit"), "msg": "Input should be less than or equal to 500"}
    >>> problems_text(RequestValidationError([line]))
    'query, limit: Input should be less than or equal to 500'
    """
    lines = [f"{_where(line['loc'])}: {line['msg']}" for line in error.errors()]
    more = f"; and {len(lines) - _MOST} more" if len(lines) > _MOST else ""
    return "; ".join(lines[:_MOST]) + more


def _where(location: tuple[Any, ...]) -> str:
    first, *others = (str(part)[:100] for part in location)
    # A field of the body may have any name, also one that cannot be encoded.
    path = ".".join(others).encode(errors="backslashreplace").decode()
    return f"{first}, {path}" if path else first


def _unknown(name: str, known: list[str]) -> str:
    hint = nearest(name, known) if known else "this request takes none"
    return f"there is no parameter {name[:100]!r}; {hint}"
