"""Every Python block and every command of the README and of docs/ runs, and prints what the page shows.

A page's blocks run in their order: Python in one namespace, commands in one folder. What a block needs
that the page does not make (topics, records, files) is prepared here. A block that cannot run in a test
has a comment before it in the page, `<!-- not run: the reason -->`.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer
from importlib.metadata import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from tests.e2e import terminal
from tests.e2e.pages import Block, blocks, pages
from tests.services.artemis import PASSWORD as JMS_PASSWORD
from tests.services.artemis import USER as JMS_USER
from tests.services.artemis import Artemis
from tests.services.object_store import S3Server
from tests.services.opensearch import OpenSearch
from tests.services.penstock_server import PenstockServer
from tests.services.postgres import PASSWORD as POSTGRES_PASSWORD
from tests.services.postgres import Postgres
from tests.services.rabbitmq import PASSWORD as RABBITMQ_PASSWORD
from tests.services.rabbitmq import USER as RABBITMQ_USER
from tests.services.rabbitmq import RabbitMq

import penstock.jobs
from penstock import Admin, Connection, Consumer, Producer, Running, read_pipeline, start
from penstock.embedded import Broker, Security
from penstock.embedded.ports import free_ports
from penstock.testing import eventually, fill

ROOT = Path(__file__).parents[2]
# The Python of these pages has tests of its own.
ELSEWHERE = {
    "CONTRIBUTING.md": "tests/unit/pipeline/test_own_components.py",
    "docs/connect-development.md": "tests/unit/pipeline/test_own_components.py",
    "docs/kafka-client.md": "tests/integration/kafka/test_guide.py",
    "docs/formats.md": "tests/unit/formats/test_page.py",
    "docs/registry-formats.md": "tests/integration/formats/test_registry_page.py",
    "docs/pipeline-formats.md": "tests/integration/formats/test_pipeline_formats_page.py",
    "docs/dolphindb.md": "tests/integration/dolphindb/test_guide.py",
}
# Signatures and docstrings, made from the code: tests/integration/formats/test_api_examples.py runs the
# examples that doctest does not.
REFERENCE = "docs/api.md"
ALL = [
    block
    for page in pages(ROOT)
    for block in blocks(str(page.relative_to(ROOT)), page.read_text())
    if block.page != REFERENCE
]
NOT_RUN = {
    "README.md": 3,
    "CONTRIBUTING.md": 3,
    "docs/cluster.md": 3,
    "docs/connect-development.md": 2,
    "docs/control-plane.md": 3,
    "docs/flows.md": 3,
    "docs/from-topic-to-table.md": 1,
    "docs/jobs.md": 1,
    "docs/moving-from-kafka-connect.md": 6,
    "docs/security.md": 1,
}
# What a command that stays prints when it is up, where that is not the state of a pipeline.
READY = {"jobs stats": "rows/s", "jobs logs": "created"}
MINE = sorted(
    {block.page for block in ALL if block.kind != "file" and not block.not_run} - {*ELSEWHERE}
)


@dataclass
class Reader:
    """A user who follows one page, in an own folder."""

    connection: Connection
    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    environment: dict[str, str] = field(default_factory=dict)
    # Addresses in the page, and what they are here.
    addresses: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    closing: ExitStack = field(default_factory=ExitStack)

    def follow(self, block: Block) -> None:
        """Do what a block is there for."""
        text = self._here(block.text)
        if block.kind == "file":
            self._save(block, text)
        elif block.kind == "python":
            # As many lines before it as on the page: an error then names the right one.
            exec(compile("\n" * block.line + text, block.page, "exec"), self.names)
        else:
            for command, shown in block.commands():
                self._type(self._here(command), shown, block)
        self.done.append(block.place)

    def _here(self, text: str) -> str:
        for address, own in self.addresses.items():
            text = text.replace(address, own)
        return text

    def _save(self, block: Block, text: str) -> None:
        name = block.saved_as or f"{yaml.safe_load(text)['name']}.yaml"
        (self.folder / name).write_text(text)

    def _type(self, command: str, shown: str | None, block: Block) -> None:
        given = (command, self.folder, self.environment)
        if "until Ctrl-C" in command:
            ready = next((READY[name] for name in READY if name in command), "RUNNING")
            code, printed = terminal.interrupt(*given, ready)
            assert code in (0, 130), f"{block.place}: {command}\n{printed}"
            return
        code, printed = (terminal.here if terminal.is_one_run(command) else terminal.run)(*given)
        refused = shown is not None and shown.startswith("error:")
        assert (code != 0) == refused, f"{block.place}: {command}\nends with {code}:\n{printed}"
        if shown is not None:
            assert looks_like(printed, shown), f"{block.place}: {command}\nprints:\n{printed}"


def looks_like(printed: str, shown: str) -> bool:
    """Whether a page shows what was printed: `...` is anything, and widths of columns do not count."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split("...")]
    pattern = ".*".join(parts).replace(re.escape("127.0.0.1:9092"), r"127\.0\.0\.1:\d+")
    pattern = re.sub(r"\d+(?=\\ rows/s)", r"[\\d,]+", pattern)
    return re.search(pattern, " ".join(printed.split())) is not None


