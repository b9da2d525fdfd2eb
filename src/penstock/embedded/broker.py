"""A real Apache Kafka on this machine, as child processes: for first steps, tests and demos."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.config import Connection
from penstock.embedded.access import Access
from penstock.embedded.broker_storage import format_storage
from penstock.embedded.certificates import LIFETIME as CERTIFICATE_LIFETIME
from penstock.embedded.home import Home, NodePlace, State, write_private
from penstock.embedded.oidc import LIFETIME as TOKEN_LIFETIME
from penstock.embedded.ports import HOST, is_open
from penstock.embedded.process import Child, log_file, tail
from penstock.embedded.properties import as_text, node_properties
from penstock.embedded.runtime import Runtime, kafka_runtime
from penstock.embedded.security import OWNER, Protocol, Security
from penstock.errors import ConfigError, SetupError

READY_WITHIN = 60.0
# The first run writes the class archive at exit, which takes some seconds.
GRACE = 20.0
PORT_RACES = 3


class Broker:
    """Apache Kafka (KRaft) on loopback, with one node or three.

    Temporary unless `data_dir` is given. It ends with this process, also when that is killed.

    Examples
    --------
    ::

        with Broker() as broker:
            print(broker.bootstrap_servers)  # 127.0.0.1:24817
    """

    def __init__(
        self,
        *,
        nodes: int = 1,
        data_dir: Path | str | None = None,
        port: int = 0,
        security: Protocol | Security = "plaintext",
        heap: str = "512m",
        properties: Mapping[str, str | int | bool] | None = None,
        detached: bool = False,
    ) -> None:
        if nodes not in (1, 3):
            raise ConfigError(f"nodes is {nodes}; a broker has 1 node or 3")
        if detached and data_dir is None:
            raise ConfigError(
                "a detached broker needs a data_dir: a temporary one would never be removed"
            )
        self.nodes = nodes
        self.port = port
        self.security = Security(protocol=security) if isinstance(security, str) else security
        if detached and self.security.oauth:
            raise ConfigError(
                "a detached broker cannot have the mechanism OAUTHBEARER: its tokens come from this "
                "process; let it run in the foreground, or use SCRAM-SHA-512"
            )
        self.heap = heap
        self.properties = dict(properties or {})
        self.detached = detached
        self._given_dir = Path(data_dir) if data_dir else None
        self._home: Home | None = None
        self._state: State | None = None
        self._access: Access | None = None
        self._children: dict[int, Child] = {}

    def start(self) -> Broker:
        """Start and wait until every node responds; a running broker is not touched."""
        if self._children:
            return self
        runtime = kafka_runtime()
        for attempt in range(1, PORT_RACES + 1):
            try:
                self._start(runtime)
            except SetupError:
                lost_race = self._lost_a_port()
                self.stop()
                if attempt == PORT_RACES or not lost_race or self.port:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def _start(self, runtime: Runtime) -> None:
        self._home = Home(self._given_dir)
        self._state = self._home.open(self.nodes, self.port, self.security)
        self._access = Access(self._home.path / "tls", self._state, self.security)
        format_storage(self._home, self._state, self.security, runtime)
        for node in self._state.nodes:
            self._start_node(node, runtime)
        self._wait_ready()

    def _start_node(self, node: NodePlace, runtime: Runtime) -> None:
        home, access, state = self._opened()
        folder = home.folder_of(node)
        settings = {
            **node_properties(node, state, self.security, folder / "data"),
            **access.server_settings(node),
            **self.properties,
        }
        config = folder / "server.properties"
        write_private(config, as_text(settings))
        first = node is state.nodes[0]
        # Only the C1 compiler: it took 40 % less CPU time to start, and less to serve 1.5
        # million records (reading them took a tenth longer by the clock, on a busy machine).
        # Encryption needs both compilers.
        compiler = [] if self.security.ssl else ["-XX:TieredStopAtLevel=1"]
        flags = [f"-Xmx{self.heap}", *compiler, *access.server_flags()]
        self._children[node.id] = Child(
            [*runtime.command("kafka.Kafka", *flags, archived=first), config],
            log=log_file(f"broker-{node.client_port}"),
            grace=GRACE,
            detached=self.detached,
            remove=home.path if home.temporary else None,
            keep=runtime.archive.keeping() if first else None,
        )

    def _wait_ready(self) -> None:
        client: list[AdminClient] = []
        for node in self._opened()[2].nodes:
            if child := self._children.get(node.id):
                child.wait_until(
                    lambda: self._all_answer(client),
                    timeout=READY_WITHIN,
                    what=f"Kafka node {node.id}",
                )

    def _all_answer(self, client: list[AdminClient]) -> bool:
        ports = [node.client_port for node in self._opened()[2].nodes if node.id in self._children]
        if not all(is_open(port) for port in ports):
            return False
        if not client:
            client.append(_quiet_admin(self.connection))
        try:
            return len(client[0].list_topics(timeout=1).brokers) == len(ports)
        except KafkaException:
            return False

    def _opened(self) -> tuple[Home, Access, State]:
        if self._home is None or self._access is None or self._state is None:
            raise SetupError(
                "The broker is not started; call start() or use it in a with statement"
            )
        return self._home, self._access, self._state

    def _lost_a_port(self) -> bool:
        logs = [child.log for child in self._children.values()]
        return any("Address already in use" in line for log in logs for line in tail(log, 60))

    def stop(self) -> None:
        """End all nodes; a temporary broker's files are removed."""
        disposable = self._home is not None and self._home.temporary
        for child in self._children.values():
            child.ask_to_stop(hard=disposable)
        for child in self._children.values():
            child.stop()
        self._children.clear()
        if self._access:
            self._access.close()
        if self._home:
            self._home.remove()

    def kill(self, node: int = 1) -> None:
        """Kill a node with SIGKILL, like a power failure; `restart` starts it again."""
        self._child(node).kill()
        del self._children[node]

    def restart(self, node: int = 1) -> None:
        """Start a node again with its ports and data, and wait until it responds."""
        if node in self._children:
            self._child(node).stop()
            del self._children[node]
        places = {place.id: place for place in self._opened()[2].nodes}
        self._start_node(places[node], kafka_runtime())
        self._wait_ready()

    def _child(self, node: int) -> Child:
        if node not in self._children:
            raise ConfigError(f"node {node} is not running; running: {sorted(self._children)}")
        return self._children[node]

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses for clients, separated by commas."""
        return ",".join(f"{HOST}:{node.client_port}" for node in self._opened()[2].nodes)

    @property
    def connection(self) -> Connection:
        """Return a connection that may do everything."""
        return self.connection_as(OWNER)

    def connection_as(self, user: str) -> Connection:
        """Return the connection of another user, who may do what ACLs allow."""
        settings = self._opened()[1].client_settings(self.bootstrap_servers, user)
        return Connection.from_config(settings)

    def renew_certificate(self, user: str, lifetime: timedelta = CERTIFICATE_LIFETIME) -> None:
        """Sign the client certificate that `connection_as(user)` has from now on."""
        self._opened()[1].renew_certificate(user, lifetime)

    def token(self, user: str, lifetime: float = TOKEN_LIFETIME) -> str:
        """Sign a token (OAUTHBEARER) for a client that brings its own `oauth_cb`."""
        return self._opened()[1].token(user, lifetime)

    @property
    def client_settings(self) -> dict[str, str]:
        """Return the same connection in librdkafka's names, with its real secrets, for storing it."""
        return self._opened()[1].client_settings(self.bootstrap_servers, OWNER)

    @property
    def temporary(self) -> bool:
        """Return whether the data is removed when the broker stops."""
        return self._given_dir is None

    @property
    def data_dir(self) -> Path:
        """Return the data folder of the nodes."""
        return self._opened()[0].path

    @property
    def log_path(self) -> Path:
        """Return the log of the first node."""
        return log_file(f"broker-{self._opened()[2].nodes[0].client_port}")

    @property
    def children(self) -> list[Child]:
        """Return the running nodes' processes."""
        return list(self._children.values())

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _quiet_admin(connection: Connection) -> AdminClient:
    # A starting broker refuses connections for a while: that is expected and not printed.
    quick: dict[str, Any] = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
    quiet = {"log_level": 0, "error_cb": lambda _error: None}
    return AdminClient(connection.librdkafka("admin", **quick) | quiet)
