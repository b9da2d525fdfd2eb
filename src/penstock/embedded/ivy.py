"""Fetches from Maven repositories with the Ivy that PySpark ships: it knows the public one by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.embedded.jars_lock import Artifact
from penstock.embedded.java import find_java
from penstock.embedded.process import Child, log_file, tail
from penstock.errors import SetupError

Report = Callable[[int], None]
PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
DEADLINE = 1800.0


def find_ivy() -> Path | None:
    """Find the downloader inside PySpark, without importing PySpark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.origin:
        return None
    jars = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    return jars[-1] if jars else None


def retrieve(
    ivy_jar: Path, wanted: Sequence[Artifact], folder: Path, mirror: str | None, report: Report
) -> None:
    """Fetch all of `wanted` into `folder`; what Ivy prints goes to a log that errors name."""
    work = folder / "ivy"
    work.mkdir(parents=True, exist_ok=True)
    (work / "settings.xml").write_text(settings(work / "cache", mirror), encoding="utf-8")
    (work / "ivy.xml").write_text(module(wanted), encoding="utf-8")
    command: list[str | Path] = [find_java().path, "-XX:TieredStopAtLevel=1", "-jar", ivy_jar]
    command += ["-settings", work / "settings.xml", "-ivy", work / "ivy.xml"]
    command += ["-retrieve", str(folder / PATTERN)]
    log = log_file("ivy-fetch")
    with Child(command, log=log) as child:

        def has_ended() -> bool:
            report(_bytes_under(work / "cache"))
            return not child.running

        child.wait_until(has_ended, timeout=DEADLINE, what="Fetching the jars")
        code = child.wait()
    if code:
        raise SetupError(_problem(log, mirror))


def _bytes_under(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        if path.suffix in {".jar", ".gz", ".part"}:
            with suppress(FileNotFoundError):  # a .part file was renamed meanwhile
                total += path.stat().st_size
    return total


def _problem(log: Path, mirror: str | None) -> str:
    telling = ("UNRESOLVED", "not found", "FAILED", "Exception", "ERRORS", "refused", "timed out")
    lines = [line.strip() for line in tail(log, 60) if any(word in line for word in telling)]
    reasons = "\n".join(f"  {line}" for line in lines[:6])
    return (
        f"The jars could not be fetched from {mirror or 'the public Maven repository'}; Ivy's log is "
        f"{log}:\n{reasons}\nCheck the network, or set PENSTOCK_MAVEN_URL to a mirror that you can reach."
    )


def settings(cache: Path, mirror: str | None) -> str:
    """Write Ivy's settings: one repository, files only."""
    root = f" root={quoteattr(mirror.rstrip('/') + '/')}" if mirror else ""
    # Versions are pinned and sha256 is checked: descriptions and sha1 files are not asked for.
    return (
        '<ivysettings><settings defaultResolver="maven"/>'
        '<property name="ivy.checksums" value=""/>'
        f"<caches defaultCacheDir={quoteattr(str(cache))}/>"
        f'<resolvers><ibiblio name="maven" m2compatible="true" usepoms="false"{root}/></resolvers>'
        "</ivysettings>"
    )


def module(wanted: Sequence[Artifact]) -> str:
    """Write Ivy's list of what to fetch: each file by name, nothing that it would ask for."""
    lines = "".join(_dependency(artifact) for artifact in wanted)
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="penstock" module="jars"/>'
        f"<dependencies>{lines}</dependencies></ivy-module>"
    )


def _dependency(artifact: Artifact) -> str:
    classifier = f" m:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
    kind = quoteattr(artifact.extension)
    return (
        f"<dependency org={quoteattr(artifact.organisation)} name={quoteattr(artifact.name)} "
        f'rev={quoteattr(artifact.version)} transitive="false">'
        f"<artifact name={quoteattr(artifact.name)} type={kind} ext={kind}{classifier}/></dependency>"
    )