@pytest.fixture(scope="module")
def own() -> Iterator[Broker]:
    """A broker for the pages alone: their topics have names that other tests use."""
    with Broker(properties={"log.retention.ms": -1}) as broker:
        yield broker


@pytest.fixture
def reader(
    own: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_memory_tables: None
) -> Iterator[Reader]:
    settings = {
        "default": "test",
        "connections": {"test": {"bootstrap.servers": own.connection.brokers}},
    }
    (tmp_path / "penstock.yaml").write_text(yaml.safe_dump(settings))
    homes = {f"XDG_{kind}_HOME": str(tmp_path / f".{kind}") for kind in ("DATA", "STATE", "CONFIG")}
    environment = {
        **os.environ,
        **homes,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TERM": "xterm",
        "COLUMNS": "200",
    }
    monkeypatch.chdir(tmp_path)
    for name, folder in homes.items():
        monkeypatch.setenv(name, f"{folder}-python")
    found = Reader(own.connection, tmp_path, environment=environment)
    found.addresses = {"localhost:9092": own.connection.brokers}
    with found.closing:
        found.closing.callback(empty, own.connection)
        yield found
        for job in penstock.jobs.jobs():
            eventually(partial(len, job.table), 120)
            job.cancel()
        for value in found.names.values():
            leave(value)


def leave(value: Any) -> None:
    """End what a page has left open."""
    if isinstance(value, Running):
        value.stop()
    elif isinstance(value, (Producer, Consumer)):
        value.close()
    elif isinstance(value, ThreadingHTTPServer):
        value.shutdown()
        value.server_close()


def empty(connection: Connection) -> None:
    """Remove the topics and groups of a page."""
    with Admin(connection) as admin:
        for topic in admin.topics():
            admin.delete_topic(topic.name)
        eventually(lambda: not admin.topics())
        for group in admin.groups():
            admin.delete_group(group.name)


def trades(reader: Reader) -> None:
    """Fill the topic `trades`; one record, at offset 42, does not fit, and one is not JSON."""
    good = {"symbol": "A", "price": 1.5, "size": 2, "at": "2024-01-01T00:00:05Z"}
    values: list[Any] = [good] * 42
    fill(reader.connection, "trades", [*values, good | {"price": "dear"}, "{oops", good])


def define(reader: Reader, *names: str) -> None:
    for name in names:
        (reader.folder / f"{name}.yaml").write_text(
            f"name: {name}\nsource: {{kafka: {name}}}\n"
            'decode: {json: {schema: "symbol string, price double"}}\n'
            f"sink: {{files: tables/{name}}}\n"
        )


def run_once(definition: Path) -> None:
    with start(read_pipeline(definition), once=True) as running:
        assert running.wait(240)


def dead_letters(reader: Reader) -> None:
    trades(reader)
    define(reader, "trades")
    # The state of the pipeline is where the commands look for it.
    text = (reader.folder / "trades.yaml").read_text()
    (reader.folder / "trades.yaml").write_text(f"{text}state: {reader.folder}/state\n")
    run_once(reader.folder / "trades.yaml")


def three_pipelines(reader: Reader) -> None:
    define(reader, "trades", "quotes", "orders")
    for name in ("trades", "quotes", "orders"):
        fill(reader.connection, name, [{"symbol": "A", "price": 1.5}])


def jobs(reader: Reader) -> None:
    define(reader, "trades")
    fill(reader.connection, "trades", ["A,1.5", "B,2"])
    fill(reader.connection, "trades-json", [{"symbol": "A", "price": 1.5}])


