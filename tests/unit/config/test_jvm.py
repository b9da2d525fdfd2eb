"""The Java client's side: names, words, JAAS and PEM."""

import re

import pytest
from cryptography.hazmat.primitives import serialization as forms

from penstock.config import Connection
from penstock.config.jaas import jaas_line
from penstock.errors import ConfigError

SASL = {"bootstrap.servers": "a", "security.protocol": "sasl_plaintext"}
OIDC = {
    **SASL,
    "sasl.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": 'a"b',
    "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
}


def jvm(**options):
    return Connection(brokers="a", options=options).jvm()


def test_every_setting_gets_its_java_name_and_form():
    settings = Connection.from_config(
        {
            "metadata.broker.list": "a,b:1",
            "client.id": "me",
            "debug": "all",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": "2000",
            "max.poll.interval.ms": 300000,
            "max.poll.records": 50,
            "request.timeout.ms": 30000,
            "acks": "all",
            "retries": 3,
            "max.in.flight.requests.per.connection": 5,
            "linger.ms": 0.5,
            "batch.size": 16384,
            "batch.num.messages": 10,
            "compression.codec": "zstd",
            "queue.buffering.max.messages": 1000,
            "queue.buffering.max.kbytes": 1024,
            "enable.idempotence": True,
            "message.max.bytes": 1000000,
            "delivery.timeout.ms": 60000,
            "group.id": "g",
            "enable.auto.commit": "false",
            "auto.commit.interval.ms": 1000,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "fetch.min.bytes": 1,
            "fetch.wait.max.ms": 250,
            "max.partition.fetch.bytes": 1048576,
        }
    ).jvm()
    assert settings == {
        "bootstrap.servers": "a:9092,b:1",
        "client.id": "me",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "2000",
        "max.poll.interval.ms": "300000",
        "max.poll.records": "50",
        "request.timeout.ms": "30000",
        "acks": "all",
        "retries": "3",
        "max.in.flight.requests.per.connection": "5",
        "linger.ms": "1",
        "batch.size": "16384",
        "compression.type": "zstd",
        "buffer.memory": "1048576",
        "enable.idempotence": "true",
        "max.request.size": "1000000",
        "delivery.timeout.ms": "60000",
        "group.id": "g",
        "enable.auto.commit": "false",
        "auto.commit.interval.ms": "1000",
        "isolation.level": "read_committed",
        "fetch.min.bytes": "1",
        "fetch.max.wait.ms": "250",
        "max.partition.fetch.bytes": "1048576",
    }


@pytest.mark.parametrize(
    ("word", "java"),
    [
        ("smallest", "earliest"),
        ("earliest", "earliest"),
        ("beginning", "earliest"),
        ("largest", "latest"),
        ("latest", "latest"),
        ("end", "latest"),
        ("error", "none"),
        ("none", "none"),
    ],
)
def test_offset_reset_has_three_words_in_java(word, java):
    assert jvm(**{"auto.offset.reset": word})["auto.offset.reset"] == java


def test_assignors_are_java_classes():
    java = jvm(**{"partition.assignment.strategy": "range,roundrobin,sticky,cooperative-sticky"})
    package = "org.apache.kafka.clients.consumer."
    assert java["partition.assignment.strategy"].split(",") == [
        f"{package}RangeAssignor",
        f"{package}RoundRobinAssignor",
        f"{package}StickyAssignor",
        f"{package}CooperativeStickyAssignor",
    ]


@pytest.mark.parametrize(
    ("key", "java"),
    [
        ("socket.send.buffer.bytes", "send.buffer.bytes"),
        ("socket.receive.buffer.bytes", "receive.buffer.bytes"),
        ("connections.max.idle.ms", "connections.max.idle.ms"),
    ],
)
def test_zero_for_the_system_is_minus_one_in_java(key, java):
    assert jvm(**{key: 0})[java] == "-1"
    assert jvm(**{key: 5})[java] == "5"


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
def test_a_user_and_password_become_jaas(mechanism, module):
    login = {"sasl.mechanisms": mechanism, "sasl.username": "app", "sasl.password": "hunter2"}
    assert Connection.from_config({**SASL, **login}).jvm() == {
        "bootstrap.servers": "a:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="app" password="hunter2";',
    }


