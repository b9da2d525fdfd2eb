"""A secret that was given appears nowhere it can be read by accident."""

import io
import logging
import subprocess
import sys
import traceback

import pytest
import structlog

from penstock.config import Connection, find_connection
from penstock.config.secrets import MaskingFilter, mask_event
from penstock.errors import ConfigError

SECRET = "hunter2"  # a word that no message has by itself
GOOD = {
    "bootstrap.servers": "a",
    "security.protocol": "sasl_ssl",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "app",
    "sasl.password": SECRET,
    "ssl.key.password": SECRET,
    "ssl.keystore.password": SECRET,
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.assertion.private.key.passphrase": SECRET,
    "sasl.oauthbearer.assertion.private.key.pem": SECRET,
}


def test_not_in_repr_str_format_or_json():
    connection = Connection.from_config(GOOD)
    shown = [repr(connection), str(connection), f"{connection}", connection.model_dump_json()]
    shown += [str(connection.model_dump()), repr([connection]), str(connection.describe())]
    assert not [text for text in shown if SECRET in text]
    assert "app" in repr(connection)


BAD = [
    {**GOOD, "no.such.key": 1},
    {**GOOD, "sasl.password": [SECRET]},
    {**GOOD, "sasl.password": {"x": SECRET}},
    {**GOOD, "sasl.password": SECRET.encode()},
    {**GOOD, "security.protocol": "plaintext"},
    {**GOOD, "sasl.mechanism": "GSSAPI"},
    {**GOOD, "sasl.mechanisms": "GSSAPI"},
    {**GOOD, "sasl.mechanisms": "BAD"},
    {**GOOD, "bootstrap.servers": f"kafka://app:{SECRET}@host"},
    {**GOOD, "retries": f"sasl.password={SECRET}"},
    {**GOOD, "sasl.oauthbearer.client.credentials.client.secret": "other"},
    {**GOOD, "error_cb": print},
]


@pytest.mark.parametrize("mapping", BAD, ids=range(len(BAD)))
def test_not_in_errors_nor_in_their_tracebacks_nor_in_what_they_are_chained_to(mapping):
    with pytest.raises(ConfigError) as raised:
        find_connection(mapping)
    error = raised.value
    assert SECRET not in "".join(traceback.format_exception(error))
    assert SECRET not in repr(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_not_in_the_error_of_a_keyword():
    with pytest.raises(ConfigError) as raised:
        Connection(brokers="a", sasl_password=[SECRET], sasl_mechanism=5)
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_not_in_the_error_of_a_change():
    connection = Connection.from_config(GOOD)
    with pytest.raises(ConfigError) as raised:
        connection.sasl_password = SECRET
    expected = "a connection cannot be changed (sasl_password); make another one instead"
    assert str(raised.value) == expected


def test_not_in_logs_even_when_a_whole_configuration_is_logged():
    connection = Connection.from_config(GOOD)
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(MaskingFilter())
    plain = logging.Logger("test")
    plain.addHandler(handler)
    structured = structlog.wrap_logger(
        structlog.PrintLogger(out), processors=[mask_event, structlog.processors.JSONRenderer()]
    )
    for shown in (connection, connection.describe(), connection.to_config()):
        plain.error("using %s", shown)
        structured.error("using", connection=shown, text=str(shown))
    assert SECRET not in out.getvalue()
    assert "app" in out.getvalue()


def test_not_in_the_java_settings_once_they_are_masked():
    settings = Connection.from_config(GOOD).spark()
    assert SECRET in settings["kafka.sasl.jaas.config"]
    assert SECRET not in str(mask_event(None, "info", {"settings": settings}))


def test_a_key_that_does_not_open_is_not_shown(pem):
    connection = Connection(
        brokers="a",
        security_protocol="ssl",
        ssl_certificate_location=str(pem.certificate),
        ssl_key_location=str(pem.encrypted_key),
        ssl_key_password="wrong-hunter2",
    )
    with pytest.raises(ConfigError) as raised:
        connection.jvm()
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_loading_config_loads_nothing_heavy():
    script = (
        "import sys, penstock.config;"
        "assert 'pydantic' not in sys.modules;"
        "penstock.config.find_connection({'brokers': 'a'}).jvm();"
        "heavy = {'pyarrow', 'pandas', 'pyspark', 'confluent_kafka', 'cryptography'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_public_name_can_be_had():
    import penstock.config

    assert [
        name for name in penstock.config.__all__ if getattr(penstock.config, name) is None
    ] == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = penstock.config.nothing