def beginner(reader: Reader) -> None:
    """From nothing: no connection, and a broker of their own on any port."""
    (reader.folder / "penstock.yaml").unlink()
    reader.addresses = {"broker start --detach": "broker start --detach --port 0"}
    reader.closing.callback(terminal.run, "penstock broker stop", reader.folder, reader.environment)


def two_clusters(reader: Reader) -> None:
    """A group that has read two partitions of `trades`, and one cluster under two names."""
    with Admin(reader.connection) as admin:
        admin.create_topic("trades", partitions=2)
    with Producer(reader.connection) as producer:
        for partition, count in ((0, 250), (1, 40)):
            for _ in range(count):
                producer.produce("trades", None, "x", partition=partition)
    with Consumer(reader.connection, group="billing") as consumer:
        consumer.commit({("trades", 0): 250, ("trades", 1): 40})
    brokers = reader.connection.brokers
    reader.addresses = {"there:9092": brokers, "here:9092": brokers}


def tokens(reader: Reader) -> None:
    shop = {
        "bootstrap.servers": "localhost:1",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
    }
    (reader.folder / "penstock.yaml").write_text(yaml.safe_dump({"connections": {"shop": shop}}))
    reader.names["fetch_token"] = lambda: "a-token"


def log_files(reader: Reader) -> None:
    """A folder with a log, as a program writes it."""
    (reader.folder / "logs").mkdir()
    (reader.folder / "logs" / "app.log").write_text("started\n2 orders\nstopped\n")


def queues(reader: Reader) -> None:
    """A RabbitMQ without queues."""
    server = reader.closing.enter_context(RabbitMq())
    own = server.url()
    login = f"{RABBITMQ_USER}:{quote(RABBITMQ_PASSWORD, safe='')}@"
    reader.addresses["amqp://guest:guest@localhost:5672"] = own.replace(f"{RABBITMQ_USER}@", login)
    reader.addresses["amqp://guest@localhost:5672"] = own
    reader.environment["RABBITMQ_PASSWORD"] = RABBITMQ_PASSWORD


def shop_database(reader: Reader) -> None:
    """A PostgreSQL with an empty database."""
    server = reader.closing.enter_context(Postgres())
    reader.addresses["postgresql://app@db:5432/shop"] = server.url
    reader.environment["SHOP_PASSWORD"] = POSTGRES_PASSWORD
    reader.closing.enter_context(pytest.MonkeyPatch.context()).setenv(
        "SHOP_PASSWORD", POSTGRES_PASSWORD
    )


def jms_queues(reader: Reader) -> None:
    """A broker with a login."""
    server = reader.closing.enter_context(Artemis())
    options = f"user={JMS_USER!r}, password={JMS_PASSWORD!r}, allow_insecure_mechs=True"
    reader.addresses['("amqp://localhost:5672")'] = f"({server.url!r}, {options})"
    login = f"username: {JMS_USER}, password: {JMS_PASSWORD}"
    reader.addresses['url: "amqp://localhost:5672"'] = f"url: '{server.url}', {login}"


def search_server(reader: Reader) -> None:
    """An OpenSearch without indexes."""
    server = reader.closing.enter_context(OpenSearch())
    reader.addresses |= {"http://localhost:9200": server.url}


def east_and_west(reader: Reader) -> None:
    """Two clusters, and a group that has read some of the orders in one of them."""
    west = reader.closing.enter_context(Broker())
    clusters = {"east": reader.connection.brokers, "west": west.connection.brokers}
    named = {name: {"bootstrap.servers": brokers} for name, brokers in clusters.items()}
    reader.addresses = {f"{name}:9092": brokers for name, brokers in clusters.items()}
    (reader.folder / "penstock.yaml").write_text(yaml.safe_dump({"connections": named}))
    with Admin(reader.connection) as admin:
        admin.create_topic("orders", partitions=2)
    with Producer(reader.connection) as producer:
        for partition, count in ((0, 200), (1, 40)):
            for number in range(count):
                producer.produce("orders", None, f"order {number}", partition=partition)
    with Consumer(reader.connection, group="billing") as consumer:
        consumer.commit({("orders", 0): 150, ("orders", 1): 40})


