"""Formatting of the nodes' storage with Kafka's own tool, before their first start."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from penstock.embedded.home import Home, NodePlace, State, write_private
from penstock.embedded.ports import HOST
from penstock.embedded.process import Child, log_file
from penstock.embedded.properties import as_text, node_properties
from penstock.embedded.runtime import Runtime
from penstock.embedded.security import Security, scram_credential

DEADLINE = 60.0


def format_storage(home: Home, state: State, security: Security, runtime: Runtime) -> None:
    """Format every node's storage, unless that was done; an interrupted run starts again."""
    if state.formatted:
        return
    staging = home.path / "format"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700)
    _run_tool(staging, state, security, runtime)
    for node in state.nodes:
        _give(staging / "data", home.folder_of(node), node)
    shutil.rmtree(staging)
    state.formatted = True
    home.save()


def _run_tool(staging: Path, state: State, security: Security, runtime: Runtime) -> None:
    # The nodes must find each other open while formatting: only ids, ports and users count here.
    settings = node_properties(state.nodes[0], state, Security(), staging / "data")
    (staging / "server.properties").write_text(as_text(settings), encoding="utf-8")
    command = runtime.command("kafka.tools.StorageTool", "-XX:TieredStopAtLevel=1", archived=False)
    command += ["format", "--cluster-id", state.cluster_id]
    command += ["--config", str(staging / "server.properties")]
    voters = (f"{x.id}@{HOST}:{x.controller_port}:{x.directory_id}" for x in state.nodes)
    command += ["--initial-controllers", ",".join(voters)]
    if security.scram:
        # In a file of arguments: everyone on the machine can read a command line.
        users = [scram_credential(security.mechanism, *user) for user in state.users.items()]
        write_private(staging / "users", "".join(f"--add-scram\n{user}\n" for user in users))
        command.append(f"@{staging / 'users'}")
    log = log_file(f"format-{state.nodes[0].client_port}")
    with Child(command, log=log) as tool:
        done = staging / "data" / "meta.properties"
        tool.wait_until(
            lambda: not tool.running and done.exists(), timeout=DEADLINE, what="Formatting storage"
        )
    log.unlink()


def _give(formatted: Path, folder: Path, node: NodePlace) -> None:
    # The output of the tool differs between nodes in two lines only: one run is enough for all.
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(formatted, folder / "data")
    meta = folder / "data" / "meta.properties"
    text = re.sub(r"(?m)^node\.id=.*$", f"node.id={node.id}", meta.read_text(encoding="utf-8"))
    text = re.sub(r"(?m)^directory\.id=.*$", f"directory.id={node.directory_id}", text)
    meta.write_text(text, encoding="utf-8")
