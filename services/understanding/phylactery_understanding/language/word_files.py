"""Files of a language: names with their words, one folder per language; faults are told with file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[1] / "lexicons"

# libyaml is ten times as fast, if PyYAML's wheel includes it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
        text = file.read_text(encoding="utf-8")
        loader = _Loader(text)
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except OSError as error:
        raise LexiconError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LexiconError(f"{file}: no UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise LexiconError(f"{file}{line}: no YAML") from error
    if not isinstance(data, dict):
        raise LexiconError(f"{file}:1: must be a mapping of names to lists")
    lines: dict[Any, int] = {}
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        name, line = key.value, key.start_mark.line + 1
        if name in lines:
            raise LexiconError(f"{file}:{line}: '{name}' stands in line {lines[name]} already")
        lines[name] = line
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
