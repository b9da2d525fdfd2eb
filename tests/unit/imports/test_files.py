"""Files that grow, are rotated, truncated, replaced and finished: what is pending, and what is read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError, DefinitionError, TransientError
from penstock.imports.files import FilesImport, file_contents
from penstock.imports.files.watched_file import WatchedFile
from penstock.pipeline import Pipeline
from penstock.pipeline.importing import BadRecord, Position, UnreadableError, key_of


class Import:
    """Does what the rounds do, without Kafka: reads what is pending, and keeps the positions."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.system = FilesImport(folder=str(folder), **options).system()
        self.positions: dict[str, Position] = {}
        self.bad: list[BadRecord] = []

    def round(self, most: int = 10_000, transactions: int = 1_000_000) -> list[bytes]:
        """Return what one round reads; with few transactions the tasks are killed after them."""
        found: list[bytes] = []
        for part in self.system.pending(self.positions):
            key = json.loads(json.dumps(key_of(part.place)))
            with part.open(self.positions.get(key)) as reader:
                for _ in range(transactions):
                    taken = [*reader.take(most)]
                    if not taken:
                        break
                    for each in taken:
                        found += each.records.values
                        self.bad += each.bad
                    self.positions[key] = json.loads(json.dumps(taken[-1].position))
        return found

    def write(self, name: str, text: str, mode: str = "w", *, age: float = 0) -> Path:
        path = self.folder / name
        with path.open(mode) as file:
            file.write(text)
        if age:
            old = path.stat().st_mtime - age
            os.utime(path, (old, old))
        return path


