"""A real RabbitMQ on the loopback, for tests: with a password, a TLS listener, and an epmd of its own.

Two runs at the same time do not meet: the name service of Erlang (epmd) would be one for the machine, so
each server has its own, at a port of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
from tests.services.server import Server, as_user

from penstock.embedded.certificates import Authority
from penstock.embedded.ports import free_ports
from penstock.embedded.process import Child

PASSWORD = "s3cret/with:signs@"
USER = "penstock"
_PROGRAMS = Path("/usr/lib/rabbitmq/bin")


def _program() -> Path | None:
    return _PROGRAMS / "rabbitmq-server" if (_PROGRAMS / "rabbitmq-server").exists() else None


class RabbitMq(Server):
    """One node; the user is `penstock`. Stopped or killed, it can be started again with its queues."""

    def __init__(self, **settings: str | int) -> None:
        super().__init__("rabbitmq", "rabbitmq", "rabbitmq-server", _program)
        self._epmd: Child | None = None
        self.tls_port, self._epmd_port, self._node_port = free_ports(3)
        self.authority = Authority(self.folder / "tls")
        served = self.authority.server("server")
        self.client_certificate = self.authority.client(USER)
        lines = {
            "listeners.tcp.default": f"{self.host}:{self.port}",
            "listeners.ssl.default": f"{self.host}:{self.tls_port}",
            "ssl_options.cacertfile": self.authority.ca,
            "ssl_options.certfile": served.certificate,
            "ssl_options.keyfile": served.key,
            "ssl_options.verify": "verify_peer",
            "ssl_options.fail_if_no_peer_cert": "false",
            "default_user": USER,
            "default_pass": PASSWORD,
            "loopback_users": "none",
            "disk_free_limit.absolute": "1MB",
            # A consumer of a test may be suspended: what it holds goes back soon.
            "heartbeat": 10,
            **settings,
        }
        config = "".join(f"{name} = {value}\n" for name, value in lines.items())
        (self.folder / "rabbitmq.conf").write_text(config)
        (self.folder / "plugins").write_text("[].\n")
        self._own(self.folder)
        self.start()

    def url(self, scheme: str = "amqp", vhost: str = "") -> str:
        """Return the address, without the password."""
        port = self.tls_port if scheme == "amqps" else self.port
        path = f"/{quote(vhost, safe='')}" if vhost else ""
        return f"{scheme}://{USER}@{self.host}:{port}{path}"

    @property
    def options(self) -> dict[str, Any]:
        """The options that the source and the sink need."""
        return {"url": self.url(), "password": PASSWORD}

    @contextmanager
    def channel(self, vhost: str = "/") -> Iterator[Any]:
        """Open a channel of pika's."""
        parameters = pika.ConnectionParameters(
            self.host, self.port, vhost, pika.PlainCredentials(USER, PASSWORD), heartbeat=0
        )
        connection = pika.BlockingConnection(parameters)
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def declare(self, queue: str, **arguments: Any) -> None:
        """Create a queue that lasts."""
        with self.channel() as channel:
            channel.queue_declare(queue, durable=True, arguments=arguments)

    def publish(self, queue: str, bodies: Sequence[bytes], **properties: Any) -> None:
        """Put messages into a queue; the number of each is its message id."""
        with self.channel() as channel:
            channel.tx_select()
            for number, body in enumerate(bodies):
                given = {"delivery_mode": 2, "message_id": str(number), **properties}
                channel.basic_publish("", queue, body, pika.BasicProperties(**given))
            channel.tx_commit()  # all are on the disk: they outlast a kill

    def depth(self, queue: str) -> int:
        """Return how many messages wait in a queue."""
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)

    def drain(self, queue: str) -> list[tuple[Any, Any, bytes]]:
        """Take all messages of a queue: delivery, properties and body."""
        taken = []
        with self.channel() as channel:
            while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
                taken.append(message)
        return taken

    def control(self, *arguments: str) -> str:
        """Run `rabbitmqctl`."""
        command = [*self._environment(), _PROGRAMS / "rabbitmqctl", *arguments]
        done = subprocess.run(
            as_user(self.user, command), check=True, capture_output=True, cwd=self.folder, text=True
        )
        return done.stdout

    def start(self) -> None:
        """Start it, again if it was stopped or killed."""
        if self._epmd is None:
            command = ["epmd", "-port", str(self._epmd_port), "-address", self.host]
            self._epmd = Child(as_user(self.user, command), log=self.folder / "epmd.log", grace=2)
        self.begin([*self._environment(), self.program], self._answers)

    def stop(self) -> None:
        """End it in order."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would, with -9."""
        self.end(signal.SIGKILL)

    def remove(self) -> None:
        """End it and its epmd, and take its files away."""
        self.end(signal.SIGKILL)
        if self._epmd is not None:
            self._epmd.kill()
        super().remove()

    def _environment(self) -> list[str | Path]:
        folder = self.folder
        variables = {
            # Both are places where Erlang looks for its cookie.
            "HOME": folder,
            "XDG_CONFIG_HOME": folder,
            "ERL_EPMD_PORT": self._epmd_port,
            "ERL_EPMD_ADDRESS": self.host,
            "RABBITMQ_NODENAME": f"penstock{self.port}@localhost",
            "RABBITMQ_DIST_PORT": self._node_port,
            "RABBITMQ_CONF_ENV_FILE": folder / "no-such-file",
            "RABBITMQ_CONFIG_FILE": folder / "rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
            "RABBITMQ_MNESIA_BASE": folder / "data",
            "RABBITMQ_LOG_BASE": folder / "logs",
            "RABBITMQ_PID_FILE": folder / "pid",
            # The script becomes the server, which then ends with this process, however that ends.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none",
        }
        return ["env", *(f"{name}={value}" for name, value in variables.items())]

    def _own(self, folder: Path) -> None:
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, self.user, self.user)

    def _answers(self) -> bool:
        try:
            with self.channel():
                return True
        except (pika.exceptions.AMQPError, OSError):
            return False
