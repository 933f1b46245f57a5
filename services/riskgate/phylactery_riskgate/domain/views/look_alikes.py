"""Letters and marks that look like an ASCII character, so that a name containing them reads as another name.

The letters are the chassis'; the marks are those of Unicode TS 39's confusables.txt (15.1) that look like separators in
a path or an address, without those that NFKC maps to one of them.
"""

from __future__ import annotations

from typing import Final

from phylactery_chassis.util.look_alikes import ASCII_OF

LETTERS: Final = frozenset(ASCII_OF)
"""Letters and digits; in a word of their own script they are not look-alikes."""

MARKS: Final = frozenset(
    "\u02d0\u02f8\u0589\u05c3\u16ec\u1735\u1803\u1809\u2024\u2041\u2044\u205a\u2215\u2216\u2236\u2571"
    "\u27cb\u27cd\u29f5\u29f8\u29f9\u2f02\u2f03\u3002\u31d3\u31d4\ua60e\ua789\ufe30\ufe68\uff0e\uff0f"
    "\uff1a\uff20\uff3c\uff61\U0001d20f\U0001d23a\U0001d23b"
)
"""Marks that look like one of . / : @ or the backslash in a path or an address."""