def test_lines_are_read_as_they_are_appended_and_a_half_line_waits(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a.log", "1\n2\n3")
    assert files.round() == [b"1", b"2"]
    assert files.round() == []
    files.write("a.log", "4\n5\n", "a")
    assert files.round() == [b"34", b"5"]
    assert files.round() == []


def test_a_last_line_without_an_end_is_read_when_the_file_is_quiet(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a.log", "1\n2", age=60)
    assert files.round() == [b"1", b"2"]
    assert files.round() == []


def test_a_renamed_file_goes_on_and_a_new_one_under_its_name_starts(tmp_path: Path) -> None:
    files = Import(tmp_path)
    path = files.write("a.log", "1\n2\n")
    assert files.round() == [b"1", b"2"]
    path.rename(tmp_path / "a.log.1")
    files.write("a.log.1", "3\n", "a")
    files.write("a.log", "new\n")
    assert sorted(files.round()) == [b"3", b"new"]
    assert files.round() == []


def test_a_truncated_and_a_replaced_content_is_read_from_the_start(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a.log", "1\n2\n3\n")
    assert files.round() == [b"1", b"2", b"3"]
    files.write("a.log", "4\n")
    assert files.round() == [b"4"]
    # Longer than before, and another beginning, in the same file.
    files.write("a.log", "5\n6\n7\n8\n")
    assert files.round() == [b"5", b"6", b"7", b"8"]


@pytest.mark.parametrize("form", ["lines", "json_lines", "csv"])
@pytest.mark.parametrize("pack", [False, True])
def test_nothing_is_lost_or_doubled_when_tasks_are_killed_after_any_transaction(
    tmp_path: Path, form: str, pack: bool
) -> None:
    files = Import(tmp_path, format=form, quiet=0)
    text = "id\n" * (form == "csv") + "".join(f"{n}\n" for n in range(23_456))
    if pack:
        (tmp_path / "a.gz").write_bytes(gzip.compress(text.encode()))
    else:
        files.write("a", text)
    found = [value for _ in range(8) for value in files.round(most=5_000, transactions=1)]
    numbers = [json.loads(value)["id"] if form == "csv" else value.decode() for value in found]
    assert numbers == [str(n) for n in range(23_456)]
    assert files.round() == []


def test_csv_with_quotes_over_lines_and_bad_rows(tmp_path: Path) -> None:
    files = Import(tmp_path, format="csv")
    files.write("a.csv", '\ufeffid,text\n1,"two\nlines"\n2\n3,"cut')
    assert [json.loads(v) for v in files.round()] == [{"id": "1", "text": "two\nlines"}]
    assert [each.error.rpartition(": ")[2] for each in files.bad] == [
        "a row of 1 values, and the header has 2"
    ]
    files.write("a.csv", ' off"\n4,"a"b\n5,x\n', "a")
    rest = [json.loads(v) for v in files.round()]
    assert rest == [{"id": "3", "text": "cut off"}, {"id": "5", "text": "x"}]
    assert files.bad[-1].value == b'4,"a"b\n'


@pytest.mark.parametrize("form", ["lines", "json_lines", "csv"])
def test_a_line_without_end_is_never_in_memory_as_a_whole(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.imports.files.file_contents._LONGEST", 100)
    monkeypatch.setattr("penstock.imports.files.file_contents._BLOCK", 64)
    files = Import(tmp_path, format=form)
    files.write("a", "n\n1\n" + "2" * 1050)
    assert len(files.round()) == (1 if form == "csv" else 2 - (form == "json_lines"))
    known = len(files.bad)
    assert files.round() == []
    files.write("a", "2" * 30 + "\n3\n", "a")
    assert len(files.round()) == 1
    assert "a line of 1081 bytes, and at most 100 are read" in files.bad[known].error
    assert files.round() == []


def test_json_lines_that_are_no_json_are_bad(tmp_path: Path) -> None:
    files = Import(tmp_path, format="json_lines")
    files.write("a.json", '{"a": 12345678901234567890.10}\n\n{oops}\n[1]\n')
    assert files.round() == [b'{"a": 12345678901234567890.10}', b"[1]"]
    assert [each.value for each in files.bad] == [b"{oops}"]


@pytest.mark.parametrize(
    "lines",
    [
        ['{"a":', "1}", "2 3"],  # as many documents as lines, and none of them is a line
        ["1 2", "3"],
        ["[1", ",2]", "3"],
        [" 1", "2\t", "3\r"],
        ["", "1", "  "],
        ['"a', 'b"', "1"],
        ["1", "2"],
        ["[" * 5000, "1"],
    ],
)
def test_json_lines_are_checked_together_as_they_would_be_one_by_one(
    tmp_path: Path, lines: list[str]
) -> None:
    one_by_one = []
    for line in filter(None, (line.strip() for line in lines)):
        with suppress(ValueError, RecursionError):
            json.loads(line)
            one_by_one.append(line.encode())
    files = Import(tmp_path, format="json_lines")
    files.write("a.json", "\n".join(lines) + "\n")
    assert files.round() == one_by_one


def test_bytes_that_are_no_text_cost_one_line_of_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'"a"\n"\xff"\n"b"\n')
    files = Import(tmp_path, format="json_lines")
    assert files.round() == [b'"a"', b'"b"']
    assert [each.value for each in files.bad] == [b'"\xff"']


def test_a_json_array_and_a_whole_file_are_read_once_when_quiet_and_again_when_changed(
    tmp_path: Path,
) -> None:
    for form, text, values in (
        ("json_array", '[1, {"a": 2}]', [b"1", b'{"a": 2}']),
        ("whole", "some\ntext", [b"some\ntext"]),
    ):
        folder = tmp_path / form
        folder.mkdir()
        files = Import(folder, format=form)
        files.write("a", text)
        assert files.round() == []
        files.write("a", text, age=60)
        assert files.round() == values
        assert files.round() == []
        files.write("a", text.replace("e", "E").replace("2", "3"), age=50)
        assert files.round() == [v.replace(b"e", b"E").replace(b"2", b"3") for v in values]


def test_parquet_rows(tmp_path: Path) -> None:
    files = Import(tmp_path, format="parquet", quiet=0)
    pq.write_table(pa.table({"n": range(12_000)}), tmp_path / "a.parquet")
    found = [value for _ in range(5) for value in files.round(most=5_000, transactions=1)]
    assert [json.loads(value)["n"] for value in found] == [*range(12_000)]
    files.write("b.parquet", "no parquet")
    assert files.round() == []
    assert "this is not a parquet file" in files.bad[0].error
    assert files.round() == []


@pytest.mark.parametrize("finished", ["move", "delete", "keep"])
def test_finished_files(tmp_path: Path, finished: str) -> None:
    folder, done = tmp_path / "in", tmp_path / "done"
    folder.mkdir()
    more = {"finished_folder": str(done)} if finished == "move" else {}
    files = Import(folder, finished=finished, **more)
    files.write("fresh.log", "1\n")
    files.write("old.log", "2\n", age=60)
    assert sorted(files.round()) == [b"1", b"2"]
    assert files.round() == []
    assert sorted(path.name for path in folder.iterdir()) == (
        ["fresh.log", "old.log"] if finished == "keep" else ["fresh.log"]
    )
    assert [path.name for path in done.glob("*")] == (["old.log"] if finished == "move" else [])


def test_hidden_files_other_names_and_folders_are_left_out(tmp_path: Path) -> None:
    files = Import(tmp_path, pattern="*.log")
    for name in ("a.log", ".b.log", "c.txt", "d.log"):
        files.write(name, f"{name}\n")
    os.link(tmp_path / "d.log", tmp_path / "link.log")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "e.log").write_text("e\n")
    assert sorted(files.round()) == [b"a.log", b"d.log"]
    deep = Import(tmp_path, pattern="*.log", recursive=True)
    assert sorted(deep.round()) == [b"a.log", b"d.log", b"e"]


def test_a_position_that_an_operator_set(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a.log", "1\n2\n")
    assert files.round() == [b"1", b"2"]
    (key,) = files.positions
    files.positions[key] = {"at": 2}
    assert files.round() == [b"2"]
    for wrong in ({}, {"at": -1}, {"at": "2"}, {"line": 2}):
        files.positions[key] = wrong
        with pytest.raises(
            ConfigError, match=r"is not one of a file that is read as lines; allowed"
        ):
            files.round()


def test_a_file_that_is_rotated_while_it_is_read_is_read_once(tmp_path: Path) -> None:
    """The name leads to another file then; the position belongs to the one that was opened."""
    files = Import(tmp_path)
    files.write("a.log", "".join(f"{n}\n" for n in range(12_000)))
    (part,) = files.system.pending({})
    with part.open(None) as reader:
        first = next(portions := reader.take(10_000))
        (tmp_path / "a.log").rename(tmp_path / "a.log.1")
        files.write("a.log", "new\n")
        taken = [first, *portions, *reader.take(10_000)]
    files.positions[key_of(part.place)] = taken[-1].position
    assert sum(portion.records.num_rows for portion in taken) == 12_000
    assert files.round() == [b"new"]


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_is_rotated_before_it_is_read_is_read_once(tmp_path: Path, again: bool) -> None:
    files = Import(tmp_path)
    path = files.write("a.log", "1\n")
    assert files.round() == ([b"1"])
    files.write("a.log", "2\n", "a")
    (part,) = files.system.pending(files.positions)
    path.rename(tmp_path / "a.log.1")
    if again:
        files.write("a.log", "new\n")
    with part.open(files.positions[key_of(part.place)]) as reader:
        assert [*reader.take(100)] == []
    assert sorted(files.round()) == [b"2", *([b"new"] if again else [])]


def test_a_line_that_is_finished_while_it_is_read_stays_one(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a.log", "one\ntw", age=60)
    (part,) = files.system.pending({})
    with part.open(None) as reader:
        files.write("a.log", "o\nthree\n", "a")
        taken = [*reader.take(100)]
    files.positions[key_of(part.place)] = taken[-1].position
    found = [value for portion in taken for value in portion.records.values]
    assert found + files.round() == [b"one", b"two", b"three"]


def test_another_file_with_the_same_beginning_in_place_of_a_read_one(tmp_path: Path) -> None:
    header = ",".join(f"column_{n}" for n in range(200))
    row = ",".join("x" for _ in range(200))
    files = Import(tmp_path, format="csv")
    files.write("a.csv", f"{header}\n{row}\n{row}\n")
    assert len(files.round()) == 2
    other = row.replace("x", "y")
    files.write("a.csv", f"{header}\n{other}\n{other}\n{other}\n")
    assert len(files.round()) == 3


def test_a_quote_that_is_never_closed_costs_one_line(tmp_path: Path) -> None:
    files = Import(tmp_path, format="csv", quiet=0)
    files.write("a.csv", 'id,text\n1,"oops\n' + "".join(f"{n},x\n" for n in range(2, 50_000)))
    assert [json.loads(value)["id"] for value in files.round()] == [*map(str, range(2, 50_000))]
    assert [each.value for each in files.bad] == [b'1,"oops\n']


def test_a_position_of_another_format_is_refused(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a", "[1,\n2]\n", age=60)
    assert len(files.round()) == 2
    other = Import(tmp_path, format="json_array")
    other.positions = files.positions
    with pytest.raises(ConfigError, match="is not one of a file that is read as json_array"):
        other.round()


def test_a_whole_file_that_changes_anywhere_is_read_again(tmp_path: Path) -> None:
    files = Import(tmp_path, format="whole")
    files.write("a", "x" * 2000 + "1", age=60)
    assert len(files.round()) == 1
    files.write("a", "x" * 2000 + "2", age=50)
    assert files.round() == [b"x" * 2000 + b"2"]


@pytest.mark.parametrize(
    ("name", "form", "content"),
    [
        ("a.gz", "lines", gzip.compress(b"1\n" * 9000, mtime=0)[:-20]),
        ("a.gz", "lines", b"no gzip"),
        ("a.zst", "json_lines", b"no zstd"),
        ("a.json", "json_array", b"[" * 100_000),
        ("a.json", "json_array", b'["\xff"]'),
        ("a.parquet", "parquet", b"PAR1" + b"x" * 100 + b"PAR1"),
    ],
)
def test_a_content_that_is_not_of_the_format_is_one_bad_record(
    tmp_path: Path, name: str, form: str, content: bytes
) -> None:
    files = Import(tmp_path, format=form, quiet=0)
    (tmp_path / name).write_bytes(content)
    files.round()
    assert len(files.bad) == 1
    assert files.round() == [] and len(files.bad) == 1
    assert files.system.pending(files.positions) == []


@pytest.mark.parametrize("form", ["whole", "json_array"])
def test_a_file_that_is_too_large_to_be_read_as_a_whole_is_one_bad_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(file_contents, "_LARGEST", 2**20)
    files = Import(tmp_path, format=form, quiet=0)
    files.write("a", "[" + " " * 2**20 + "]")
    files.write("b", "[1]")

    assert files.round() == [b"[1]" if form == "whole" else b"1"]
    assert [each.error_type for each in files.bad] == ["TooLargeError"]
    assert files.bad[0].error.startswith("a: the file has more than 1 MB")
    assert files.system.pending(files.positions) == []


def test_a_parquet_file_of_a_form_that_arrow_does_not_have_is_one_bad_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object) -> None:
        raise pa.ArrowNotImplementedError("a codec that is not built")

    files = Import(tmp_path, format="parquet", quiet=0)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", refusing)

    assert files.round() == []
    assert [each.error_type for each in files.bad] == ["ArrowNotImplementedError"]
    assert files.system.pending(files.positions) == []


def test_a_parquet_file_on_a_disk_that_fails_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    files = Import(tmp_path, format="parquet", quiet=0)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", failing)

    with pytest.raises(TransientError, match="Input/output error"):
        files.round()
    assert files.bad == []


def test_hostile_lines_and_names(tmp_path: Path) -> None:
    files = Import(tmp_path, format="json_lines")
    name = os.fsdecode(b"\xff\xfe.log")
    (tmp_path / name).write_bytes(b"1\n" + b"[" * 5000 + b'\n"\xff"\n2\n')
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert files.round() == [b"1", b"2"]
    assert len(files.bad) == 2
    assert files.round() == []


def test_a_csv_with_only_a_header_and_an_empty_file_are_finished(tmp_path: Path) -> None:
    files = Import(tmp_path, format="csv", finished="delete")
    files.write("a.csv", "id,text\n", age=60)
    files.write("b.csv", "", age=60)
    for _ in range(3):
        assert files.round() == []
    assert [*tmp_path.iterdir()] == []


def test_an_array_without_elements_is_read_once_and_again_when_it_changes(tmp_path: Path) -> None:
    files = Import(tmp_path, format="json_array")
    files.write("a.json", "[]", age=60)
    assert files.round() == []
    assert files.system.pending(files.positions) == []
    files.write("a.json", '[{"n":1}]', age=50)
    assert files.round() == [b'{"n":1}']


def test_each_of_many_equal_files_is_read_where_finished_ones_are_deleted(tmp_path: Path) -> None:
    """A new file gets the number of the one that was deleted."""
    files = Import(tmp_path, finished="delete")
    for age in (60, 50, 40, 30):
        files.write("trigger", "go\n", age=age)
        assert files.round() == [b"go"]
        assert files.round() == []
        assert [*tmp_path.iterdir()] == []


def test_links_are_followed_only_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.log").write_text("secret\n")
    (folder / "a.log").symlink_to(tmp_path / "secret.log")
    os.mkfifo(folder / "pipe.log")
    assert Import(folder).round() == []
    assert Import(folder, follow_links=True).round() == [b"secret"]


def test_a_file_that_cannot_be_read_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Import(tmp_path)
    files.write("a.log", "1\n")
    files.write("b.log", "2\n")
    opened = WatchedFile.open

    def refuse(self: WatchedFile) -> Any:
        if self.path.endswith("a.log"):
            raise TransientError(f"{self.path} cannot be read: Permission denied")
        return opened(self)

    assert sorted(files.round()) == [b"1", b"2"]
    monkeypatch.setattr(WatchedFile, "open", refuse)
    files.write("b.log", "3\n", "a")
    assert files.round() == [b"3"]
    with pytest.raises(TransientError, match=r"a\.log cannot be read: Permission denied"):
        files.round()


def test_a_folder_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    files = Import(tmp_path / "later")
    with pytest.raises(UnreadableError, match="is not there"):
        files.round()
    (tmp_path / "later").touch()
    with pytest.raises(UnreadableError, match="later cannot be read: Not a directory; change that"):
        files.round()


@pytest.fixture
def ordinary_user() -> Iterator[int]:
    """Another user than root, who reads everything."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    yield os.geteuid()
    os.seteuid(own)


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_without_the_right_to_read_it_is_named_after_the_others_are_read() -> None:
    with TemporaryDirectory() as folder:
        files = Import(Path(folder))
        files.write("a.log", "1\n").chmod(0)
        files.write("b.log", "2\n")
        assert files.round() == [b"2"]
        with pytest.raises(
            UnreadableError, match=r"a\.log cannot be read: Permission denied; change"
        ):
            files.round()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "files.folder: is required"),
        ({"folder": ""}, "at least 1 character"),
        ({"folder": "x", "format": "xml"}, "'lines', 'csv'"),
        ({"folder": "x", "pattern": "a/*.log"}, "is about names; give 'folder'"),
        ({"folder": "x", "finished": "move"}, "belong together"),
        ({"folder": "x", "finished_folder": "y"}, "belong together"),
        ({"folder": "x", "quiet": -1}, "quiet: given -1.0; input should be greater than"),
        ({"folder": "x", "finished": "move", "finished_folder": "x"}, "is read itself"),
        ({"folder": "x", "tasks_max": 0}, "greater than or equal to 1"),
        ({"folder": "x", "topic": "{table}"}, "allowed: {file}"),
        ({"folder": "x", "topic": "a b"}, "cannot be a topic"),
        ({"folder": "x", "colour": "red"}, "colour: is not an option here; allowed: finished, "),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"files": options}, sink={"kafka": "t"})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"delivery": "at-most-once"}, "the source 'files' cannot promise at-most-once"),
        ({"dead_letters": {"console": None}}, "give the name of a topic of the same cluster"),
        ({"sink": {"kafka": "t.{colour}"}}, "allowed: {file}"),
        ({"latency": "realtime"}, "imported in rounds"),
    ],
)
def test_what_an_import_cannot_do_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(**{"name": "p", "source": {"files": "x"}, "sink": {"kafka": "t"}} | more)
    assert message in str(caught.value)


def test_a_folder_that_is_named_from_here_is_found_by_tasks_that_work_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_text("one\n")
    monkeypatch.chdir(tmp_path)
    (part,) = FilesImport(folder="in").system().pending({})
    monkeypatch.chdir("/")
    with part.open(None) as reader:
        assert [value for each in reader.take(10) for value in each.records.values] == [b"one"]


FORMS = {
    "lines": (lambda tag: "".join(f"{tag}{n}\n" for n in range(9000)), "a.log"),
    "csv": (lambda tag: "n\n" + "".join(f"{tag}{n}\n" for n in range(9000)), "a.csv"),
    "json_lines": (lambda tag: "".join(f'"{tag}{n}"\n' for n in range(9000)), "a.json"),
    "json_array": (lambda tag: json.dumps([f"{tag}{n}" for n in range(9000)]), "a.json"),
}


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_a_content_that_is_replaced_in_place_while_it_is_read_is_read_from_its_start(
    tmp_path: Path, format: str, pieces: int
) -> None:
    text, name = FORMS[format]
    files = Import(tmp_path, format=format, quiet=0)
    files.write(name, text("old"), age=60)
    (part,) = files.system.pending({})
    key = key_of(part.place)
    with part.open(None) as reader:
        taken = reader.take(100_000)
        before = [next(taken) for _ in range(pieces)]
        files.write(name, text("new"), age=30)
        found = [*before, *taken]
    values = [value for each in found for value in each.records.values]
    assert not any(b"new" in value for value in values)
    assert not any(each.bad for each in found)
    if found:
        files.positions[key] = json.loads(json.dumps(found[-1].position))
    again = files.round()
    assert len(again) == 9000
    assert all(b"new" in value for value in again)
    assert files.round() == []


def test_a_log_that_is_truncated_while_it_is_read_keeps_what_was_read(tmp_path: Path) -> None:
    files = Import(tmp_path)
    files.write("a.log", "".join(f"old{n}\n" for n in range(9000)), age=60)
    (part,) = files.system.pending({})
    with part.open(None) as reader:
        taken = reader.take(100_000)
        first = next(taken)
        files.write("a.log", "new\n")
        found = [first, *taken]
    assert len(found) == 1
    files.positions[key_of(part.place)] = json.loads(json.dumps(first.position))
    assert files.round() == [b"new"]


def test_parquet_of_other_programs(tmp_path: Path) -> None:
    columns = {
        "large": pa.array(["a", None], pa.large_string()),
        "category": pa.array(["b", "b"]).dictionary_encode(),
        "nothing": pa.nulls(2),
        "time": pa.array([3_723_000_004, None], pa.time64("us")),
        "by_number": pa.array([[(7, "x")], []], pa.map_(pa.int32(), pa.large_string())),
        "id": pa.array([b"ab", b"cd"], pa.binary(2)),
        "pairs": pa.array([[{"c": "x"}], []], pa.large_list(pa.struct({"c": pa.large_string()}))),
        "took": pa.array([5, None], pa.duration("us")),
    }
    files = Import(tmp_path, format="parquet", quiet=0)
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    first, second = (json.loads(value) for value in files.round())
    assert first == {
        "large": "a", "category": "b", "nothing": None, "time": "01:02:03.000004",
        "by_number": {"7": "x"}, "id": "YWI=", "pairs": [{"c": "x"}], "took": 5,
    }  # fmt: skip
    assert second["large"] is second["time"] is second["took"] is None


def test_a_parquet_row_without_a_form_is_bad_and_the_others_are_read(tmp_path: Path) -> None:
    files = Import(tmp_path, format="parquet", quiet=0)
    numbers = [1.5, float("inf"), 2.5]
    pq.write_table(pa.table({"n": numbers}), tmp_path / "a.parquet")
    assert files.round() == [b'{"n":1.5}', b'{"n":2.5}']
    assert [each.error for each in files.bad] == ["a.parquet: column 'n': inf has no form in JSON"]
    assert files.round() == []


def test_parquet_columns_that_json_cannot_have_are_one_bad_record(tmp_path: Path) -> None:
    files = Import(tmp_path, format="parquet", quiet=0)
    pq.write_table(pa.table([[1], [2]], names=["n", "n"]), tmp_path / "a.parquet")
    assert files.round() == []
    assert "columns with the same name: n, n" in files.bad[0].error
    assert files.round() == []


def test_only_the_end_of_a_line_is_cut_off(tmp_path: Path) -> None:
    files = Import(tmp_path)
    (tmp_path / "a.log").write_bytes(b"a\r\nb\r\r\nc\n")
    assert files.round() == [b"a", b"b\r", b"c"]


def test_a_long_value_of_csv_is_a_value(tmp_path: Path) -> None:
    files = Import(tmp_path, format="csv")
    files.write("a.csv", f"id,text\n1,{'x' * 300_000}\n2,y\n")
    found = [json.loads(value) for value in files.round()]
    assert [len(row["text"]) for row in found] == [300_000, 1]
    assert files.bad == []


def test_a_new_file_with_the_number_and_the_content_of_a_removed_one_is_read(
    tmp_path: Path,
) -> None:
    files = Import(tmp_path)
    first = files.write("order-1.csv", "id\n1\n", age=60)
    assert files.round() == [b"id", b"1"]
    # The same number under another name, written later: as after a removal.
    first.rename(tmp_path / "order-2.csv")
    assert files.round() == []
    files.write("order-2.csv", "id\n1\n", age=30)
    assert files.round() == [b"id", b"1"]
    assert files.round() == []


@pytest.mark.parametrize(
    ("format", "text"), [("json_lines", '{"n":1}\n{"n":2}\n'), ("json_array", '[{"n":1},{"n":2}]')]
)
def test_a_byte_order_mark_is_no_part_of_a_document(tmp_path: Path, format: str, text: str) -> None:
    files = Import(tmp_path, format=format, quiet=0)
    (tmp_path / "a.json").write_text(text, encoding="utf-8-sig")
    assert files.round() == [b'{"n":1}', b'{"n":2}']
    assert files.bad == []


def test_a_bad_row_of_csv_is_as_it_is_in_the_file(tmp_path: Path) -> None:
    files = Import(tmp_path, format="csv")
    files.write("a.csv", 'id,text\n1,"a, b",c\n2,"x\ny",z\n3,d\n')
    assert [json.loads(row) for row in files.round()] == [{"id": "3", "text": "d"}]
    assert [each.value for each in files.bad] == [b'1,"a, b",c', b'2,"x\ny",z']
