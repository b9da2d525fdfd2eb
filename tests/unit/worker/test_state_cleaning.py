"""What a worker removes of a deployment that is deleted, also where its definition cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.engine.state_dir import locked, state_place
from penstock.errors import SetupError
from penstock.worker import starting
from penstock.worker.starting import Starting

MISSING = "${env:PENSTOCK_TEST_IS_NOT_SET}"


@pytest.mark.parametrize("reference", [MISSING, "${file:/does/not/exist:key}"])
def test_a_connector_whose_references_have_no_value_is_removed(
    control_store: ControlStore, tmp_path: Path, reference: str
) -> None:
    config = {"name": "x", "connector.class": "FileStreamSink", "topics": "a", "file": reference}
    row = control_store.deployments.put("x", Kind.CONNECTOR, json.dumps(config), by="a test")
    states = str(tmp_path / "states")
    folder = Path(state_place("x", states))
    locked(str(folder), "x").close()
    (folder / "1").mkdir()
    assert folder.exists()

    Starting(control_store, states).clean(row)

    assert not folder.exists()


def test_a_pipeline_whose_place_is_not_known_does_not_end_the_step(
    control_store: ControlStore,
) -> None:
    text = f"name: x\nstate: {MISSING}\nsource: {{kafka: {{topics: t}}}}\nsink: discard\n"
    row = control_store.deployments.put("x", Kind.PIPELINE, text, by="a test")
    Starting(control_store).clean(row)


def test_a_pipeline_whose_key_is_lost_does_not_end_the_step(control_store: ControlStore) -> None:
    text = "name: x\nsource: {kafka: t}\nsink: {database: {password: hunter2, table: t}}\n"
    sealed = SpecSecrets(Sealer([bytes(32)])).sealed("x", text)
    row = control_store.deployments.put("x", Kind.PIPELINE, sealed, by="a test")
    with pytest.raises(SetupError, match="a key that is not in the key file"):
        control_store.secrets.opened("x", row.spec)

    Starting(control_store).clean(row)


@pytest.mark.parametrize("kind", [SetupError, OSError])
def test_a_state_that_cannot_be_written_does_not_end_the_step(
    control_store: ControlStore, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def refuse(_definition: object) -> None:
        raise kind("cannot write the state")

    monkeypatch.setattr(starting, "remove_state", refuse)
    text = "name: x\nsource: {kafka: t}\nsink: discard\n"
    row = control_store.deployments.put("x", Kind.PIPELINE, text, by="a test")

    Starting(control_store).clean(row)
