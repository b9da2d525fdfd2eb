import pytest

from penstock.kafka.admin.resets import Move, ResetPlan


@pytest.mark.parametrize(("current", "new", "change"), [(5, 8, 3), (5, 0, -5), (None, 8, None)])
def test_the_change_is_how_far_a_group_moves(
    current: int | None, new: int, change: int | None
) -> None:
    assert Move("t", 0, current, new, new).change == change


@pytest.mark.parametrize(
    ("new", "wanted", "note"),
    [
        (5, 5, ""),
        (5, 9, "wanted 9; the partition ends at 5"),
        (5, -1, "wanted -1; the partition starts at 5"),
    ],
)
def test_the_note_says_what_the_edge_did(new: int, wanted: int, note: str) -> None:
    assert Move("t", 0, 0, new, wanted).note == note


def test_a_plan_gives_the_offsets_to_commit() -> None:
    moves = (Move("t", 0, None, 3, 3), Move("u", 1, 9, 4, 4))
    assert ResetPlan("g", moves, "empty").offsets == {("t", 0): 3, ("u", 1): 4}
