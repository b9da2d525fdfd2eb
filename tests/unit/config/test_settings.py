"""Named connections: which file wins, what the environment adds, what the errors say."""

from pathlib import Path

import pytest

from penstock.config import Connection, find_connection
from penstock.config.directories import config_dir, data_dir
from penstock.config.settings import settings_paths
from penstock.errors import ConfigError


def here(text):
    Path("penstock.yaml").write_text(text)


def user(text):
    (config_dir() / "penstock.yaml").write_text(text)


def embedded(text="connections: {embedded: {bootstrap.servers: 'localhost:19092'}}"):
    (data_dir() / "embedded.yaml").write_text(text)


def error(what=None):
    with pytest.raises(ConfigError) as raised:
        find_connection(what)
    return str(raised.value)


TWO = """
default: prod
connections:
  prod:
    bootstrap.servers: prod-1,prod-2:9093
    client.id: app
    linger.ms: 5
  dev:
    metadata.broker.list: localhost
"""


def test_a_connection_is_found_by_name_and_by_default():
    here(TWO)
    assert find_connection("dev") == Connection(brokers="localhost")
    assert find_connection() == find_connection("prod")
    assert find_connection().brokers == "prod-1:9092,prod-2:9093"
    assert find_connection().options == {"linger.ms": 5}


def test_a_connection_and_a_mapping_and_an_address_are_taken_as_they_are(monkeypatch):
    monkeypatch.setenv("HOST", "kafka-7")
    connection = Connection(brokers="a")
    assert find_connection(connection) is connection
    assert find_connection({"bootstrap.servers": "${env:HOST}"}).brokers == "kafka-7:9092"
    assert find_connection("kafka-7:9093,b").brokers == "kafka-7:9093,b:9092"


def test_the_nearer_file_wins_by_name_and_the_others_stay():
    here("connections: {a: {brokers: near}}")
    user("default: b\nconnections: {a: {brokers: far}, b: {brokers: user}}")
    assert find_connection("a").brokers == "near:9092"
    assert find_connection("b").brokers == "user:9092"
    assert find_connection().brokers == "user:9092"


def test_the_nearer_default_wins():
    here("default: a\nconnections: {a: {brokers: near}}")
    user("default: b\nconnections: {b: {brokers: user}}")
    assert find_connection().brokers == "near:9092"


def test_a_single_connection_is_the_default():
    here("connections: {only: {brokers: only}}")
    embedded()
    assert find_connection().brokers == "only:9092"


def test_the_embedded_broker_is_the_default_when_nothing_else_is():
    embedded()
    assert find_connection().brokers == "localhost:19092"
    assert find_connection("embedded").brokers == "localhost:19092"


def test_the_environment_picks_the_default(monkeypatch):
    here(TWO)
    monkeypatch.setenv("PENSTOCK_CONNECTION", "dev")
    assert find_connection().brokers == "localhost:9092"


def test_the_environment_overrides_keys_of_the_default_only(monkeypatch):
    here(TWO)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "other")
    monkeypatch.setenv("PENSTOCK_KAFKA_QUEUE_BUFFERING_MAX_MS", "7")
    assert find_connection().brokers == "other:9092"
    assert find_connection().client_id == "app"
    assert find_connection().options == {"linger.ms": 7}
    assert find_connection("prod") == find_connection()
    assert find_connection("dev").brokers == "localhost:9092"


def test_an_alias_in_the_file_is_overridden_too(monkeypatch):
    here("connections: {a: {metadata.broker.list: old, queue.buffering.max.ms: 1}}")
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "new")
    monkeypatch.setenv("PENSTOCK_KAFKA_LINGER_MS", "2")
    assert find_connection() == Connection(brokers="new", options={"linger.ms": 2})


def test_the_environment_alone_makes_a_connection(monkeypatch):
    monkeypatch.setenv("PENSTOCK_KAFKA_METADATA_BROKER_LIST", "kafka")
    monkeypatch.setenv("PENSTOCK_KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("PENSTOCK_KAFKA_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("PENSTOCK_KAFKA_SASL_USERNAME", "app")
    monkeypatch.setenv("PENSTOCK_KAFKA_SASL_PASSWORD", "${literal}")
    connection = find_connection()
    assert connection.brokers == "kafka:9092"
    assert connection.librdkafka("admin")["sasl.password"] == "${literal}"


def test_brokers_in_the_environment_are_not_the_embedded_broker(monkeypatch):
    embedded("connections: {embedded: {bootstrap.servers: 'localhost:1', client.id: e}}")
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "kafka")
    assert find_connection() == Connection(brokers="kafka")


