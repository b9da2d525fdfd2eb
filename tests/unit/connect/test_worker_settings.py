"""The property file of a Connect worker: what is used, what is noted, what is refused and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.config.secrets import mask
from penstock.connect.worker_defaults import CONNECT_WORKER, WorkerDefaults
from penstock.connect.worker_settings import (
    Listener,
    WorkerSettings,
    read_worker,
    worker_from_environment,
)
from penstock.errors import ConfigError

BASE = """\
bootstrap.servers=b:1
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
"""
# The files that Kafka's release has, without their comments.
DISTRIBUTED = """\
bootstrap.servers=localhost:9092
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000
plugin.path=/usr/share/java
"""


def read(tmp_path: Path, text: str) -> WorkerSettings:
    path = tmp_path / "w.properties"
    path.write_text(text)
    return read_worker(path)


def test_the_file_of_kafkas_release_has_notes_alone(tmp_path: Path) -> None:
    found = read(tmp_path, DISTRIBUTED)
    assert found.warnings == {}
    assert found.notes == {
        "group.id": "workers of one store work together: --store, or PENSTOCK_STORE",
        **dict.fromkeys(
            ("offset.storage.topic", "offset.storage.replication.factor"),
            "positions of sources are in the topic penstock-positions",
        ),
        **dict.fromkeys(
            ("config.storage.topic", "config.storage.replication.factor"),
            "configurations are in the store of the control plane",
        ),
        **dict.fromkeys(
            ("status.storage.topic", "status.storage.replication.factor"),
            "states are in the store of the control plane",
        ),
        "offset.flush.interval.ms": "positions are written in the transaction of their records",
        "plugin.path": "connectors are Python packages, those of Kafka are built in; jars are not loaded",
    }
    assert found.listener is None
    assert found.defaults.connection == {"bootstrap.servers": "localhost:9092"}
    assert found.defaults.converters["key.converter.schemas.enable"] == "true"


def test_every_key_is_used_or_has_a_note_or_a_warning(tmp_path: Path) -> None:
    text = BASE + (
        "listeners=http://localhost:18083, https://localhost:8443\n"
        "client.id=east\noffset.storage.file.filename=/tmp/connect.offsets\n"
        "producer.compression.type=zstd\nproducer.max.request.size=2000000\nproducer.interceptor.classes=x\n"
        "consumer.fetch.max.wait.ms=100\nconsumer.max.poll.records=5\n"
        "topic.creation.enable=false\nplugin.pth=/x\nunheard.of=y\nssl.protocol=TLS\n"
        "value.converter.unheard=z\nrest.extension.classes=a.B\n"
    )
    found = read(tmp_path, text)
    assert found.defaults.connection == {
        "bootstrap.servers": "b:1",
        "client.id": "east",
        "compression.type": "zstd",
        "message.max.bytes": "2000000",
        "fetch.wait.max.ms": "100",
    }
    assert found.listener == Listener("localhost", 18083)
    assert found.offsets_file == Path("/tmp/connect.offsets")
    assert found.notes.keys() == {"offset.storage.file.filename"}
    assert found.warnings == {
        "listeners": "there is one listener; the first one is used: http://localhost:18083",
        "producer.interceptor.classes": "producers do not have this setting here",
        "consumer.max.poll.records": "consumers do not have this setting here",
        "topic.creation.enable": "topics that do not exist are created",
        "plugin.pth": "this key is not known, and has no effect; did you mean 'plugin.path'?",
        "unheard.of": "this key is not known, and has no effect",
        "ssl.protocol": "a connection does not use it",
        "value.converter.unheard": "no effect here",
        "rest.extension.classes": "extensions are Java classes; users and roles are those of the server",
    }


def test_an_address_may_name_a_listener_as_in_kafka(tmp_path: Path) -> None:
    brokers = "bootstrap.servers=PLAINTEXT://b:1, SASL_SSL://c:2,d:3"
    found = read(tmp_path, BASE.replace("bootstrap.servers=b:1", brokers))
    assert found.defaults.connection["bootstrap.servers"] == "b:1,c:2,d:3"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "offset.flush.interval.ms=soon",
            "line 5: Invalid value soon for .* offset.flush.interval.ms: Not a number of type LONG",
        ),
        (
            "exactly.once.source.support=yes",
            "line 5: .* must be one of .*: disabled, preparing, enabled",
        ),
        ("security.protocol=TLS", "line 5: .*: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            "listeners=localhost:8083",
            "line 5: 'localhost:8083' is not a listener; allowed: http://HOST",
        ),
        (
            "producer.linger.ms=often",
            "line 5: linger.ms: 'often' is not allowed; allowed: numbers 0",
        ),
        (
            "header.converter=Headers",
            "line 5: Invalid value Headers for configuration header.converter",
        ),
        ("value.converter=com.example.Mine", "line 5: .*Class com.example.Mine could not be found"),
        ("bootstrap.servers=kafka://b:1", "line 5: bootstrap.servers: .* is not an address"),
        (
            "consumer.security.protocol=SSL\nproducer.security.protocol=PLAINTEXT",
            "line 5: consumer.security.protocol and producer.security.protocol are different",
        ),
        ("config.providers=vault", "line 5: config.providers.* is ''; allowed: FileConfigProvider"),
    ],
)
def test_a_wrong_value_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, BASE + line)


@pytest.mark.parametrize("key", ["bootstrap.servers", "key.converter", "value.converter"])
def test_a_worker_needs_a_cluster_and_converters(tmp_path: Path, key: str) -> None:
    text = "".join(line + "\n" for line in BASE.splitlines() if not line.startswith(f"{key}="))
    with pytest.raises(ConfigError, match=f"w.properties has no {key}; a worker"):
        read(tmp_path, text)


def test_providers_fill_values_and_are_those_of_connectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.properties").write_text("password=with ${sign}\n")
    monkeypatch.setenv("BROKERS", "east:9092")
    package = "org.apache.kafka.common.config.provider."
    text = BASE.replace("b:1", "${vars:BROKERS}") + (
        "config.providers=vars,mine\n"
        f"config.providers.vars.class={package}EnvVarConfigProvider\n"
        f"config.providers.mine.class={package}FileConfigProvider\n"
        "config.providers.mine.param.allowed.paths=/run\n"
    )
    found = read(tmp_path, text)
    assert found.defaults.connection == {"bootstrap.servers": "east:9092"}
    assert found.warnings.keys() == {"config.providers.mine.param.allowed.paths"}
    reference = f"${{mine:{tmp_path}/secrets.properties:password}}"
    readable = found.defaults.readable({"a": f"<{reference}>", "b": "${env:X}", "c": "${file:/x}"})
    assert readable["a"] == "<with ${sign}>"
    # References of Penstock itself are resolved with the definition.
    assert (readable["b"], readable["c"]) == ("${env:X}", "${file:/x}")


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONNECT_WORKER, raising=False)
    assert worker_from_environment() == WorkerDefaults()
    path = tmp_path / "w.properties"
    path.write_text(BASE)
    monkeypatch.setenv(CONNECT_WORKER, str(path))
    assert worker_from_environment().find_connection().brokers == "b:1"


def test_a_definition_gets_the_cluster_of_the_worker() -> None:
    worker = WorkerDefaults(
        {
            "bootstrap.servers": "b:1",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "ann",
            "sasl.password": "a${b}",
        }
    )
    placed = worker.placed({"name": "x"})
    assert placed["connection"].to_config()["sasl.password"] == "a${b}"
    assert worker.placed({"connection": "own"}) == {"connection": "own"}
    assert WorkerDefaults().placed({"name": "x"}) == {"name": "x"}
    assert "a${b}" not in repr(worker)


def test_a_secret_of_a_provider_in_an_address_is_masked_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "db.properties"
    file.write_text("password=tr0ub4dor-3\n")
    url = f"jdbc:postgresql://db/shop?user=app&x=${{file:{file}:password}}"
    made = WorkerDefaults().readable({"connection.url": url})
    assert made["connection.url"].endswith("x=tr0ub4dor-3")
    assert "tr0ub4dor-3" not in mask("refused: tr0ub4dor-3")