@pytest.mark.parametrize(
    ("password", "written"),
    [
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ('\\"', r'"\\\""'),
        ("it's; a=b //x", '"it\'s; a=b //x"'),
        ("two\nlines\r", r'"two\nlines\r"'),
        ("pässwörd 日本", '"pässwörd 日本"'),
    ],
)
def test_passwords_are_quoted_and_escaped_for_jaas(password, written):
    line = jaas_line("PLAIN", {"password": password})
    assert line.endswith(f" required password={written};")
    # Java undoes it as a StreamTokenizer does: \n and \r are line ends, else the character itself.
    quoted = re.search(r'password="(.*)";$', line)[1]
    ends = {"n": "\n", "r": "\r"}
    assert re.sub(r"\\(.)", lambda found: ends.get(found[1], found[1]), quoted) == password


def test_kerberos_with_a_keytab():
    settings = Connection.from_config(
        {
            **SASL,
            "sasl.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafkaAdmin",
            "sasl.kerberos.principal": "app@EXAMPLE.COM",
            "sasl.kerberos.keytab": "/keys/app.keytab",
        }
    ).jvm()
    assert settings["sasl.mechanism"] == "GSSAPI"
    assert settings["sasl.kerberos.service.name"] == "kafkaAdmin"
    assert settings["sasl.jaas.config"] == (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        'keyTab="/keys/app.keytab" principal="app@EXAMPLE.COM";'
    )


def test_kerberos_without_a_keytab_uses_the_ticket_cache():
    settings = Connection.from_config(SASL).jvm()
    assert settings["sasl.kerberos.service.name"] == "kafka"
    assert settings["sasl.jaas.config"] == (
        "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
    )


def test_oauth_with_oidc():
    extra = {"sasl.oauthbearer.scope": "kafka read", "sasl.oauthbearer.extensions": "team=a,org=b"}
    settings = Connection.from_config({**OIDC, **extra}).jvm()
    package = "org.apache.kafka.common.security.oauthbearer."
    assert settings["sasl.oauthbearer.token.endpoint.url"] == "https://idp.example/token"
    assert (
        settings["sasl.login.callback.handler.class"] == f"{package}OAuthBearerLoginCallbackHandler"
    )
    assert settings["sasl.jaas.config"] == (
        rf'{package}OAuthBearerLoginModule required clientId="me" clientSecret="a\"b" '
        'scope="kafka read" extension_team="a" extension_org="b";'
    )


def test_the_certificate_of_the_token_server_goes_into_jaas(pem):
    line = Connection.from_config({**OIDC, "https.ca.location": str(pem.certificate)}).jvm()
    assert 'ssl.truststore.type="PEM"' in line["sasl.jaas.config"]
    assert r'ssl.truststore.certificates="-----BEGIN CERTIFICATE-----\n' in line["sasl.jaas.config"]


def test_oauth_with_a_callback_is_refused_for_java():
    connection = Connection.from_config({**SASL, "sasl.mechanisms": "OAUTHBEARER"})
    with pytest.raises(ConfigError, match=r"needs sasl.oauthbearer.method oidc"):
        connection.jvm()


def ssl(pem, **change):
    return Connection.from_config(
        {
            "bootstrap.servers": "a",
            "security.protocol": "ssl",
            "ssl.ca.location": str(pem.certificate),
            "ssl.certificate.location": str(pem.certificate),
            "ssl.key.location": str(pem.key),
            **{name.replace("_", "."): value for name, value in change.items()},
        }
    )


def test_pem_files_stand_inline(pem):
    settings = ssl(pem).jvm()
    assert settings == {
        "bootstrap.servers": "a:9092",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem.certificate.read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": pem.certificate.read_text(),
        "ssl.keystore.key": pem.key.read_text(),
    }


