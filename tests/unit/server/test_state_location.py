"""State that stays on one machine is refused where several run the deployments."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigError
from penstock.server.state_location import require_movable_state


@pytest.mark.parametrize(
    ("state", "shared", "words"),
    [
        (None, None, "the data folder of one machine"),
        ("state", None, "is relative"),
        ("./state", "/mnt/shared", "is relative"),
        ("~/state", None, "is relative"),
        ("file:state", None, "is relative"),
        ("/tmp/state", None, "a folder of one machine"),
        ("file:///tmp/state", None, "a folder of one machine"),
        ("/mnt/../tmp/x", None, "a folder of one machine"),
        ("/dev/shm/x", "/mnt/shared", "a folder of one machine"),
    ],
)
def test_what_cannot_move_is_refused(state: str | None, shared: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        require_movable_state("orders", state, several_machines=True, shared_state=shared)
    assert "s3a://" in str(raised.value)
    require_movable_state("orders", state, several_machines=False, shared_state=shared)


@pytest.mark.parametrize(
    ("state", "shared"),
    [
        ("s3a://bucket/state", None),
        ("hdfs://host/state", None),
        ("/mnt/shared", None),
        ("file:///mnt/shared", None),
        (None, "/mnt/shared"),
        (None, "s3a://bucket"),
    ],
)
def test_what_can_move_is_accepted(state: str | None, shared: str | None) -> None:
    require_movable_state("orders", state, several_machines=True, shared_state=shared)
