"""A client for a schema registry (Confluent's API, which others speak too) that remembers answers.

Own code and not confluent-kafka's client: docs/decisions/021-registry-client.md has the measurements.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from pydantic import SecretStr

from penstock.errors import ConfigError, NotFoundError, nearest
from penstock.formats.registry.http import RefusedError, Tls, addresses, credentials
from penstock.formats.registry.oauth import OAuth
from penstock.formats.registry.registry_model import LEVELS, Registered, Schema
from penstock.formats.registry.registry_transport import Transport

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_KEPT = 1000
_LARGEST_ID = 2**31 - 1
_MISSING_FOR = 10.0


class Bounded(dict[K, V]):
    """A mapping that is cleared when it is full: enough for values that can be requested again.

    >>> kept = Bounded(2); kept["a"] = 1; kept["b"] = 2; kept["c"] = 3; kept
    {'c': 3}
    """

    def __init__(self, most: int = _KEPT) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most and key not in self:
            self.clear()
        super().__setitem__(key, value)


class Registry:
    """A schema registry. Give several addresses of one registry with commas between them.

    `oauth` is for a registry that takes tokens instead of user and password.
    `timeout` is the longest that one question takes, all tries together. What cannot change (the schema
    of an id, a version, the id of a registered schema) is asked once; `latest` is asked again after
    `latest_for` seconds. Safe to share between threads.

    Examples
    --------
    >>> Registry("https://schemas.example", "app", "hunter2")
    Registry('https://schemas.example', username='app')
    """

    def __init__(
        self,
        url: str,
        username: str | None = None,
        password: SecretStr | str | None = None,
        *,
        oauth: OAuth | None = None,
        tls: Tls | None = None,
        timeout: float = 10.0,
        latest_for: float = 300.0,
    ) -> None:
        found = addresses(url, credentials(username, password))
        users = [each.user[0] for each in found if each.user]
        if users and oauth:
            raise ConfigError(
                "the registry takes a user with a password, or oauth: give one of them"
            )
        self.latest_for = latest_for
        self.username = users[0] if users else None
        self._http = Transport(found, tls or Tls(), timeout, oauth)
        self._schemas: Bounded[tuple[int, str], Schema] = Bounded()
        self._missing: Bounded[int, float] = Bounded()
        self._ids: Bounded[tuple[str, Schema], int] = Bounded()
        self._lookups: Bounded[tuple[str, Schema], Registered] = Bounded()
        self._versions: Bounded[tuple[str, int, str], Registered] = Bounded()
        self._latest: Bounded[tuple[str, str], tuple[float, Registered]] = Bounded()

    def __repr__(self) -> str:
        user = f", username={self.username!r}" if self.username else ""
        return f"Registry({self.url!r}{user})"

    @property
    def url(self) -> str:
        """Return the address or addresses, without user and password."""
        return self._http.shown

    def find(self, schema_id: int, form: str = "") -> Schema | None:
        """Give the schema with an id, or None where the registry has none.

        `form` is the registry's `format` parameter; Protobuf is asked for as `serialized`.
        """
        if schema_id > _LARGEST_ID:  # some registries answer that with an error of the request
            return None
        key = (schema_id, form)
        if found := self._schemas.get(key):
            return found
        # Bad records come in crowds: the registry is not asked about the same id each time.
        if self._missing.get(schema_id, 0.0) > time.monotonic():
            return None
        try:
            body = self._http.ask("GET", f"/schemas/ids/{schema_id}{_form(form)}")
        except RefusedError as no:
            if no.status != 404:
                self._refused(no, f"the schema with id {schema_id}")
            self._missing[schema_id] = time.monotonic() + _MISSING_FOR
            return None
        self._schemas[key] = found = self._read(Schema.from_json, body)
        return found

    def schema(self, schema_id: int) -> Schema:
        """Give the schema with an id."""
        if found := self.find(schema_id):
            return found
        raise NotFoundError(
            f"the registry at {self.url} has no schema with id {schema_id}: "
            "is this the registry that the records were written with?"
        )

    def subjects(self) -> list[str]:
        """Give the names under which schemas are registered."""
        return list(self._ask("GET", "/subjects", "the subjects"))

    def versions(self, subject: str) -> list[int]:
        """Give the version numbers of a subject."""
        path = f"/subjects/{_quoted(subject)}/versions"
        return list(self._ask("GET", path, f"subject {subject!r}"))

    def version(self, subject: str, version: int, form: str = "") -> Registered:
        """Give one version of a subject."""
        key = (subject, version, form)
        found = self._versions.get(key)
        if found is None:
            self._versions[key] = found = self._version(subject, str(version), form)
        return found

    def latest(self, subject: str, form: str = "") -> Registered:
        """Give the newest version of a subject, as it was at most `latest_for` seconds ago."""
        until, kept = self._latest.get((subject, form), (0.0, None))
        if kept and until > time.monotonic():
            return kept
        found = self._version(subject, "latest", form)
        self._latest[subject, form] = (time.monotonic() + self.latest_for, found)
        return found

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject, unless it is registered already; return its id."""
        key = (subject, schema)
        found = self._ids.get(key)
        if found is None:
            path = f"/subjects/{_quoted(subject)}/versions"
            body = self._ask("POST", path, f"subject {subject!r}", schema.as_json())
            self._ids[key] = found = self._read(lambda answer: int(answer["id"]), body)
        return found

    def lookup(self, subject: str, schema: Schema) -> Registered:
        """Give the version that a schema has under a subject; an error where it has none."""
        key = (subject, schema)
        if found := self._lookups.get(key):
            return found
        try:
            body = self._http.ask("POST", f"/subjects/{_quoted(subject)}", schema.as_json())
        except RefusedError as no:
            if no.status == 404:
                raise ConfigError(
                    f"the schema is not registered under subject {subject!r} in {self.url} "
                    f"({no.reason}): register it there first (Registry.register), or give "
                    "auto_register=True"
                ) from no
            self._refused(no, f"subject {subject!r}")
        # The schema is the one given: some registries leave its kind out of this answer.
        self._lookups[key] = found = replace(self._read(Registered.from_json, body), schema=schema)
        return found

    def problems(self, subject: str, schema: Schema) -> list[str]:
        """Return why a schema may not become the next version of a subject; nothing if it may."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest?verbose=true"
        try:
            body = self._http.ask("POST", path, schema.as_json())
        except RefusedError as no:
            if no.status == 404:  # A subject without versions takes anything.
                return []
            self._refused(no, f"subject {subject!r}")
        return self._read(_reasons, body)

    def compatibility(self, subject: str | None = None) -> str:
        """Give the level that new versions of a subject (or, without one, of any) must keep."""
        path = f"/config/{_quoted(subject)}?defaultToGlobal=true" if subject else "/config"
        body = self._ask("GET", path, f"subject {subject!r}")
        return self._read(lambda answer: str(answer["compatibilityLevel"]), body)

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the level that new versions of a subject (or, without one, of any) must keep."""
        if level not in LEVELS:
            raise ConfigError(f"compatibility level {level!r}: {nearest(level, LEVELS)}")
        path = f"/config/{_quoted(subject)}" if subject else "/config"
        self._ask("PUT", path, f"subject {subject!r}", {"compatibility": level})

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject with all its versions; return their numbers.

        Readers still find its schemas by their ids, unless it is permanent, which takes two steps: some
        registries delete permanently only what was deleted before.
        """
        path = f"/subjects/{_quoted(subject)}{'?permanent=true' if permanent else ''}"
        versions = list(self._ask("DELETE", path, f"subject {subject!r}"))
        for cache in (self._ids, self._lookups, self._versions, self._latest, self._schemas):
            cache.clear()
        return versions

    def _version(self, subject: str, version: str, form: str) -> Registered:
        path = f"/subjects/{_quoted(subject)}/versions/{version}{_form(form)}"
        body = self._ask("GET", path, f"version {version} of subject {subject!r}")
        return self._read(Registered.from_json, body)

    def _ask(self, method: str, path: str, what: str, body: Any = None) -> Any:
        try:
            return self._http.ask(method, path, body)
        except RefusedError as no:
            self._refused(no, what)

    def _read(self, read: Callable[[Any], V], body: Any) -> V:
        try:
            return read(body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"{self.url} answers, but not as a schema registry does ({body!r:.80}): check the address"
            ) from error

    def _refused(self, no: RefusedError, what: str) -> NoReturn:
        advice = _ADVICE.get(no.status, "check the address of the registry")
        kind = NotFoundError if no.status == 404 else ConfigError
        raise kind(
            f"the registry at {self.url} refuses {what} (HTTP {no.status}): {no.reason}; {advice}"
        ) from no


_ADVICE = {
    404: "it is not there: check the name with Registry.subjects(), or register a schema first",
    409: "change the schema so that it stays compatible, or the level with Registry.set_compatibility",
    422: "the schema, its references or the version are not valid: correct them",
}


def _reasons(body: Mapping[str, Any]) -> list[str]:
    if body["is_compatible"]:
        return []
    return list(body.get("messages") or [body.get("reason") or "the registry gives no reason"])


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _form(form: str) -> str:
    return f"?format={form}" if form else ""
