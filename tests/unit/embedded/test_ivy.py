"""Ivy gets exactly the pinned files, and finds the public repository on its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.unit.embedded.conftest import Repository, artifact

from penstock.embedded import ivy
from penstock.embedded.jars_lock import artifacts_of
from penstock.errors import SetupError


def test_ivy_is_found_inside_pyspark_without_importing_it() -> None:
    found = ivy.find_ivy()
    assert found is not None
    assert found.name.startswith("ivy-")


def test_nothing_but_the_pinned_files_is_asked_for() -> None:
    tree = ET.fromstring(ivy.module(artifacts_of("registry")))
    dependency = tree.find("dependencies/dependency")
    assert dependency is not None
    assert dependency.attrib == {
        "org": "io.apicurio",
        "name": "apicurio-registry-app",
        "rev": "2.6.13.Final",
        "transitive": "false",
    }


def test_without_a_mirror_no_address_is_named(tmp_path: Path) -> None:
    resolver = ET.fromstring(ivy.settings(tmp_path, None)).find("resolvers/ibiblio")
    assert resolver is not None
    assert "root" not in resolver.attrib


def test_a_mirror_is_the_root(tmp_path: Path) -> None:
    resolver = ET.fromstring(ivy.settings(tmp_path, "https://mirror.test/m2")).find(
        "resolvers/ibiblio"
    )
    assert resolver is not None
    assert resolver.attrib["root"] == "https://mirror.test/m2/"


def test_ivy_fetches_from_a_mirror(tmp_path: Path, repository: Repository) -> None:
    wanted = artifact("one", b"first")
    repository.files[wanted.repository_path] = b"first"
    found = ivy.find_ivy()
    assert found is not None
    ivy.retrieve(found, [wanted], tmp_path, repository.url, lambda _: None)
    assert (tmp_path / "one-1.0.jar").read_bytes() == b"first"


def test_a_failed_download_is_reported_with_its_log(tmp_path: Path, repository: Repository) -> None:
    found = ivy.find_ivy()
    assert found is not None
    with pytest.raises(SetupError) as caught:
        ivy.retrieve(found, [artifact("one", b"first")], tmp_path, repository.url, lambda _: None)
    assert "one" in str(caught.value)
    assert "ivy-fetch.log" in str(caught.value)
    assert "PENSTOCK_MAVEN_URL" in str(caught.value)
