"""The keys of Confluent's HTTP sink."""

from __future__ import annotations

from penstock.connect.config_definition import Key, Type, at_least, one_of_any_case
from penstock.connect.connectors import document_keys
from penstock.connect.connectors.jdbc_keys import RETRIES
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import only

NULLS, ERRORS = "behavior.on.null.values", "behavior.on.error"
AUTH = "auth.type"
REPORTS = "replies are not written to topics; records that are refused go to the dead letter queue"
LICENSE = "there is no license"
REGEX = "bodies are not changed by patterns; use transforms, or the pipeline's step sql"

KEYS: tuple[Key, ...] = (
    Key(
        "http.api.url",
        documentation="The address; ${topic} and ${key} in its path and query.",
        importance="HIGH",
        group="HTTP",
    ),
    Key(
        "request.method",
        default="POST",
        documentation="POST, PUT, PATCH or DELETE.",
        importance="HIGH",
        group="HTTP",
        check=one_of_any_case("POST", "PUT", "PATCH", "DELETE"),
    ),
    Key("headers", default="", documentation="Headers, as name:value.", group="HTTP"),
    Key("header.separator", default="|", documentation="What is between headers.", group="HTTP"),
    Key(
        "request.body.format",
        default="string",
        documentation="string or json: values that are texts are bodies as they are, others JSON.",
        group="HTTP",
        check=one_of_any_case("string", "json"),
    ),
    Key(
        "batch.max.size",
        Type.INT,
        "1",
        "How many records a request has at most.",
        check=at_least(1),
    ),
    Key("batch.prefix", default="", documentation="What is before the records: nothing, or [."),
    Key("batch.suffix", default="", documentation="What is after the records: nothing, or ]."),
    Key(
        "batch.separator",
        default=",",
        documentation="What is between records: a comma, or \\n.",
    ),
    Key("batch.json.as.array", Type.BOOLEAN, "false", "Whether a batch is a JSON array."),
    Key(
        AUTH,
        default="NONE",
        documentation="NONE, BASIC or OAUTH2.",
        check=only(
            ("NONE", "BASIC", "OAUTH2"), "certificates of clients are not sent", any_case=True
        ),
    ),
    Key("connection.user", default="", documentation="The user of BASIC."),
    Key("connection.password", Type.PASSWORD, "", "The password of BASIC."),
    Key("oauth2.token.url", default="", documentation="Where tokens are fetched."),
    Key("oauth2.client.id", default="", documentation="The client of OAUTH2."),
    Key("oauth2.client.secret", Type.PASSWORD, "", "The secret of that client."),
    Key("oauth2.client.scope", default="", documentation="The scope of tokens."),
    Key(
        "oauth2.token.property",
        default="access_token",
        documentation="Where the token is in the reply.",
        check=only(("access_token",), "the token is read from access_token"),
    ),
    Key(
        "retry.on.status.codes",
        Type.LIST,
        "",
        "Statuses after which a request is sent again, as in 429,500-; default: 408, 425, 429, 5xx.",
    ),
    Key("http.request.timeout.ms", Type.INT, None, "The longest time for a request."),
    Key(
        NULLS,
        default="ignore",
        documentation="What a record without a value does: ignore, or fail.",
        check=only(("ignore", "fail"), "one connector sends one method", any_case=True),
    ),
    Key(
        ERRORS,
        default=None,
        documentation="What a refused record does: fail ends the connector; ignore and log need "
        "errors.tolerance=all. Default: as errors.tolerance says.",
        check=only(
            ("ignore", "log", "fail"), "refused records end the connector or not", any_case=True
        ),
    ),
    document_keys.CA,
)

WITHOUT_EFFECT: KeyTable = {
    "max.retries": RETRIES,
    "retry.backoff.ms": RETRIES,
    "retry.backoff.policy": RETRIES,
    "http.connect.timeout.ms": RETRIES,
    "linger.ms": document_keys.BATCHES,
    "batch.key.pattern": "records of a request are of one partition; with ${topic} or ${key} in the "
    "address each request has one record",
    "reporter.*": REPORTS,
    "report.errors.as": REPORTS,
    "confluent.*": LICENSE,
    "sensitive.headers": "headers are not logged",
    "oauth2.client.auth.mode": "the client is named as RFC 6749 recommends",
}

REFUSED: KeyTable = {
    "regex.*": REGEX,
    "http.proxy.*": document_keys.NO_PROXY,
    "https.ssl.*": document_keys.NO_JAVA_STORES,
    "ssl.*": document_keys.NO_JAVA_STORES,
    "oauth2.client.headers": "requests for tokens have no headers of their own",
}
