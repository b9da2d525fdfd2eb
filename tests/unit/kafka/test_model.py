import pytest

from penstock.kafka.admin.admin_model import GroupDetail, GroupPosition


@pytest.mark.parametrize(
    ("committed", "end", "lag"),
    [(3, 10, 7), (10, 10, 0), (12, 10, 0), (None, 10, None), (3, None, None)],
)
def test_lag_is_what_is_left_to_read(
    committed: int | None, end: int | None, lag: int | None
) -> None:
    assert GroupPosition("t", 0, committed, end).lag == lag


def test_the_lag_of_a_group_is_the_sum_over_what_is_known() -> None:
    positions = (
        GroupPosition("t", 0, 1, 5),
        GroupPosition("t", 1, None, 5),
        GroupPosition("t", 2, 0, 2),
    )
    assert GroupDetail("g", "empty", "classic", "", (), positions).lag == 6
