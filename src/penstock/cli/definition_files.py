"""The definitions that `penstock apply` is given: files, and folders of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from penstock.config.files import NOT_YAML, yaml_problem
from penstock.config.settings import FILE_NAME
from penstock.errors import ConfigError

_ENDINGS = (".yaml", ".yml")
_LARGEST = 10_000_000
# The names that definitions may have; the server checks the rest.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class DefinitionFile:
    """A definition, the file that it is from, and the name of its deployment."""

    file: Path
    name: str
    text: str


def read_definitions(paths: Iterable[Path]) -> list[DefinitionFile]:
    """Read all definitions; report everything that is wrong with them at once."""
    found: dict[str, DefinitionFile] = {}
    problems: list[str] = []
    for file in dict.fromkeys(each for path in paths for each in _files(path)):
        try:
            one = _read(file)
        except ConfigError as error:
            problems.append(str(error))
            continue
        other = found.setdefault(one.name, one)
        if other is not one:
            problems.append(f"{other.file} and {file} both define {one.name!r}; rename one of them")
    if problems:
        raise ConfigError("\n".join([*problems, "nothing was applied"]))
    return list(found.values())


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or the definitions of a folder and its subfolders, without hidden ones."""
    if not path.is_dir():
        yield path
        return
    inside = sorted(
        file
        for file in path.rglob("*")
        if file.suffix in _ENDINGS
        and file.is_file()
        and file.name != FILE_NAME
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not inside:
        raise ConfigError(f"the folder {path} has no definitions: no file ends with .yaml or .yml")
    yield from inside


def _read(file: Path) -> DefinitionFile:
    try:
        if file.stat().st_size > _LARGEST:
            raise ConfigError(f"{file} is too large for a definition")
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    return DefinitionFile(file, _name(file, text), text)


def _name(file: Path, text: str) -> str:
    problem = "it is not a mapping with name, source and sink"
    try:
        data = yaml.safe_load(text)
    except NOT_YAML as error:
        line, problem = yaml_problem(error)
        data, problem = None, f"line {line}: {problem}" if line else problem
    if not isinstance(data, dict):
        raise ConfigError(f"{file} is not a definition: {problem}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{file} has no name: write `name: orders`, which names the deployment")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{file} has the name {name[:100]!r}; allowed: up to 100 letters, digits, dots, dashes and "
            "underscores, beginning with a letter or a digit"
        )
    return name
