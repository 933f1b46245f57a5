"""Sets of words that the grammar knows by name, such as the words for "every", each of all languages together.

People mix languages, so a word counts whatever the language of its message is. The classes of the lexicon, in contrast,
are those of the message's language.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from phylactery_understanding.language.word_files import (
    FOLDER,
    Entry,
    LexiconError,
    entries,
    of_each_language,
    texts_of,
)

_FILE: Final = "vocabulary.yaml"


class Vocabulary:
    """The sets of a folder with a ``vocabulary.yaml`` and one in the folder of each language.

    Raises:
        LexiconError: a file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._entries: dict[str, list[Entry]] = defaultdict(list)
        for file in (folder / _FILE, *of_each_language(_FILE, folder)):
            for entry in entries(file):
                self._entries[entry.name].append(entry)
        self.names: Final = frozenset(self._entries)
        for name in self.names:  # a fault is told at start, whoever needs the set
            if isinstance(self._entries[name][0].value, dict):
                self.groups(name)
            else:
                self.words(name)

    def words(self, name: str) -> frozenset[str]:
        """Return a set. Raise LexiconError if there is none of the name, or it is a mapping."""
        return frozenset(word for entry in self._of(name) for word in texts_of(entry))

    def groups(self, name: str) -> Mapping[Any, tuple[str, ...]]:
        """Return the words of each key of a mapping. Raise LexiconError if there is none of the name."""
        found: dict[Any, tuple[str, ...]] = {}
        for key, part in self._parts(name):
            found[key] = (*found.get(key, ()), *texts_of(part))
        return found

    def _of(self, name: str) -> list[Entry]:
        if name not in self._entries:
            raise LexiconError(f"no {_FILE} has '{name}'")
        return self._entries[name]

    def _parts(self, name: str) -> Iterator[tuple[Any, Entry]]:
        for entry in self._of(name):
            if not isinstance(entry.value, dict):
                raise LexiconError(f"{entry.where}: '{name}' must map keys to lists of texts")
            yield from ((key, Entry(f"{name}/{key}", value, entry.where)) for key, value in entry.value.items())


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary(FOLDER)


def word_set(name: str) -> frozenset[str]:
    """Return a packaged set. Raise LexiconError if there is none of the name, or a file cannot be used."""
    return _vocabulary().words(name)


def word_groups(name: str) -> Mapping[Any, tuple[str, ...]]:
    """Return the words of each key of a packaged mapping; raises as ``word_set`` does."""
    return _vocabulary().groups(name)


def word_map(name: str) -> dict[str, Any]:
    """Return the key of each word of a packaged mapping; raises as ``word_set`` does."""
    return {word: key for key, some in word_groups(name).items() for word in some}
