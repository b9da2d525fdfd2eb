"""The files of examples/deploy: they parse, and the commands and options in them exist."""

from __future__ import annotations

import configparser
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from penstock.cli.main import app
from penstock.pipeline import read_pipeline

EXAMPLES = Path(__file__).parents[3] / "examples"
UNITS = sorted((EXAMPLES / "deploy/systemd").glob("*.service"))
KINDS = list(yaml.safe_load_all((EXAMPLES / "deploy/kubernetes.yaml").read_text()))
VARIABLES = {"PENSTOCK_STORE", "PENSTOCK_STORE_KEYS", "PENSTOCK_STATE", "PENSTOCK_HOME"}


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return parser


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for document in KINDS:
        if document["kind"] in ("Deployment", "StatefulSet"):
            spec = document["spec"]["template"]["spec"]
            yield from ((spec, container) for container in spec["containers"])


def require_command(words: list[str]) -> str:
    """Parse a command line as the command does, without running it; return the name of the command."""
    group: Any = get_command(app)
    context = group.make_context("penstock", words, resilient_parsing=True)
    name, command, rest = group.resolve_command(context, context._protected_args + context.args)
    real = command.real()
    options = {each for parameter in real.params for each in parameter.opts}
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert given <= options, f"unknown options: {given - options}"
    real.make_context(name, list(rest), parent=context)
    return str(name)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists(path: Path) -> None:
    service = unit(path)["Service"]
    program, *words = shlex.split(service["ExecStart"])

    assert Path(program).name == "penstock"
    assert require_command(words) in path.name.replace("penstock-server", "serve")
    assert service["User"] == "penstock"
    assert service["Restart"] == "always"


def test_a_stop_of_the_server_leaves_its_workers_and_one_of_a_worker_waits_for_its_batches() -> (
    None
):
    server, worker = (unit(path)["Service"] for path in UNITS)

    assert (server["KillMode"], server["KillSignal"]) == ("process", "SIGTERM")
    assert (worker["KillMode"], worker["KillSignal"]) == ("mixed", "SIGTERM")
    assert int(worker["TimeoutStopSec"]) > 300
    # What the kernel kills for want of memory is replaced; the rest of the unit goes on.
    assert server["OOMPolicy"] == worker["OOMPolicy"] == "continue"


def test_containers_start_commands_that_exist() -> None:
    names = [
        require_command([*container["command"][1:], *container["args"]])
        for _, container in containers()
    ]

    assert names == ["serve", "worker"]


def test_containers_take_the_store_from_a_secret_and_share_a_state() -> None:
    for spec, container in containers():
        environment = {each["name"]: each for each in container["env"]}
        assert set(environment) == VARIABLES
        assert environment["PENSTOCK_STORE"]["valueFrom"]["secretKeyRef"]["name"] == "penstock"
        assert environment["PENSTOCK_STATE"]["value"].startswith("s3a://")
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        volumes = {volume["name"] for volume in spec["volumes"]}
        assert set(mounts.values()) <= volumes
        assert environment["PENSTOCK_STORE_KEYS"]["value"] == "/etc/penstock/keys"
        assert spec["securityContext"]["runAsNonRoot"]
        # The file of keys must belong to its reader: it is copied out of the secret.
        assert spec["initContainers"][0]["command"][:3] == ["install", "-m", "0600"]


def test_services_select_pods_that_exist() -> None:
    labels = [
        document["spec"]["template"]["metadata"]["labels"]
        for document in KINDS
        if "template" in document.get("spec", {})
    ]
    selectors = [
        document["spec"]["selector"] for document in KINDS if document["kind"] == "Service"
    ]

    assert len(selectors) == 2
    assert all(selector in labels for selector in selectors)
    grace = [spec.get("terminationGracePeriodSeconds", 30) for spec, _ in containers()]
    assert grace[1] > 300


def test_no_example_has_a_password() -> None:
    for path in (EXAMPLES / "deploy").rglob("*"):
        if path.is_file():
            assert "password" not in path.read_text().lower().replace("password of", "")


def test_the_first_definition_to_deploy_is_valid() -> None:
    assert read_pipeline(EXAMPLES / "host-metrics.yaml").name == "host-metrics"
