"""Files of a language: names with their words, one folder per language; faults are told with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from phylactery_understanding.documents import YamlFault, compose, construct

FOLDER: Final = Path(__file__).parents[1] / "lexicons"


class LexiconError(Exception):
    """A lexicon file that cannot be used; gives the file, and the line if the fault has one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a file with its content, and ``where``: its file and line."""

    name: str
    value: Any
    where: str


def of_each_language(name: str, folder: Path = FOLDER) -> list[Path]:
    """Return the files of a name, one of each language that has it."""
    return [file for home in sorted(folder.iterdir()) if (file := home / name).is_file()]


def entries(file: Path) -> list[Entry]:
    """Return the content of a file. Raise LexiconError if it is no mapping, or has a name twice."""
    try:
        node = compose(file.read_text(encoding="utf-8"), text_keys=False)
        data = construct(node)
    except OSError as error:
        raise LexiconError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LexiconError(f"{file}: no UTF-8") from error
    except YamlFault as fault:
        raise LexiconError(f"{file}{f':{fault.line}' if fault.line else ''}: no YAML: {fault}") from fault
    if not isinstance(data, dict):
        raise LexiconError(f"{file}:1: must be a mapping of names to lists")
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    lines = {key.value: key.start_mark.line + 1 for key, _ in pairs}
    return [Entry(str(name), value, f"{file}:{lines.get(name, 1)}") for name, value in data.items()]


def lists(file: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Return the words of each name in a file. Raise LexiconError if one has anything else."""
    return ((entry.name, texts_of(entry)) for entry in entries(file))


def texts_of(entry: Entry) -> Sequence[str]:
    """Return the words of an entry. Raise LexiconError if it has anything else."""
    value = entry.value
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise LexiconError(f"{entry.where}: '{entry.name}' must be a list of texts; quote words such as no, yes and on")
    return value
