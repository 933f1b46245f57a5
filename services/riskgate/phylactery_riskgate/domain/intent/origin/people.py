"""Detection of people in the user's words."""

from __future__ import annotations

import re
from typing import Final

from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.languages import PEOPLE

_NAME: Final = re.compile(r"(?<=[^\W\d_]|[,;:\"'«“(\d])\s+[\"'«“(]?[^\W\d_a-z]\w+")
"""A capitalized word that does not begin a sentence."""


def speaks_of_nobody(index: TaskIndex) -> bool:
    """Return True if no word is a name, an address, or a word for people: with, invite, everyone."""
    words = index.words
    if any("@" in one for one in words.tokens) or not PEOPLE.isdisjoint(words.atom_places):
        return False
    return not any(_NAME.search(message) for message in index.messages)