def bucket(reader: Reader) -> None:
    """A bucket with two orders."""
    server = reader.closing.enter_context(S3Server())
    reader.addresses["http://127.0.0.1:9000"] = server.options["endpoint_url"]
    client = server.client()
    client.mkdir("shop")
    lines = b'{"id":1,"total":"12.50"}\n{"id":2,"total":"8.00"}\n'
    client.pipe_file("shop/orders/2026/1.json.gz", gzip.compress(lines))


def free_port(reader: Reader) -> None:
    """A port that no other process has."""
    reader.addresses |= dict.fromkeys(("8080", "8081", "8088"), str(free_ports(1)[0]))


def control_plane(reader: Reader) -> None:
    """A server without workers: deployments wait there."""
    folders = [reader.folder / name for name in ("empty", "store")]
    for folder in folders:
        folder.mkdir()
    server = reader.closing.enter_context(PenstockServer(folders[1], folders[0]))
    reader.environment["PENSTOCK_SERVER"] = server.url


PREPARED: dict[str, Callable[[Reader], None]] = {
    "README.md": trades,
    "docs/control-plane.md": control_plane,
    "docs/object-stores.md": bucket,
    "docs/http-listener.md": free_port,
    "docs/command-line.md": two_clusters,
    "docs/database-sink.md": lambda _: None,
    "docs/database-source.md": shop_database,
    "docs/flows.md": lambda _: None,
    "docs/from-topic-to-table.md": beginner,
    "docs/host-metrics.md": lambda _: None,
    "docs/http-import.md": free_port,
    "docs/http-sink.md": free_port,
    "docs/imports.md": log_files,
    "docs/jms.md": jms_queues,
    "docs/jobs.md": jobs,
    "docs/mirror.md": east_and_west,
    "docs/many-pipelines.md": three_pipelines,
    "docs/promises.md": dead_letters,
    "docs/rabbitmq.md": queues,
    "docs/search.md": search_server,
    "docs/security.md": tokens,
    "docs/streams.md": trades,
}


def guarded(reader: Reader) -> None:
    """A cluster with ACLs, as the page says that they need one."""
    security = Security(protocol="sasl_plaintext", mechanism="PLAIN", acls=True)
    broker = reader.closing.enter_context(Broker(security=security))
    given = broker.connection.librdkafka()
    (reader.folder / "penstock.yaml").write_text(yaml.safe_dump({"connections": {"own": given}}))


def too_late(reader: Reader) -> None:
    """A record that ends the window of those before, and then one for it."""
    young = {"symbol": "A", "size": 1, "at": "2024-01-01T00:03:00Z"}
    for values in ([young], [young | {"at": "2024-01-01T00:00:05Z"}]):
        fill(reader.connection, "trades", values)
        run_once(reader.folder / "volume-per-minute.yaml")


BEFORE: dict[tuple[str, str], Callable[[Reader], None]] = {
    ("docs/command-line.md", "penstock acls"): guarded,
    ("docs/streams.md", "penstock deadletters"): too_late,
}


@pytest.mark.by_turns
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", MINE)
def test_every_block_of_the_page_runs(page: str, reader: Reader) -> None:
    PREPARED[page](reader)
    wanted = [block for block in ALL if block.page == page and not block.not_run]

    for block in wanted:
        for (where, words), prepare in BEFORE.items():
            if where == page and words in block.text:
                prepare(reader)
        reader.follow(block)

    assert reader.done == [block.place for block in wanted]


def test_every_page_with_blocks_is_run_here_or_by_the_test_that_it_has() -> None:
    with_python = {block.page for block in ALL if block.kind == "python"}
    with_commands = {block.page for block in ALL if block.kind == "console" and not block.not_run}

    assert set(PREPARED) == {*MINE}
    assert with_python <= {*MINE, *ELSEWHERE}
    assert with_commands <= {*MINE}
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text()


def test_what_is_not_run_is_counted_and_has_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    left_out = [block for block in ALL if block.not_run]
    with capsys.disabled():
        for block in left_out:
            print(f"\nnot run: {block.place}: {block.not_run}", end="")

    assert {page: sum(block.page == page for block in left_out) for page in NOT_RUN} == NOT_RUN
    assert len(left_out) == sum(NOT_RUN.values())


def test_every_extra_that_a_page_installs_is_there() -> None:
    extras = metadata("penstock").get_all("Provides-Extra") or []
    for page in pages(ROOT):
        for named in re.findall(r"(?:penstock|'\.)\[([\w,]+)\]", page.read_text()):
            assert {*named.split(",")} <= {*extras}, page
