"""Checks for settings that contradict each other, before a client or Spark is started."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.config.checks import Checked

_TLS_KEYS = (
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.location",
)
_USER = ("sasl.username", "sasl.password")


def inconsistencies(checked: Checked) -> Iterator[str]:
    """Yield contradictions between keys; a key with its own problem is not reported again."""
    if checked.lacks("bootstrap.servers"):
        yield "bootstrap.servers is missing: give the brokers, for example localhost:9092"
    yield from _tls_problems(checked)
    if "security.protocol" in checked.values or checked.lacks("security.protocol"):
        protocol = str(checked.values.get("security.protocol", "plaintext"))
        yield from _protocol_problems(checked, protocol)
        if protocol.startswith("sasl_"):
            yield from _sasl_problems(checked)
    yield from _timing_problems(checked)
    yield from _idempotence_problems(checked)


def _protocol_problems(checked: Checked, protocol: str) -> Iterator[str]:
    sasl = [name for name in checked.values if name.startswith("sasl.")]
    if sasl and not protocol.startswith("sasl_"):
        yield (
            f"{', '.join(sasl)} not used while security.protocol is {protocol}; "
            "set security.protocol to sasl_ssl or sasl_plaintext"
        )
    if (tls := checked.given(*_TLS_KEYS)) and not protocol.endswith("ssl"):
        yield (
            f"{', '.join(tls)} not used while security.protocol is {protocol}; "
            "set security.protocol to ssl or sasl_ssl"
        )


def _tls_problems(checked: Checked) -> Iterator[str]:
    for part in ("ssl.ca", "ssl.certificate", "ssl.key", "https.ca"):
        if len(checked.given(f"{part}.location", f"{part}.pem")) == 2:
            yield f"{part}.location and {part}.pem are both given; allowed: one of them"
    certificate = checked.given("ssl.certificate.location", "ssl.certificate.pem")
    key = checked.given("ssl.key.location", "ssl.key.pem")
    if key and checked.lacks("ssl.certificate.location", "ssl.certificate.pem"):
        yield f"{key[0]} without a certificate: give ssl.certificate.location too"
    if certificate and checked.lacks("ssl.key.location", "ssl.key.pem"):
        yield f"{certificate[0]} without its key: give ssl.key.location too"


def _sasl_problems(checked: Checked) -> Iterator[str]:
    mechanism = checked.values.get("sasl.mechanisms")
    if mechanism == "OAUTHBEARER":
        yield from _oauth_problems(checked)
    elif mechanism == "GSSAPI":
        yield from _kerberos_problems(checked, "GSSAPI")
    elif mechanism:
        for name in _USER:
            if checked.lacks(name):
                yield f"{name} is missing: sasl.mechanisms {mechanism} needs it"
    elif checked.lacks("sasl.mechanisms"):
        yield from _kerberos_problems(checked, "GSSAPI (the default)")


def _kerberos_problems(checked: Checked, mechanism: str) -> Iterator[str]:
    if given := checked.given(*_USER):
        yield (
            f"{', '.join(given)} not used while sasl.mechanisms is {mechanism}; "
            "set sasl.mechanisms to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
        )
    if checked.given("sasl.kerberos.keytab") and checked.lacks("sasl.kerberos.principal"):
        yield "sasl.kerberos.principal is missing: sasl.kerberos.keytab needs it"


def _oauth_problems(checked: Checked) -> Iterator[str]:
    values = checked.values
    if values.get("sasl.oauthbearer.method") != "oidc":
        return
    if values.get("sasl.oauthbearer.metadata.authentication.type", "none") != "none":
        return
    needed = ["sasl.oauthbearer.token.endpoint.url"]
    if values.get("sasl.oauthbearer.grant.type", "client_credentials") == "client_credentials":
        needed += ["sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"]
    for name in needed:
        if checked.lacks(name):
            yield f"{name} is missing: sasl.oauthbearer.method oidc needs it"


def _timing_problems(checked: Checked) -> Iterator[str]:
    session = float(checked.values.get("session.timeout.ms", 45_000))
    poll = float(checked.values.get("max.poll.interval.ms", 300_000))
    if poll < session:
        yield (
            f"max.poll.interval.ms is {poll:.0f}, less than session.timeout.ms, {session:.0f}; "
            "allowed: the same or more"
        )


def _idempotence_problems(checked: Checked) -> Iterator[str]:
    values = checked.values
    reason = "transactional.id" if "transactional.id" in values else "enable.idempotence"
    if "transactional.id" in values and values.get("enable.idempotence") is False:
        yield "enable.idempotence is false: transactional.id needs true"
    elif not values.get(reason):
        return
    if values.get("acks", "all") not in ("all", -1):
        yield f"acks is {values['acks']}: {reason} needs all"
    if int(values.get("max.in.flight.requests.per.connection", 5)) > 5:
        given = values["max.in.flight.requests.per.connection"]
        yield f"max.in.flight.requests.per.connection is {given}: {reason} allows 1 .. 5"
    if values.get("retries") == 0:
        yield f"retries is 0: {reason} needs 1 or more"
