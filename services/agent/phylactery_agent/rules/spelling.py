"""Patterns that match a request however it is spelled in a chat: without accents, or with q for que and u for you.

Accents are removed one letter for one, so that the positions of a match are those in the person's own words, which is
what becomes an argument.
"""

from __future__ import annotations

import re
from typing import Final

from phylactery_agent.rules.expressions import Expression, expression

_PLAIN: Final = str.maketrans("áéíóúüñÁÉÍÓÚÜÑ", "aeiouunAEIOUUN")
_SHORT: Final = {
    "que": "(?:que|q|k)",
    "qu[ee]": "(?:que|q|k)",
    "de": "(?:de|d)",
    "por": "(?:por|x)",
    "tambien": "(?:tambien|tmb|tb)",
    "tambi[ee]n": "(?:tambien|tmb|tb)",
    "you": "(?:you|u|ya)",
    "tomorrow": "(?:tomorrow|tmrw|tmrow|tmr|2morrow|2moro)",
}
"""Words of a pattern, without accents, and how they are also written."""
_WORD: Final = re.compile(
    r"(?<![\w\\<\]])(?:" + "|".join(map(re.escape, sorted(_SHORT, key=len, reverse=True))) + r")(?![\w\[])"
)


def unaccented(text: str) -> str:
    """Return a text of the same length without the accents of Spanish."""
    return text.translate(_PLAIN)


def chat_expression(pattern: str) -> Expression:
    """Compile an expression for unaccented texts, in which every known word matches its short spellings too."""
    return expression(_WORD.sub(lambda found: _SHORT[found.group()], pattern.translate(_PLAIN)))


def named_groups(words: Expression, text: str) -> dict[str, str | None] | None:
    """Return the named groups of a match as the text spells them, or None if the text does not match."""
    found = words.match(unaccented(text))
    if found is None:
        return None
    spans = {name: found.span(number) for name, number in words.groupindex.items()}
    return {name: text[start:stop] if start >= 0 else None for name, (start, stop) in spans.items()}
