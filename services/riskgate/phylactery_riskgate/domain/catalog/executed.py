"""Names of files that other programs run or obey, from executed.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from phylactery_chassis.util.file_names import folded, is_hidden, originals

from phylactery_riskgate.domain.documents import read_document

_FILE = "executed.yaml"


@dataclass(frozen=True, slots=True)
class _Listed:
    names: frozenset[str]
    suffixes: tuple[str, ...]
    folders: frozenset[str]


@cache
def _listed() -> _Listed:
    text = (files("phylactery_riskgate.domain.catalog") / _FILE).read_text(encoding="utf-8")
    lists = {key: " ".join(lines).split() for key, lines in read_document(_FILE, text).data.items()}
    return _Listed(frozenset(lists["names"]), tuple(lists["suffixes"]), frozenset(lists["folders"]))


def is_executed(path: str) -> bool:
    """Return True if a path names a file that other programs run or obey, in the spelling of any system.

    A hidden part counts, and so does every part that only looks like a name of the list, or is a copy of one.
    """
    listed = _listed()
    segments = [one for one in folded(path).replace("\\", "/").split("/") if one.strip(" .")]
    if not segments:
        return False
    if any(is_hidden(one) or one.strip(" .").casefold() in listed.folders for one in segments):
        return True
    streams = segments[-1].split(":")
    return any(
        name in listed.names or name.endswith(listed.suffixes)
        for stream in streams
        for name in originals(stream)
        if name
    )
