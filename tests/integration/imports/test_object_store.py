"""Folders of object stores: a real S3 API, and fsspec's own stores."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.imports.object_rounds import Objects
from tests.services.object_store import SECRET, S3Server
from tests.services.outage import stay_away

import penstock
from penstock import Connection, Pipeline
from penstock.engine import State
from penstock.errors import ConfigError, DefinitionError, SetupError, TransientError
from penstock.imports.files import FilesImport
from penstock.imports.files.object_store import ObjectStore
from penstock.testing import eventually, read_all


class Bucket:
    """A bucket of its own for a test."""

    def __init__(self, server: S3Server, name: str) -> None:
        self.server = server
        self.name = name
        self.client = server.client()
        self.client.mkdir(name)

    def put(self, name: str, data: bytes) -> None:
        self.client.pipe_file(f"{self.name}/{name}", data)

    def names(self) -> list[str]:
        return sorted(path.partition("/")[2] for path in self.client.find(self.name))

    def objects(self, folder: str = "in", **options: Any) -> Objects:
        url = f"s3://{self.name}/{folder}"
        return Objects(url, storage_options=self.server.options, **options)


@pytest.fixture
def bucket(s3: S3Server, unique: str) -> Bucket:
    return Bucket(s3, unique.lower().replace("_", "-"))


def _parquet(rows: int) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": range(rows)}), file, row_group_size=1000)
    return file.getvalue()


def _ids(rows: int) -> list[bytes]:
    return [b'{"id":%d}' % n for n in range(rows)]


CONTENTS: dict[str, tuple[bytes, list[bytes]]] = {
    "lines": (b"\n".join(b"%d" % n for n in range(12_000)), [b"%d" % n for n in range(12_000)]),
    "json_lines": (b"\n".join(_ids(12_000)), _ids(12_000)),
    "csv": (b"id\n" + b"\n".join(b"%d" % n for n in range(99)), [b'{"id":"%d"}' % n for n in range(99)]),
    "json_array": (b"[" + b",".join(_ids(6000)) + b"]", _ids(6000)),
    "parquet": (_parquet(6000), _ids(6000)),
    "whole": (b"x" * 9000, [b"x" * 9000]),
}  # fmt: skip


# Parquet is compressed in itself.
PACKED = [
    (form, pack) for form in CONTENTS for pack in (False, True) if (form, pack) != ("parquet", True)
]


@pytest.mark.by_turns
@pytest.mark.parametrize(("form", "pack"), PACKED)
def test_every_format_is_read_by_ranges_and_goes_on_after_a_kill(
    bucket: Bucket, form: str, pack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.imports.files.stored_object._RANGE", 8192)
    data, wanted = CONTENTS[form]
    bucket.put("in/a.gz" if pack else "in/a", gzip.compress(data) if pack else data)
    objects = bucket.objects(format=form)
    found = [value for _ in range(4) for value in objects.round(most=5000, transactions=1)]
    assert found == wanted
    assert not objects.round()
    assert not objects.bad


def test_a_replaced_object_is_read_from_its_start_and_the_same_content_is_not(
    bucket: Bucket,
) -> None:
    objects = bucket.objects()
    bucket.put("in/a.log", b"1\n2\n")
    assert objects.round() == [b"1", b"2"]
    bucket.put("in/a.log", b"1\n2\n")
    assert objects.round() == []
    bucket.put("in/a.log", b"1\n2\n3\n")
    assert objects.round() == [b"1", b"2", b"3"]
    assert [*objects.positions] == [f'{{"object":"{bucket.name}/in/a.log"}}']


def test_which_objects_are_read(bucket: Bucket) -> None:
    for name in ("in/a.log", "in/b.txt", "in/.c.log", "in/deep/d.log", "inside/e.log", "in/f/"):
        bucket.put(name, name.encode())
    assert bucket.objects(pattern="*.log").round() == [b"in/a.log"]
    deep = bucket.objects(pattern="*.log", recursive=True)
    assert deep.round() == [b"in/a.log", b"in/deep/d.log"]
    assert deep.round() == []
    assert bucket.objects("nothing").round() == []
    strange = "in/ä %2F [1]?x=1&y#z +.log"
    bucket.put(strange, b"strange")
    assert deep.round() == [b"strange"]


def test_an_object_that_is_replaced_while_it_is_read_gives_no_mixture(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.imports.files.stored_object._RANGE", 8192)
    monkeypatch.setattr("penstock.imports.files.file_contents._BLOCK", 8192)
    bucket.put("in/a", b"old\n" * 20_000)
    objects = bucket.objects()
    (part,) = objects.system.pending({})
    with part.open(None) as reader:
        first = next(reader.take(100_000))
        assert set(first.records.values) == {b"old"}
        bucket.put("in/a", b"new\n" * 20_000)
        with pytest.raises(TransientError, match="was replaced or deleted while it was read"):
            [*reader.take(100_000)]
    with part.open(None) as reader:
        assert [*reader.take(10)] == []
    assert set(objects.round()) == {b"new"}


@pytest.mark.parametrize("form", ["json_array", "parquet", "whole"])
def test_a_store_that_goes_away_makes_no_dead_letter(
    unique: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> bytes:
        raise TransientError("away")

    folder = fsspec.filesystem("memory")
    folder.pipe_file(f"/{unique}/a", CONTENTS[form][0])
    objects = Objects(f"memory://{unique}", format=form, quiet=0)
    monkeypatch.setattr(ObjectStore, "fetch", away)
    with pytest.raises(TransientError, match="away"):
        objects.round()
    monkeypatch.undo()
    assert objects.round() == CONTENTS[form][1]


def test_finished_objects_are_moved_or_deleted_and_a_later_one_is_another(bucket: Bucket) -> None:
    aim = {"finished": "move", "finished_folder": f"s3://{bucket.name}/done"}
    objects = bucket.objects(recursive=True, **aim)
    bucket.put("in/a/1.log", b"1\n")
    assert objects.round() == [b"1"]
    assert objects.round() == []
    assert bucket.names() == ["done/a/1.log"]
    bucket.put("in/a/1.log", b"2\n")
    assert objects.round() + objects.round() == [b"2"]
    assert bucket.names() == ["done/a/1.log", "done/a/1.log.1"]
    deleting = bucket.objects(finished="delete")
    bucket.put("in/b", b"")
    assert deleting.round() + deleting.round() == []
    assert bucket.names() == ["done/a/1.log", "done/a/1.log.1"]


def test_a_move_that_was_killed_after_the_copy_is_finished_without_another_copy(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    aim = {"finished": "move", "finished_folder": f"s3://{bucket.name}/done"}
    objects = bucket.objects(**aim)
    bucket.put("in/a", b"1\n")
    assert objects.round() == [b"1"]

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            objects.round()
    assert bucket.names() == ["done/a", "in/a"]
    assert objects.round() == []
    assert bucket.names() == ["done/a"]


def test_an_object_that_is_replaced_before_it_is_deleted_stays(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = bucket.objects(finished="delete")
    bucket.put("in/a", b"1\n")
    assert objects.round() == [b"1"]
    listed = ObjectStore.listed

    def then_replaced(store: ObjectStore, *, recursive: bool) -> Any:
        found = listed(store, recursive=recursive)
        bucket.put("in/a", b"2\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "listed", then_replaced)
        assert objects.round() == []
    assert objects.round() == [b"2"]


def test_a_store_that_is_away_is_not_one_that_refuses(bucket: Bucket) -> None:
    objects = bucket.objects()
    bucket.server.refuse_everyone(True)
    try:
        with pytest.raises(ConfigError, match=r"refuses the access to .* check the credentials"):
            objects.round()
    finally:
        bucket.server.refuse_everyone(False)
    with pytest.raises(ConfigError, match=r"the bucket 'no-such-bucket' of .* does not exist"):
        Objects("s3://no-such-bucket/in", storage_options=bucket.server.options).round()
    away = {**bucket.server.options, "endpoint_url": "http://127.0.0.1:9"}
    with pytest.raises(TransientError, match="does not answer"):
        Objects("s3://bucket/in", storage_options=away).round()
    wrong = {**bucket.server.options, "colour": "red"}
    with pytest.raises(ConfigError, match=r"colour.*check the folder"):
        Objects("s3://bucket/in", storage_options=wrong).round()


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="gcsfs"):
        Objects("gs://bucket/in").round()
    with pytest.raises(ConfigError, match="Protocol not known: nostore"):
        Objects("nostore://bucket/in").round()
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(SetupError, match=r"pip install 'penstock\[object-stores\]'"):
        Objects("s3://bucket/in").round()


def test_files_of_a_store_without_versions_wait_until_they_are_quiet(unique: str) -> None:
    folder = fsspec.filesystem("memory")
    folder.pipe_file(f"/{unique}/a", b"1\n")
    assert Objects(f"memory://{unique}").round() == []
    objects = Objects(f"memory://{unique}", quiet=0)
    assert objects.round() == [b"1"]
    assert objects.round() == []
    with pytest.raises(TransientError, match="is not there"):
        Objects(f"memory://{unique}/nothing").round()


def test_an_address_of_this_disk_is_a_folder_of_this_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2")
    objects = Objects(f"file://{tmp_path}")
    assert objects.round() == [b"1"]
    assert "inode" in next(iter(objects.positions))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": "s3://"}, "names no bucket"),
        ({"folder": "simplecache::s3://b/x"}, "is not the address of a store"),
        ({"folder": "1s3://b/x"}, "is not the address of a store"),
        ({"folder": "https://b/x"}, "poll it with the source 'http'"),
        ({"folder": "sftp://a:hunter22@h/x"}, "contains a password; give it in 'storage_options'"),
        ({"folder": "s3://b/*.log"}, "give the names' pattern in 'pattern'"),
        ({"folder": "s3://b/x", "follow_links": True}, "an object store has no links"),
        ({"folder": "x", "storage_options": {"key": "k"}}, "'x' is one on this disk"),
        ({"folder": "s3://b/x", "storage_options": "key"}, "should be a valid dictionary"),
        ({"folder": "s3://b/x", "finished": "move", "finished_folder": "y"}, "in the same store"),
        ({"folder": "s3://b/x", "finished": "move", "finished_folder": "gs://b/y"}, "same store"),
        ({"folder": "s3://b/x", "finished": "move", "finished_folder": "s3://b/x/"}, "is read itself"),
        (
            {"folder": "s3://b", "recursive": True, "finished": "move", "finished_folder": "s3://b/y"},
            "is read itself",
        ),
        ({"folder": "s3://b/x", "pattern": "a/b"}, "is about names"),
    ],
)  # fmt: skip
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"files": options}, sink={"kafka": "t"})
    assert message in str(caught.value)
    assert "hunter22" not in str(caught.value)


def test_secrets_are_not_shown(s3: S3Server) -> None:
    source = FilesImport(folder="s3://b/x", storage_options=s3.options)
    assert SECRET not in repr(source) + str(source.model_dump()) + repr(source.system())
    assert SECRET not in repr(ObjectStore("s3://b/x", s3.options))


def test_a_bucket_into_a_topic_with_the_store_away_in_between(
    bucket: Bucket, connection: Connection, unique: str
) -> None:
    def values() -> list[str]:
        return sorted(record.value.decode() for record in read_all(connection, unique))

    for number in range(30):
        bucket.put(
            f"in/{number}.json", b"".join(b'{"n":%d}\n' % (100 * number + n) for n in range(100))
        )
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={
            "files": {
                "folder": f"s3://{bucket.name}/in",
                "format": "json_lines",
                "storage_options": bucket.server.options,
                "poll": 0.2,
            }
        },
        sink={"kafka": unique},
        delivery="exactly-once",
        restart={"wait": "100ms", "longest": "500ms"},
    )
    with penstock.start(definition) as running:
        eventually(lambda: len(values()) == 3000, timeout=120)
        bucket.server.stop()
        eventually(lambda: running.progress().state is State.RETRYING, timeout=60)
        stay_away()
        bucket.server.start()
        again = Bucket(bucket.server, bucket.name)  # the server has forgotten everything
        again.put("in/7.json", b"".join(b'{"n":%d}\n' % (700 + n) for n in range(100)))
        again.put("in/new.json", b'{"n":3000}\n')
        eventually(lambda: len(values()) >= 3001, timeout=120)
        eventually(lambda: running.progress().state is State.RUNNING, timeout=60)
    assert values() == sorted(json.dumps({"n": n}, separators=(",", ":")) for n in range(3001))
