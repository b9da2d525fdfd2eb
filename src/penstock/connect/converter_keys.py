"""The configuration keys of the converters: what each has, as Connect's own classes define it."""

from __future__ import annotations

from penstock.connect.config_definition import (
    Definition,
    Key,
    Type,
    one_of,
    one_of_any_case,
)

CONVERTER_TYPE = "converter.type"
SCHEMAS_ENABLE, SCHEMA_CONTENT = "schemas.enable", "schema.content"
DECIMAL_FORMAT, REPLACE_NULL = "decimal.format", "replace.null.with.default"
ENCODING = "converter.encoding"
REGISTRY_URL = "schema.registry.url"
AUTO_REGISTER, USE_LATEST = "auto.register.schemas", "use.latest.version"
AUTH_SOURCE, USER_INFO = "basic.auth.credentials.source", "basic.auth.user.info"
OLD_USER_INFO = "schema.registry.basic.auth.user.info"
BEARER = "bearer.auth."
STRATEGIES = {
    "io.confluent.kafka.serializers.subject.TopicNameStrategy": "topic",
    "io.confluent.kafka.serializers.subject.RecordNameStrategy": "record",
    "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy": "topic-record",
}

TYPE = Key(
    CONVERTER_TYPE,
    documentation="What the converter is for: key, value or header. It is set for a connector.",
    importance="LOW",
    check=one_of("key", "value", "header"),
)
PLAIN = Definition((TYPE,))
STRING = PLAIN.plus(
    Key(
        ENCODING,
        default="UTF-8",
        documentation="The character set of the text, under the name that Java has for it.",
        importance="HIGH",
        width="MEDIUM",
        display_name="Encoding",
    )
)
JSON = PLAIN.plus(
    Key(
        SCHEMAS_ENABLE,
        Type.BOOLEAN,
        "true",
        "Whether each key and value has its schema with it: an object of schema and payload.",
        "HIGH",
        "Schemas",
        0,
        "MEDIUM",
        "Enable Schemas",
    ),
    Key(
        "schemas.cache.size",
        Type.INT,
        "1000",
        "Accepted: schemas are parsed once for each text, whatever their number.",
        "HIGH",
        "Schemas",
        1,
        "MEDIUM",
        "Schema Cache Size",
    ),
    Key(
        SCHEMA_CONTENT,
        default=None,
        documentation="A schema for all records of a sink, which are payloads alone then.",
        importance="HIGH",
        group="Schemas",
        order=2,
        width="MEDIUM",
        display_name="Schema Content",
    ),
    Key(
        DECIMAL_FORMAT,
        default="BASE64",
        documentation="How decimals are written: BASE64 or NUMERIC; both are read.",
        importance="LOW",
        group="Serialization",
        order=0,
        width="MEDIUM",
        display_name="Decimal Format",
        check=one_of_any_case("BASE64", "NUMERIC"),
    ),
    Key(
        REPLACE_NULL,
        Type.BOOLEAN,
        "true",
        "Whether a null in a field that has a default becomes that default.",
        "LOW",
        "Serialization",
        1,
        "MEDIUM",
        "Replace null with default",
    ),
)


def _strategy(name: str) -> str | None:
    if name in STRATEGIES:
        return None
    return f"the strategy is not known here; allowed: {', '.join(STRATEGIES)}"


def _strategy_key(part: str) -> Key:
    return Key(
        f"{part}.subject.name.strategy",
        Type.CLASS,
        next(iter(STRATEGIES)),
        f"How the subject of the schemas of {part}s is named.",
        check=_strategy,
    )


REGISTRY = Definition(
    (
        Key(
            REGISTRY_URL,
            Type.LIST,
            documentation="The addresses of one schema registry, separated by commas.",
            importance="HIGH",
        ),
        Key(
            AUTH_SOURCE,
            default="URL",
            documentation="Where user and password are: in the URL, or USER_INFO.",
            check=one_of_any_case("URL", "USER_INFO"),
        ),
        Key(USER_INFO, Type.PASSWORD, None, "The user and the password, with a colon between."),
        Key(OLD_USER_INFO, Type.PASSWORD, None, f"The former name of {USER_INFO}.", "LOW"),
        Key(
            f"{BEARER}credentials.source",
            default="STATIC_TOKEN",
            documentation="OAUTHBEARER: tokens of an OAuth provider are used.",
        ),
        Key(
            f"{BEARER}issuer.endpoint.url", default=None, documentation="Where tokens are fetched."
        ),
        Key(f"{BEARER}client.id", default=None, documentation="The OAuth client."),
        Key(f"{BEARER}client.secret", Type.PASSWORD, None, "The secret of the OAuth client."),
        Key(f"{BEARER}scope", default=None, documentation="The OAuth scope.", importance="LOW"),
        Key(
            AUTO_REGISTER,
            Type.BOOLEAN,
            "true",
            "Whether the schemas of written records are registered.",
        ),
        Key(
            USE_LATEST,
            Type.BOOLEAN,
            "false",
            "Whether records are written with the latest schema of their subject.",
            "LOW",
        ),
        _strategy_key("key"),
        _strategy_key("value"),
    )
)