@pytest.mark.parametrize("form", ["key", "encrypted_key", "old_key", "old_encrypted_key"])
def test_any_form_of_key_becomes_the_one_that_java_17_reads(form, pem):
    settings = ssl(pem, ssl_key_location=str(getattr(pem, form)), ssl_key_password="hunter2").jvm()
    assert settings["ssl.keystore.key"] == pem.key.read_text()
    assert "ssl.key.password" not in settings


def test_pem_texts_do_as_well_as_files(pem):
    by_text = Connection(
        brokers="a",
        security_protocol="ssl",
        ssl_ca_pem=pem.certificate.read_text(),
        ssl_certificate_pem=pem.certificate.read_text(),
        ssl_key_pem=pem.key.read_text(),
    )
    assert by_text.jvm() == ssl(pem).jvm()


def test_a_directory_of_certificates_and_comments_in_files_are_fine(pem, tmp_path):
    folder = tmp_path / "ca"
    folder.mkdir()
    (folder / "a.pem").write_text("a comment\n" + pem.certificate.read_text() + "the end")
    (folder / "b.pem").write_text(pem.certificate.read_text())
    settings = ssl(pem, ssl_ca_location=str(folder)).jvm()
    assert settings["ssl.truststore.certificates"] == pem.certificate.read_text()


def test_a_pkcs12_store_keeps_its_place(pem):
    connection = Connection(
        brokers="a",
        security_protocol="ssl",
        options={"ssl.keystore.location": "/keys/me.p12", "ssl.keystore.password": "p"},
    )
    assert connection.jvm() == {
        "bootstrap.servers": "a:9092",
        "security.protocol": "SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/keys/me.p12",
        "ssl.keystore.password": "p",
    }


@pytest.mark.parametrize(("word", "java"), [("none", ""), ("https", "https")])
def test_host_name_verification(word, java, pem):
    settings = ssl(pem, ssl_endpoint_identification_algorithm=word).jvm()
    assert settings["ssl.endpoint.identification.algorithm"] == java


@pytest.mark.parametrize(
    "name", ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location"]
)
def test_a_missing_pem_file_is_named(name, pem, tmp_path):
    gone = tmp_path / "gone.pem"
    with pytest.raises(ConfigError) as error:
        ssl(pem, **{name: str(gone)}).jvm()
    assert str(error.value).startswith(f"{name}: cannot read {gone}: No such file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ssl_key_password": "wrong"}, "ssl.key.location: the key does not open"),
        ({}, "ssl.key.location: the key is encrypted and ssl.key.password is missing"),
    ],
)
def test_a_key_that_does_not_open_says_why(change, message, pem):
    with pytest.raises(ConfigError, match=message):
        ssl(pem, ssl_key_location=str(pem.encrypted_key), **change).jvm()


def test_a_file_without_a_certificate_is_refused(pem):
    with pytest.raises(ConfigError, match=r"ssl.ca.location: there is no certificate in it"):
        ssl(pem, ssl_ca_location=str(pem.key)).jvm()


def test_java_always_verifies_the_broker(pem):
    with pytest.raises(ConfigError, match="the Java client always verifies"):
        ssl(pem, enable_ssl_certificate_verification=False).jvm()


def test_the_key_on_the_java_side_is_the_same_key(pem):
    written = ssl(pem, ssl_key_location=str(pem.old_key)).jvm()["ssl.keystore.key"].encode()
    original = forms.load_pem_private_key(pem.key.read_bytes(), None)
    assert forms.load_pem_private_key(written, None).private_numbers() == original.private_numbers()


def test_spark_gets_the_same_under_its_prefix_without_what_it_refuses():
    connection = Connection(
        brokers="a",
        client_id="me",
        options={
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "transactional.id": "t",
            "linger.ms": 5,
            "fetch.min.bytes": 10,
        },
    )
    assert connection.spark() == {
        "kafka.bootstrap.servers": "a:9092",
        "kafka.client.id": "me",
        "kafka.linger.ms": "5",
        "kafka.fetch.min.bytes": "10",
    }
