"""Kafka's own command-line tools, run against any cluster, as a reference."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.config import Connection
from penstock.config.secrets import mask
from penstock.embedded.home import write_private
from penstock.embedded.properties import as_text
from penstock.embedded.runtime import kafka_runtime
from penstock.errors import ConfigError, TerminalError, nearest

TOOLS = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
DEADLINE = 120.0


def run_tool(name: str, connection: Connection, arguments: Sequence[str]) -> str:
    """Run one of Kafka's tools, as "kafka-topics" with ["--list"], and return its output."""
    if name not in TOOLS:
        raise ConfigError(f"there is no tool {name!r}: {nearest(name, list(TOOLS))}")
    runtime = kafka_runtime("tools")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "client.properties"
        settings = connection.jvm()
        write_private(config, as_text(settings))
        # Kafka 4 requests tokens only from URLs that were allowed when Java started.
        url = settings.get("sasl.oauthbearer.token.endpoint.url")
        allowed = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"] if url else []
        flags = ["-XX:TieredStopAtLevel=1", *allowed]
        command = runtime.command(TOOLS[name], *flags, archived=False)
        command += ["--bootstrap-server", connection.brokers, "--command-config", str(config)]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False
        )
    if done.returncode or done.stdout.startswith("Error:"):
        raise TerminalError(f"{name} failed: {mask((done.stderr + done.stdout).strip())}")
    return done.stdout
