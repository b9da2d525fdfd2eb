"""Sends code to a cluster's executors: Penstock itself, and the user's modules that a pipeline names.

Executors need the packages that Penstock needs, but neither Penstock nor the user's files.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config.logs import event_logger
from penstock.engine.modules import Files, imported_by_script, is_private, modules_needed
from penstock.errors import ConfigError
from penstock.pipeline import Component, Pipeline
from penstock.pipeline.storage import is_local
from penstock.pipeline.values import Function

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = event_logger(__name__)

_LARGEST = 100 * 2**20
# The same files must give the same archive, so that it is sent once.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def shipped(spark: SparkSession, pipeline: Pipeline) -> Pipeline:
    """Return the pipeline as the tasks of this session can run it, after sending what they lack."""
    context = spark.sparkContext
    if is_local(str(context.master)):
        return pipeline
    _send(context, _penstock())
    if modules := modules_needed(_named(pipeline)):
        _send(context, packed("modules", modules))
        log.info("modules_sent", pipeline=pipeline.name, files=sorted(modules))
    parts = {"decode": _anywhere(pipeline.decode), "steps": [*map(_anywhere, pipeline.steps)]}
    return pipeline.model_copy(update=parts)


def functions_of(component: Component) -> dict[str, Function]:
    """Return the Python functions among a component's options."""
    return {name: value for name, value in component if isinstance(value, Function)}


def parts_of(component: Component) -> Iterator[Component]:
    """Yield the component and those in its options: a join has its own decode and steps."""
    yield component
    for _, value in component:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Component):
                yield from parts_of(part)


def _anywhere(component: Component) -> Component:
    """Return the component with functions that do not look into the folders of this machine."""
    if not any(functions_of(part) for part in parts_of(component)):
        return component
    return component.model_copy(update={name: _moved(value) for name, value in component})


def _moved(value: Any) -> Any:
    if isinstance(value, Function):
        return value.without_folders()
    if isinstance(value, list):
        return [_moved(each) for each in value]
    return _anywhere(value) if isinstance(value, Component) else value


def _named(pipeline: Pipeline) -> Iterator[str]:
    """Yield the modules of the pipeline's components, and those of the functions they name."""
    sinks = pipeline.sink, pipeline.dead_letter_sink
    for whole in (pipeline.source, pipeline.decode, *pipeline.steps, *sinks):
        for part in parts_of(whole):
            yield type(part).__module__
            for function in functions_of(part).values():
                module = function.path.partition(":")[0]
                yield from imported_by_script() if module == "__main__" else [module]


def _send(context: SparkContext, archive: Path) -> None:
    if any(sent.endswith(f"/{archive.name}") for sent in context.listFiles):
        return
    context.addPyFile(str(archive))
    # PySpark puts it on this process's path, too, where the files themselves are.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(f"/{archive.name}")]


@cache
def _penstock() -> Path:
    return packed("penstock", dict(_own_files(Path(__file__).parents[1])))


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of the archives, which exists as long as this process."""
    return tempfile.TemporaryDirectory(prefix="penstock-shipped-")


def packed(name: str, files: Files) -> Path:
    """Write files into an archive that Python can import from; its name tells what is in it."""
    _refuse_large(files)
    draft = Path(_folder().name) / f"{name}.draft"
    with zipfile.ZipFile(draft, "w") as archive:
        for folder in _folders(files):
            archive.writestr(zipfile.ZipInfo(f"{folder}/", _LONG_AGO), b"")
        for inside, path in sorted(files.items()):
            entry = zipfile.ZipInfo(inside, _LONG_AGO)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    digest = hashlib.sha256(draft.read_bytes()).hexdigest()[:12]
    return draft.replace(draft.with_name(f"{name}-{digest}.zip"))


def _own_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in folder.rglob("*"):
        inside = file.relative_to(folder.parent)
        hidden = any(part == "__pycache__" or part.startswith(".") for part in inside.parts)
        # Our own code may name what a key looks like.
        if file.is_file() and not hidden and (file.suffix == ".py" or not is_private(file)):
            yield inside.as_posix(), file


def _folders(files: Iterable[str]) -> list[str]:
    """Return every folder: in an archive, Python finds one without __init__.py only by its entry."""
    folders = {str(parent) for file in files for parent in Path(file).parents}
    return sorted(folders - {"."})


def _refuse_large(files: Files) -> None:
    size = sum(path.stat().st_size for path in files.values())
    if size > _LARGEST:
        modules = sorted({inside.partition("/")[0].removesuffix(".py") for inside in files})
        raise ConfigError(
            f"the modules {', '.join(modules)} have {size >> 20} MB, and at most "
            f"{_LARGEST >> 20} MB are sent to a cluster: keep data out of their folders, or install "
            "them where the executors' Python is"
        )
