"""The configuration of confluent-kafka clients: by role, with files that exist."""

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
    """Return the configuration of one client; without a role, of any client."""
    if role is not None and role not in ROLES:
        raise ConfigError(f"role {role!r} is not known; allowed: {', '.join(ROLES)}")
    if role == "consumer" and "group.id" not in values:
        raise ConfigError("group.id is missing: a consumer needs the name of its group")
    kept = dict(values)
    if role is not None:
        kept = {name: value for name, value in values.items() if _is_for(role, name)}
    # librdkafka keeps this name for share groups; our own consumer obeys it instead.
    kept.pop("max.poll.records", None)
    if role in ("consumer", "admin") and "request.timeout.ms" in values:
        # There librdkafka's key has another name, with a lower limit.
        limit = min(max(int(values["request.timeout.ms"]), 10), 300_000)
        kept.setdefault("socket.timeout.ms", limit)
    if kept.get("auto.offset.reset") == "none":
        kept["auto.offset.reset"] = "error"
    words = str(kept.get("partition.assignment.strategy", "")).split(",")
    if "sticky" in words:
        # The only sticky assignor that librdkafka has is the cooperative one.
        words = ["cooperative-sticky" if word == "sticky" else word for word in words]
        kept["partition.assignment.strategy"] = ",".join(dict.fromkeys(words))
    settings = kept | _existing_files(kept)
    if location := settings.get("ssl.key.location"):
        pem = read_pem("ssl.key.location", str(location))
        if "ENCRYPTED" in pem:
            # It must open with its password: librdkafka would only report "PEM lib".
            private_key("ssl.key.location", pem, str(settings.get("ssl.key.password", "")))
    return settings


def _is_for(role: str, name: str) -> bool:
    key = find_key(name)
    return key is not None and key.role in ("common", role)


def _existing_files(values: Mapping[str, Value]) -> dict[str, Value]:
    paths: dict[str, Value] = {}
    for name in _FILES:
        location = values.get(name)
        if location is None or location == "probe":
            continue
        path = Path(str(location)).expanduser()
        if not path.exists():
            raise ConfigError(f"{name}: there is no file {path}; give the path of a PEM file")
        paths[name] = str(path)
    return paths