def test_references_are_filled_in_for_the_asked_connection_only(monkeypatch):
    here("connections: {a: {brokers: a, client.id: '${file:id}'}, b: {brokers: '${env:NO_SUCH}'}}")
    Path("id").write_text("from-file\n")
    assert find_connection("a").client_id == "from-file"
    origin = f"connection 'b' in {Path.cwd() / 'penstock.yaml'}"
    assert error("b").startswith(
        f"{origin}: brokers: ${{env:NO_SUCH}}: the environment variable NO_SUCH"
    )


def test_files_beside_the_user_settings_are_found_from_there():
    (config_dir() / "id").write_text("next to it")
    user("connections: {a: {brokers: a, client.id: '${file:id}'}}")
    assert find_connection("a").client_id == "next to it"


def test_an_unknown_name_says_which_exist_and_which_files_were_read():
    here(TWO)
    embedded()
    text = error("prd")
    assert "no connection is named 'prd': did you mean 'prod'? (known: prod, dev, embedded)" in text
    assert str(Path.cwd() / "penstock.yaml") in text
    assert str(data_dir() / "embedded.yaml") in text
    assert str(config_dir() / "penstock.yaml") not in text


def test_a_default_that_does_not_exist_is_an_unknown_name(monkeypatch):
    here("connections: {a: {brokers: a}}")
    monkeypatch.setenv("PENSTOCK_CONNECTION", "zzz")
    assert "no connection is named 'zzz'" in error()


def test_nothing_set_up_says_where_it_looked_and_what_to_do():
    text = error()
    assert all(str(path) in text for path in settings_paths())
    assert "penstock broker start" in text
    assert "PENSTOCK_KAFKA_BOOTSTRAP_SERVERS" in text
    assert "there are no connections; files read: none" in error("x")


def test_several_connections_without_a_default_must_be_chosen_from():
    here("connections: {a: {brokers: a}, b: {brokers: b}}")
    assert "there are several connections (a, b) and no default" in error()
    assert find_connection("a").brokers == "a:9092"


def test_a_bad_connection_names_itself_and_its_file():
    here("connections: {prod: {bootstrap.server: a}}")
    assert error("prod") == (
        f"connection 'prod' in {Path.cwd() / 'penstock.yaml'}: "
        "unknown key 'bootstrap.server': did you mean 'bootstrap.servers'?"
    )


def test_an_unknown_variable_gets_the_nearest(monkeypatch):
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVER", "x")
    assert error() == (
        "unknown environment variable PENSTOCK_KAFKA_BOOTSTRAP_SERVER: "
        "did you mean 'PENSTOCK_KAFKA_BOOTSTRAP_SERVERS'?"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("connections:\n  a: {brokers: x\n  b: 1", "line 3: "),
        ("connections:\n\ta: 1", "line 2: found character '\\t' that cannot start any token"),
        ("connections:\n  a:\n    sasl.password: *hunter2", "line 3: found undefined alias"),
        ("connections:\n  a:\n    sasl.password: !hunter2 x", "line 3: could not determine"),
        ("a\x00b", "it has a character that YAML does not allow"),
        ("- a", "a list given; allowed: a mapping with `connections`"),
        ("just text", "a text given; allowed: a mapping with `connections`"),
        ("conections: {}", "unknown key 'conections': did you mean 'connections'?"),
        ("connections: [a]", "connections: a list given; allowed: a mapping"),
        ("connections: {a: localhost}", "connection 'a': a text given; allowed: a mapping of keys"),
        ("connections: {a: }", "connection 'a': nothing given"),
        ("connections: {'a:b': {}}", "connection 'a:b': allowed: a name without a colon"),
        ("default: [a]", "default: a list given; allowed: a connection's name"),
    ],
)
def test_a_broken_file_is_named_with_the_line_and_without_its_values(text, message):
    here(text)
    assert error().startswith(f"{Path.cwd() / 'penstock.yaml'}: {message}")
    assert "hunter2" not in error()


def test_a_file_that_is_not_text_is_refused():
    Path("penstock.yaml").write_bytes(b"\xff\xfe\xff")
    assert error().endswith("penstock.yaml: it is not UTF-8 text")


def test_an_empty_file_is_no_connection():
    here("# nothing yet\n")
    embedded()
    assert find_connection().brokers == "localhost:19092"


def test_looking_for_a_connection_makes_no_directories(tmp_path):
    find_connection({"brokers": "a"})
    error()
    assert not (tmp_path / "home").exists()
