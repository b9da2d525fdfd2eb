"""Turns a connection's values into what confluent-kafka takes: by role, with files that exist."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.config.keys import Value, find_key
from penstock.config.pem import private_key, read_pem
from penstock.errors import ConfigError

ROLES = ("producer", "consumer", "admin")
_FILES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
)


def to_librdkafka(values: Mapping[str, Value], role: str | None) -> dict[str, Value]:
    """Give the configuration of one client; without a role, of any client."""
    if role is not None and role not in ROLES:
        raise ConfigError(f"role {role!r} is not known; allowed: {', '.join(ROLES)}")
    if role == "consumer" and "group.id" not in values:
        raise ConfigError("group.id is missing: a consumer needs the name of its group")
    kept = {name: value for name, value in values.items() if _concerns(name, role)}
    # librdkafka keeps this name for share groups; our own consumer obeys it instead.
    kept.pop("max.poll.records", None)
    if role in ("consumer", "admin") and "request.timeout.ms" in values:
        # There librdkafka's word for it is another one, with a lower limit.
        limit = min(max(int(values["request.timeout.ms"]), 10), 300_000)
        kept.setdefault("socket.timeout.ms", limit)
    found = kept | _spoken_differently(kept) | _existing_files(kept)
    _need_open_key(found)
    return found


def _concerns(name: str, role: str | None) -> bool:
    key = find_key(name)
    return role is None or (key is not None and key.role in ("common", role))


def _spoken_differently(values: Mapping[str, Value]) -> dict[str, Value]:
    changed: dict[str, Value] = {}
    if values.get("auto.offset.reset") == "none":
        changed["auto.offset.reset"] = "error"
    if "sticky" in str(values.get("partition.assignment.strategy", "")).split(","):
        # The only sticky assignor that librdkafka has is the cooperative one.
        words = str(values["partition.assignment.strategy"]).split(",")
        words = ["cooperative-sticky" if word == "sticky" else word for word in words]
        changed["partition.assignment.strategy"] = ",".join(dict.fromkeys(words))
    return changed


def _existing_files(values: Mapping[str, Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name in _FILES:
        location = values.get(name)
        if location is None or location == "probe":
            continue
        path = Path(str(location)).expanduser()
        if not path.exists():
            raise ConfigError(f"{name}: there is no file {path}; give the path of a PEM file")
        found[name] = str(path)
    return found


def _need_open_key(values: Mapping[str, Value]) -> None:
    """Refuse a key that its password does not open: librdkafka says "PEM lib", and no more."""
    location = values.get("ssl.key.location")
    if location is None:
        return
    pem = read_pem("ssl.key.location", str(location))
    if "ENCRYPTED" in pem:
        private_key("ssl.key.location", pem, str(values.get("ssl.key.password", "")))
