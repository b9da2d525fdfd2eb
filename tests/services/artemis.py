"""A real Apache Artemis on the loopback, for tests: AMQP 1.0, with TLS and without, with passwords."""

from __future__ import annotations

import shutil
import signal
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import psutil
from typing_extensions import Self

from penstock.embedded.certificates import Authority
from penstock.embedded.jars import fetch_artifacts
from penstock.embedded.jars_lock import parse
from penstock.embedded.java import find_java
from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child

USER, PASSWORD = "penstock", "s3cret/with:signs@"
# Addresses below `full.` refuse messages when they have this many bytes, those below `held.` wait.
SMALL = 200_000

_LOGIN = """\
passwords {
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
  org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient
    org.apache.activemq.jaas.guest.user="guest" org.apache.activemq.jaas.guest.role="guests"
    credentialsInvalidate=true;
};
certificates {
  org.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule required
    org.apache.activemq.jaas.textfiledn.user="names.properties"
    org.apache.activemq.jaas.textfiledn.role="roles.properties";
};
"""
_BROKER = """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <name>penstock</name>
  <persistence-enabled>true</persistence-enabled>
  <journal-type>NIO</journal-type>
  <journal-datasync>false</journal-datasync>
  <journal-pool-files>2</journal-pool-files>
  <paging-directory>{data}/paging</paging-directory>
  <bindings-directory>{data}/bindings</bindings-directory>
  <journal-directory>{data}/journal</journal-directory>
  <large-messages-directory>{data}/large</large-messages-directory>
  <max-disk-usage>-1</max-disk-usage>
  <critical-analyzer>false</critical-analyzer>
  <acceptors>
    <acceptor name="plain">tcp://{host}:{port}?protocols=AMQP;amqpIdleTimeout=10000;securityDomain=passwords;saslMechanisms=PLAIN,ANONYMOUS</acceptor>
    <acceptor name="tls">tcp://{host}:{tls_port}?protocols=AMQP;sslEnabled=true;keyStoreType=PEM;keyStorePath={server};needClientAuth=false;securityDomain=passwords;saslMechanisms=PLAIN</acceptor>
    <acceptor name="mutual">tcp://{host}:{mutual_port}?protocols=AMQP;sslEnabled=true;keyStoreType=PEM;keyStorePath={server};trustStoreType=PEMCA;trustStorePath={ca};needClientAuth=true;securityDomain=certificates;saslMechanisms=EXTERNAL</acceptor>
  </acceptors>
  <security-settings>
    <security-setting match="#">
{rights}
    </security-setting>
    <security-setting match="forbidden.#"/>
  </security-settings>
  <address-settings>
    <address-setting match="#">
      <max-delivery-attempts>-1</max-delivery-attempts>
      <auto-delete-queues>false</auto-delete-queues>
      <auto-delete-addresses>false</auto-delete-addresses>
      <default-address-routing-type>ANYCAST</default-address-routing-type>
      <default-queue-routing-type>ANYCAST</default-queue-routing-type>
    </address-setting>
    <address-setting match="full.#">
      <max-size-bytes>{small}</max-size-bytes>
      <address-full-policy>FAIL</address-full-policy>
    </address-setting>
    <address-setting match="held.#">
      <max-size-bytes>{small}</max-size-bytes>
      <address-full-policy>BLOCK</address-full-policy>
    </address-setting>
    <address-setting match="strict.#">
      <auto-create-queues>false</auto-create-queues>
      <auto-create-addresses>false</auto-create-addresses>
    </address-setting>
  </address-settings>
</core></configuration>
"""
_RIGHTS = (
    "createNonDurableQueue deleteNonDurableQueue createDurableQueue deleteDurableQueue "
    "createAddress deleteAddress consume browse send manage"
)


class Artemis:
    """One broker in a folder of its own: stop it, kill it -9, start it again with its messages."""

    def __init__(self) -> None:
        self.host = HOST
        self.port, self.tls_port, self.mutual_port = free_ports(3)
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-artemis-"))
        self.authority = Authority(self.folder / "tls")
        self._child: Child | None = None
        self._configure()
        self.start()

    @property
    def url(self) -> str:
        """The address without TLS."""
        return f"amqp://{self.host}:{self.port}"

    @property
    def tls_url(self) -> str:
        """The address with TLS."""
        return f"amqps://localhost:{self.tls_port}"

    @property
    def mutual_url(self) -> str:
        """The address with TLS that wants a certificate of the client."""
        return f"amqps://localhost:{self.mutual_port}"

    @property
    def options(self) -> dict[str, str]:
        """The options of a source or sink that name this broker."""
        return {"url": self.url, "username": USER, "password": PASSWORD}

    def start(self) -> None:
        """Start it, again if it was stopped or killed."""
        lock = Path(__file__).with_suffix(".lock").read_text(encoding="utf-8")
        jars = fetch_artifacts("artemis", parse(lock))
        command = [
            find_java().path, "-Xmx320m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Xshare:auto", f"-Djava.security.auth.login.config={self.folder}/etc/login.config",
            "-cp", f"{self.folder}/etc:" + ":".join(map(str, jars)),
            "org.apache.activemq.artemis.core.server.embedded.Main", self.folder,
        ]  # fmt: skip
        log = self.folder / "log"
        self._child = Child(command, log=log, grace=20, remove=self.folder)
        self._child.wait_until(self._answers, timeout=90, what="Artemis")

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would, with -9."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Let it hang: connections stay open, and nothing is answered."""
        assert self._child is not None
        psutil.Process(self._child.pid).suspend()

    def resume(self) -> None:
        """Let it go on."""
        assert self._child is not None
        psutil.Process(self._child.pid).resume()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _configure(self) -> None:
        etc = self.folder / "etc"
        etc.mkdir()
        server = self.authority.server("localhost")
        both = self.folder / "tls" / "server-both.pem"
        both.write_text(server.key.read_text() + server.certificate.read_text())
        rights = "\n".join(
            f'      <permission type="{right}" roles="users,guests"/>' for right in _RIGHTS.split()
        )
        text = _BROKER.format(
            data=self.folder / "data", host=self.host, port=self.port, tls_port=self.tls_port,
            mutual_port=self.mutual_port, server=both, ca=self.authority.ca, rights=rights,
            small=SMALL,
        )  # fmt: skip
        (etc / "broker.xml").write_text(text)
        (etc / "login.config").write_text(dedent(_LOGIN))
        (etc / "users.properties").write_text(f"{USER}={PASSWORD}\n")
        (etc / "roles.properties").write_text(f"users={USER}\n")
        (etc / "names.properties").write_text(f"{USER}=CN={USER}\n")

    def _answers(self) -> bool:
        try:
            for port in (self.port, self.tls_port, self.mutual_port):
                socket.create_connection((self.host, port), timeout=5).close()
        except OSError:
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        if self._child is None:
            return
        with suppress(psutil.NoSuchProcess):
            psutil.Process(self._child.pid).send_signal(how)
        self._child.wait(30)
        self._child = None
