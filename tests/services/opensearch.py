"""A real OpenSearch on the loopback, for tests: one node of 512 MB, made of its published jars.

Nothing is compiled: Java runs the gateway that PySpark ships, and Python makes the node through it. A
node with plugins that are on the class path has a protected constructor, which reflection can call.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from typing_extensions import Self

from penstock.embedded.jars import fetch_artifacts
from penstock.embedded.jars_lock import parse
from penstock.embedded.java import find_java
from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child

_LOCK = Path(__file__).with_name("opensearch.lock")
_PLUGIN = "org.opensearch.transport.Netty4Plugin"
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
"""


class OpenSearch:
    """One node; `settings` are more of its settings. Stopped or killed, it can be started again."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-opensearch-"))
        self._choose_ports()
        self.child: Child | None = None
        self._settings = settings
        (self.folder / "config").mkdir()
        (self.folder / "config" / "log4j2.properties").write_text(_LOG4J)

    def __enter__(self) -> Self:
        try:
            self.start()
        except Py4JJavaError as error:  # the ports were free, and another process was sooner
            if "BindException" not in str(error):
                raise
            self.kill()
            self._choose_ports()
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """The address of the node."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        jars = [*fetch_artifacts("opensearch", parse(_LOCK.read_text())), _gateway_jar()]
        command = [
            find_java().path, "-Xms512m", "-Xmx512m", "-XX:+UseSerialGC",
            "-Djava.net.preferIPv4Stack=true", f"-Djava.io.tmpdir={self.folder}",
            f"-Dlog4j2.configurationFile={self.folder / 'config' / 'log4j2.properties'}",
            "-cp", ":".join(map(str, jars)), "py4j.GatewayServer", str(self._gateway_port),
        ]  # fmt: skip
        self.child = Child(command, log=self.folder / "log", grace=20, remove=self.folder)
        self.child.wait_until(self._has_node, timeout=60, what="the gateway of OpenSearch")
        self.child.wait_until(self._answers, timeout=60, what="OpenSearch")

    def kill(self) -> None:
        """End it as a crash would."""
        if self.child is not None:
            self.child.kill()
            self.child = None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of a reply, whatever its status."""
        connection = HTTPConnection(HOST, self.port, timeout=30)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read() or b"{}")
        finally:
            connection.close()

    def documents(self, index: str, size: int = 10_000) -> dict[str, dict[str, Any]]:
        """Return the documents of an index by their ids."""
        self.refresh(index)
        hits = self.ask("GET", f"/{index}/_search?size={size}")["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    def count(self, index: str) -> int:
        """Return how many documents an index has; 0 where it does not exist."""
        if not self.refresh(index):
            return 0
        return int(self.ask("GET", f"/{index}/_count")["count"])

    def refresh(self, index: str) -> bool:
        """Make all documents of an index visible; return whether it exists.

        A server that is short of memory refuses it (429), and is asked again.
        """
        until = time.monotonic() + 60
        while True:
            reply = self.ask("POST", f"/{index}/_refresh")
            if reply.get("status") == 404:
                return False
            if reply.get("_shards", {}).get("failed") == 0:
                return True
            if time.monotonic() > until:
                raise TimeoutError(f"the refresh of {index} was refused for a minute: {reply}")
            time.sleep(0.1)

    def _choose_ports(self) -> None:
        self.port, self._gateway_port, self._transport = free_ports(3)

    def _has_node(self) -> bool:
        try:
            gateway = JavaGateway(
                gateway_parameters=GatewayParameters(address=HOST, port=self._gateway_port)
            )
            _start_node(gateway, self._all_settings())
        except (Py4JNetworkError, ConnectionError):
            return False
        gateway.close()
        return True

    def _all_settings(self) -> dict[str, str]:
        return {
            "path.home": str(self.folder),
            "node.name": "test",
            "cluster.name": self.folder.name,
            "discovery.type": "single-node",
            "network.host": HOST,
            "http.port": str(self.port),
            "transport.port": str(self._transport),
            "transport.type": "netty4",
            "http.type": "netty4",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            **self._settings,
        }

    def _answers(self) -> bool:
        with suppress(OSError, HTTPException, ValueError):
            health = self.ask("GET", "/_cluster/health")
            return health.get("status") in ("green", "yellow")
        return False


def _start_node(gateway: JavaGateway, settings: Mapping[str, str]) -> None:
    jvm = gateway.jvm
    builder = jvm.org.opensearch.common.settings.Settings.builder()
    for name, value in settings.items():
        builder.put(name, value)
    environment = jvm.org.opensearch.env.Environment(builder.build(), None)
    plugins = jvm.java.util.ArrayList()
    plugins.add(jvm.java.lang.Class.forName(_PLUGIN))
    node_class = jvm.java.lang.Class.forName("org.opensearch.node.Node")
    for constructor in node_class.getDeclaredConstructors():
        if constructor.getParameterCount() == 3:
            constructor.setAccessible(True)
            arguments = gateway.new_array(jvm.java.lang.Object, 3)
            arguments[0], arguments[1], arguments[2] = environment, plugins, False
            constructor.newInstance(arguments).start()
            return
    raise RuntimeError("this OpenSearch has no constructor of a node with plugins")


def _gateway_jar() -> Path:
    spec = find_spec("pyspark")
    assert spec and spec.origin
    return next((Path(spec.origin).parent / "jars").glob("py4j-*.jar"))
