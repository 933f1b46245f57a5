"""Whether the user's words speak of anybody a call could reach."""

from __future__ import annotations

import re
from typing import Final

from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.languages import PEOPLE

_NAME: Final = re.compile(r"(?<=[^\W\d_]|[,;:\"'«“(\d])\s+[\"'«“(]?[^\W\d_a-z]\w+")
"""A word with a capital that no sentence begins with."""


def speaks_of_nobody(index: TaskIndex) -> bool:
    """Return whether no word of the user's is a name, an address, or one for people: with, invite, everyone."""
    words = index.words
    if any("@" in one for one in words.tokens) or not PEOPLE.isdisjoint(words.atom_places):
        return False
    return not any(_NAME.search(message) for message in index.messages)
