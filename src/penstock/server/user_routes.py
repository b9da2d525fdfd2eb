"""Users and tokens, for admins; the caller; a token for the command line."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from penstock.control.roles import Access, Grant, Role, read_grants
from penstock.control.store import ControlStore
from penstock.control.store.users import TokenRow, UserRow
from penstock.errors import ConfigError, NotFoundError
from penstock.server.app_state import PAGE, Cursor, Limit, Logins, Settings, Store
from penstock.server.caller import Caller, requires
from penstock.server.paging import after, page

router = APIRouter(tags=["users"])
_ADMIN = [Depends(requires(Role.ADMIN))]
_LONGEST_YEARS = 10 * 366 * 86_400.0


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class LoginRequest(_Given):
    """A user, and a name for the token that is created."""

    user: str = Field(max_length=200)
    password: SecretStr = Field(max_length=1000)
    name: str = Field(default="login", max_length=200)


class NewUser(_Given):
    """A user with grants, as in `["viewer", "operator:team=payments"]`."""

    name: str = Field(max_length=200)
    password: SecretStr
    grants: list[str] = Field(max_length=100)


class UserPatch(_Given):
    """What is changed of a user; a new password ends all tokens of the user."""

    password: SecretStr | None = None
    grants: list[str] | None = Field(default=None, max_length=100)
    disabled: bool | None = None


class NewToken(_Given):
    """A token of a user: never with more rights than the user has."""

    user: str = Field(max_length=200)
    name: str = Field(max_length=200)
    grants: list[str] | None = Field(default=None, max_length=100)
    seconds: float | None = Field(default=None, le=_LONGEST_YEARS, allow_inf_nan=False)


@router.get("/me")
def me(access: Caller) -> dict[str, Any]:
    """Return who the caller is, and what the caller may do."""
    limits = None if access.limits is None else [grant.text for grant in access.limits]
    return {"user": access.user, "grants": _texts(access.grants), "limits": limits}


@router.post("/login", status_code=201)
def log_in(
    given: LoginRequest, request: Request, store: Store, settings: Settings, users: Logins
) -> dict[str, Any]:
    """Return a token for a user with a password; it is not shown again."""
    if not settings.needs_login:
        raise ConfigError("this server needs no login: use it without a token")
    password = given.password.get_secret_value()
    access = users.log_in(given.user, password, request.state.address)
    wanted = NewToken(user=access.user, name=given.name, seconds=settings.login_seconds)
    return _new_token(store, access.user, wanted)


def _new_token(store: ControlStore, by: str, given: NewToken) -> dict[str, Any]:
    own = _find_user(store, given.user)
    limits = _texts(own.grants) if given.grants is None else given.grants
    name, seconds = given.name, given.seconds
    with store.change():
        token, row = store.tokens.create(given.user, name, grants=limits, seconds=seconds)
        store.audit.add(by, "token.create", given.user, id=row.id, name=row.name, grants=limits)
    return {"token": token, **_shown_token(row)}


@router.get("/users", dependencies=_ADMIN)
def list_users(store: Store, limit: Limit = PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """Return the users, in the order of their names."""
    last = _text_key(cursor)
    rows = [row for row in store.users.all() if row.name > last]
    return page(rows, limit, key=lambda row: row.name, shown=_shown_user)


@router.post("/users", status_code=201, dependencies=_ADMIN)
def add_user(given: NewUser, store: Store, access: Caller) -> dict[str, Any]:
    """Add a user."""
    _require_unicode(given.name)
    with store.change():
        store.users.add(given.name, given.password.get_secret_value(), given.grants)
        store.audit.add(access.user, "user.add", given.name, grants=given.grants)
    return _shown_user(_find_user(store, given.name))


@router.patch("/users/{name}", dependencies=_ADMIN)
def change_user(
    name: str, given: UserPatch, store: Store, access: Caller, users: Logins
) -> dict[str, Any]:
    """Change the grants or the password of a user, or disable the user."""
    changed = {"grants": given.grants, "disabled": given.disabled}
    changes = {key: value for key, value in changed.items() if value is not None}
    kinds = sorted(given.model_fields_set)
    with store.change():
        _change_user(store, name, given)
        store.audit.add(access.user, "user.change", name, **changes, changed=kinds)
    users.forget()
    return _shown_user(_find_user(store, name))


def _change_user(store: ControlStore, name: str, given: UserPatch) -> None:
    _find_user(store, name)
    if given.grants is not None:
        read_grants(given.grants)
    if given.disabled or (given.grants is not None and not _is_admin(read_grants(given.grants))):
        _require_other_admin(store, name)
    if given.password is not None:
        store.users.set_password(name, given.password.get_secret_value())
    if given.grants is not None:
        store.users.set_grants(name, given.grants)
    if given.disabled is not None:
        (store.users.disable if given.disabled else store.users.enable)(name)


@router.delete("/users/{name}", status_code=204, dependencies=_ADMIN)
def remove_user(name: str, store: Store, access: Caller, users: Logins) -> None:
    """Remove a user with all tokens."""
    with store.change():
        _find_user(store, name)
        _require_other_admin(store, name)
        store.users.remove(name)
        store.audit.add(access.user, "user.remove", name)
    users.forget()


@router.get("/tokens", dependencies=_ADMIN)
def list_tokens(store: Store, limit: Limit = PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """Return the tokens without their texts, in the order of their ids."""
    last = _text_key(cursor)
    rows = sorted((row for row in store.tokens.all() if row.id > last), key=lambda row: row.id)
    return page(rows, limit, key=lambda row: row.id, shown=_shown_token)


@router.post("/tokens", status_code=201, dependencies=_ADMIN)
def add_token(given: NewToken, store: Store, access: Caller) -> dict[str, Any]:
    """Return a new token of a user; it is not shown again. Without `seconds` it does not expire."""
    _require_unicode(given.name)
    return _new_token(store, access.user, given)


@router.delete("/tokens/{id}", status_code=204)
def revoke_token(id: str, store: Store, access: Caller) -> None:
    """End a token: one of the caller, or as an admin any."""
    row = next((row for row in store.tokens.all() if row.id == id), None)
    if row is None or not (row.user == access.user or access.allows(Role.ADMIN)):
        raise NotFoundError(f"there is no token {id[:40]!r}")
    with store.change():
        store.tokens.revoke(id)
        store.audit.add(access.user, "token.revoke", row.user, id=id)


def _find_user(store: ControlStore, name: str) -> UserRow:
    found = next((row for row in store.users.all() if row.name == name), None)
    if found is None:
        raise NotFoundError(f"there is no user {name[:200]!r}")
    return found


def _require_other_admin(store: ControlStore, name: str) -> None:
    """Refuse to lock everyone out."""
    admins = [row.name for row in store.users.all() if _is_admin(row.grants) and not row.disabled]
    if admins == [name]:
        raise ConfigError(f"{name!r} is the only user with the role admin; add another one first")


def _is_admin(grants: tuple[Grant, ...]) -> bool:
    return Access("", grants).allows(Role.ADMIN)


def _require_unicode(text: str) -> None:
    if not text.isprintable():
        raise ConfigError("a name has printable characters only")


def _text_key(cursor: str | None) -> str:
    key = after(cursor)
    if not isinstance(key, str | None):
        raise ConfigError("the cursor is not one of this list; give none to start over")
    return key or ""


def _texts(grants: tuple[Grant, ...]) -> list[str]:
    return [grant.text for grant in grants]


def _shown_user(row: UserRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "grants": _texts(row.grants),
        "disabled": row.disabled,
        "created": row.created,
    }


def _shown_token(row: TokenRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "user": row.user,
        "name": row.name,
        "grants": _texts(row.grants),
        "created": row.created,
        "expires": row.expires,
        "used": row.used,
    }
