"""The first reading of a large table in chunks: each row once, whatever happens meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.integration.imports.database_rounds import Rounds
from tests.integration.imports.database_target import Target
from tests.services import postgres as postgres_server
from tests.services.postgres import Postgres

from penstock.errors import ConfigError, TransientError
from penstock.imports.database.database_part import ChunkPart, PlanPart
from penstock.imports.database.snapshot_plan import SnapshotPlan, even_cuts
from penstock.pipeline.importing import Part, key_of
from penstock.testing import eventually

MODES: dict[str, dict[str, str]] = {
    "incrementing": {"incrementing_column": "id"},
    "timestamp": {"timestamp_column": "at"},
    "timestamp+incrementing": {"timestamp_column": "at", "incrementing_column": "id"},
    "bulk": {},
}


def rounds_of(target: Target, mode: str, **options: Any) -> Rounds:
    target.analyze()
    return target.rounds(
        mode=mode, **MODES[mode], **{"chunk_rows": 200, "max_records": 14} | options
    )


def numbers_of(parts: list[Part]) -> list[int]:
    return [part.chunk.number for part in parts if isinstance(part, ChunkPart)]


def read_one(rounds: Rounds, part: Part, takes: int | None = None) -> None:
    """Read a part as a task does, or only the first of its transactions."""
    place_key = key_of(part.place)
    with part.open(rounds.positions.get(place_key)) as reader:
        while (takes is None or takes > 0) and (taken := list(reader.take(rounds.most))):
            for each in taken:
                rounds._note(rounds.source.topic_of(part), each.records)
            rounds.positions[place_key] = taken[-1].position
            takes = None if takes is None else takes - 1


@pytest.mark.by_turns
@pytest.mark.parametrize("mode", MODES)
def test_a_large_table_is_read_in_chunks_each_row_once(place: Target, mode: str) -> None:
    place.fill(1, 1001)
    with rounds_of(place, mode, poll=60) as rounds:
        (plan,) = rounds.system.pending({})
        assert isinstance(plan, PlanPart)
        read_one(rounds, plan)
        chunks = rounds.system.pending(rounds.positions)
        assert len(chunks) >= 4
        assert numbers_of(chunks) == list(range(len(chunks)))
        assert rounds.run() == 1000
        assert sorted(rounds.column("id")) == list(range(1, 1001))
        rounds.restart() if mode != "bulk" else None
        assert rounds.run() == 0


@pytest.mark.by_turns
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "bulk"])
def test_rows_that_come_or_change_during_the_snapshot_are_read_after_it(
    place: Target,
    mode: str,
) -> None:
    place.fill(1, 1001)
    with rounds_of(place, mode) as rounds:
        read_one(rounds, *rounds.system.pending({}))
        read_one(rounds, rounds.system.pending(rounds.positions)[1])
        place.insert((2001, "2024-03-01 00:00:00"))
        if mode != "incrementing":
            place.run("UPDATE {t} SET at = '2024-03-01 00:00:01' WHERE id IN (5, 250, 999)")
        eventually(lambda: rounds.run() >= 0 and 2001 in rounds.column("id"))
        found = Counter(rounds.column("id"))
        assert sorted(found) == [*range(1, 1001), 2001]
        # A row that was read before it changed comes again, and no other one does.
        assert {n for n, times in found.items() if times > 1} <= {5, 250, 999}
        place.insert((2002, "2024-03-02 00:00:00"))
        eventually(lambda: rounds.run() == 1)
        rounds.restart()
        assert rounds.run() == 0


@pytest.mark.parametrize("mode", ["incrementing", "timestamp", "bulk"])
def test_a_snapshot_that_was_ended_goes_on_with_the_chunks_that_are_not_finished(
    place: Target,
    mode: str,
) -> None:
    place.fill(1, 1001)
    with rounds_of(place, mode) as rounds:
        read_one(rounds, *rounds.system.pending({}))
        chunks = rounds.system.pending(rounds.positions)
        read_one(rounds, chunks[2])
        read_one(rounds, chunks[0], takes=1)
        before = len(rounds.records)
        assert 0 < before < 1000
        rounds.restart()
        left = rounds.system.pending(rounds.positions)
        assert numbers_of(left) == [n for n in range(len(chunks)) if n != 2]
        rounds.restart()
        # The plan of a process that was slower changes nothing: there is one.
        late = PlanPart(
            chunks[0].relation,  # type: ignore[attr-defined]
            chunks[0].reading,  # type: ignore[attr-defined]
            "t",
            plan=SnapshotPlan("late", (), ()),
            load=1 if mode == "bulk" else 0,
        )
        with late.open(rounds.positions[key_of(late.place)]) as reader:
            assert list(reader.take(10)) == []
        for part in left:
            read_one(rounds, part)
        assert sorted(rounds.column("id")) == list(range(1, 1001))


def test_chunks_of_an_earlier_plan_count_for_nothing(place: Target) -> None:
    place.fill(1, 1001)
    with rounds_of(place, "incrementing") as rounds:
        assert rounds.run() == 1000
        table = next(key for key in rounds.positions if "chunk" not in key)
        del rounds.positions[table]  # as 'penstock offsets reset' of the table alone
        assert rounds.run() == 1000


def test_each_bulk_load_has_chunks_of_its_own(place: Target) -> None:
    place.fill(1, 601)
    with rounds_of(place, "bulk", poll=0.2) as rounds:
        assert rounds.run() == 600
        place.run("DELETE FROM {t} WHERE id > 500")
        place.insert((-5, "2024-01-01 00:00:00"), (9999, "2024-01-01 00:00:00"))
        eventually(lambda: rounds.run() == 502)
        assert sorted(rounds.column("id")[600:]) == [-5, *range(1, 501), 9999]


def test_what_is_not_split(place: Target) -> None:
    place.fill(1, 301)
    for options in ({"chunk_rows": 0}, {"chunk_rows": 1000}, {"tasks_max": 1}):
        with rounds_of(place, "incrementing", **options) as rounds:
            assert [type(part).__name__ for part in rounds.system.pending({})] == ["DatabasePart"]
    query = {"tables": [], "query": f"SELECT * FROM {place.quoted}", "topic": "q"}
    with rounds_of(place, "incrementing", **query) as rounds:
        assert [type(part).__name__ for part in rounds.system.pending({})] == ["DatabasePart"]


def test_a_mode_that_was_changed_during_the_snapshot_is_refused(place: Target) -> None:
    place.fill(1, 601)
    with rounds_of(place, "incrementing") as rounds:
        read_one(rounds, *rounds.system.pending({}))
        positions = rounds.positions
    with (
        rounds_of(place, "timestamp") as rounds,
        pytest.raises(ConfigError, match="position has 'incrementing', and the mode needs 'times"),
    ):
        rounds.system.pending(positions)
    with rounds_of(place, "bulk") as rounds:
        (part,) = rounds.system.pending(positions)
        assert isinstance(part, PlanPart)


def test_a_position_of_another_server_is_refused(postgres: Postgres, unique: str) -> None:
    name = unique.replace("-", "_")
    options = {"password": postgres_server.PASSWORD, "tables": name, "mode": "incrementing"}
    with Postgres() as other:
        for server in (postgres, other):
            with server.connect() as session:
                session.execute(f"CREATE TABLE {name} (id bigserial PRIMARY KEY)")
                session.execute(f"INSERT INTO {name} SELECT FROM generate_series(1, 10)")
        with Rounds(url=postgres.url, incrementing_column="id", **options) as rounds:
            assert rounds.run() == 10
            positions = dict(rounds.positions)
        with Rounds(url=other.url, incrementing_column="id", **options) as rounds:
            rounds.positions = positions
            with pytest.raises(
                ConfigError, match=r"is of the server \d+/penstock, and .*offsets reset"
            ):
                rounds.run()
            # An operator says that it is a copy: without the server, the position holds.
            rounds.positions = {key: {"incrementing": 4} for key in positions}
            assert rounds.run() == 6
            assert set(next(iter(rounds.positions.values()))) == {
                "incrementing",
                "columns",
                "server",
            }
            rounds.positions = {key: {"incrementing": 4} for key in positions}
            (part,) = rounds.system.pending(rounds.positions)
            object.__setattr__(part, "server", "of the driver")
            with pytest.raises(TransientError, match="is another server"), part.open(None):
                pass


@pytest.mark.parametrize(
    ("lowest", "highest", "cuts"),
    [
        (0, 10, (2, 5, 7)),
        (-(10**30), 10**30, (-(10**30) // 2, 0, 10**30 // 2)),
        (7, 7, ()),
        (9, 1, ()),
        (1.5, 9.5, ()),
        (
            "2024-01-01 00:00:00.000000",
            "2024-01-01 00:00:00.000001",
            ("2024-01-01 00:00:00.000000",),
        ),
        ("infinity", "2024-01-01 00:00:00", ()),
        ("2024-01-01 00:00:00+00:00", "2024-01-01 00:00:00", ()),
        (5, "2024-01-01 00:00:00", ()),
    ],
)
def test_cuts(lowest: Any, highest: Any, cuts: tuple[Any, ...]) -> None:
    assert even_cuts(lowest, highest, 4) == cuts
