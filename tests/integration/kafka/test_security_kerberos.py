"""Kerberos: Kafka's Java client, which is the one inside Spark, logs in with what a connection says."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.kafka.kerberos import Kdc

from penstock.config import Connection
from penstock.config.jaas import jaas_line
from penstock.embedded import Broker
from penstock.embedded.ports import HOST
from penstock.embedded.tools import run_tool
from penstock.errors import TerminalError
from penstock.kafka import Admin

pytestmark = pytest.mark.timeout(600)  # the first run installs Debian packages


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    kdc = Kdc(Path(tmp_path_factory.mktemp("kdc")))
    with pytest.MonkeyPatch.context() as patch:
        # Java asks a property for the realm's address, and takes properties from here everywhere.
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.config}")
        yield kdc
    kdc.stop()


@pytest.fixture(scope="module")
def broker(kdc: Kdc) -> Iterator[Broker]:
    """Takes passwords too: librdkafka, which looks whether it is up, has no Kerberos here."""
    # Java asks for a ticket to the name that the address has, not to the address.
    service, keytab = kdc.keytab(f"kafka/{socket.gethostbyaddr(HOST)[0]}")
    options = {"useKeyTab": True, "storeKey": True, "keyTab": str(keytab), "principal": service}
    properties = {
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN,GSSAPI",
        "listener.name.client.gssapi.sasl.jaas.config": jaas_line("GSSAPI", options),
        "sasl.kerberos.service.name": "kafka",
    }
    with Broker(security="sasl_plaintext", properties=properties) as broker:
        yield broker


def logging_in(broker: Broker, principal: str, keytab: Path) -> Connection:
    return Connection.from_config(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal": principal,
            "sasl.kerberos.keytab": str(keytab),
        }
    )


def test_a_keytab_logs_the_java_client_in(kdc: Kdc, broker: Broker) -> None:
    alice = logging_in(broker, *kdc.keytab("alice"))
    run_tool("kafka-topics", alice, ["--create", "--topic", "from-kerberos"])
    assert "from-kerberos" in run_tool("kafka-topics", alice, ["--list"]).splitlines()
    with Admin(broker.connection) as admin:
        assert [topic.name for topic in admin.topics()] == ["from-kerberos"]


def test_a_keytab_of_somebody_else_does_not_log_in(kdc: Kdc, broker: Broker) -> None:
    _, keytab = kdc.keytab("mallory")
    with pytest.raises(TerminalError, match="Could not login"):
        run_tool("kafka-topics", logging_in(broker, "root@PENSTOCK.TEST", keytab), ["--list"])
