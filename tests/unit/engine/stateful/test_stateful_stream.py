"""State goes on in the form in which it was stored, or the pipeline says what was changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.engine.epochs import begin, plan_batch

from penstock.engine.checkpoint import Epoch
from penstock.engine.stateful.stateful_stream import require_same_state
from penstock.errors import ConfigError

SHAPE = {"step": "aggregate", "window": "60.0"}


@pytest.fixture
def epoch(tmp_path: Path) -> Epoch:
    return begin(tmp_path).new(7, {("t", 0): 0}, {"t": "id"})


def test_the_shapes_are_stored_before_the_first_batch(epoch: Epoch) -> None:
    require_same_state(epoch, [SHAPE])
    require_same_state(epoch, [{**SHAPE, "window": "30.0"}])  # nothing was stored by it yet
    assert epoch.shapes() == [{**SHAPE, "window": "30.0"}]


def test_a_changed_option_is_refused_with_both_values(epoch: Epoch) -> None:
    require_same_state(epoch, [SHAPE])
    plan_batch(epoch, 0, {("t", 0): 5})
    require_same_state(epoch, [SHAPE])
    with pytest.raises(ConfigError, match=r"'window' of 'aggregate' was '60\.0', and is '30\.0'"):
        require_same_state(epoch, [{**SHAPE, "window": "30.0"}])


def test_another_set_of_steps_is_refused_with_both(epoch: Epoch) -> None:
    require_same_state(epoch, [SHAPE])
    plan_batch(epoch, 0, {("t", 0): 5})
    with pytest.raises(ConfigError, match="were aggregate, and are none"):
        require_same_state(epoch, [])
