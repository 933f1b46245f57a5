"""Text in a message that is not the person's own: fenced, tagged, cited, forwarded, quoted at length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from phylactery_understanding.language.text import Kind, merged_spans, tokenize

_LONG_QUOTE: Final = 25
"""The maximum length of a quotation in tokens; a longer one is pasted text."""
_LONG_PART: Final = 600
_MANY_LINES: Final = 8
"""The lengths, in characters and in lines, from which a later paragraph is more likely pasted than said."""
_FENCES: Final = (re.compile("```"), re.compile(r'^[ \t]{0,8}(?:~{3,}|"{3,})[^\n"~]{0,40}$', re.MULTILINE))
_TAG: Final = re.compile(r"<([a-z][a-z0-9_-]{0,39})(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_MAX_TAGS: Final = 64
_CITED: Final = re.compile(r"^[ \t]{0,8}>[^\n]*+", re.MULTILINE)
_FORWARDED: Final = re.compile(
    r"^[ \t]{0,8}(?:-{2,}[ \t]{0,8}(?:begin |inicio )?(?:original message|forwarded message|mensaje original|"
    r"mensaje reenviado)"
    r"|(?:on|el)\b[^\n]{1,200}\b(?:wrote|escribió|escribio):[ \t]{0,8}$"
    r"|(?:(?:fwd?|fw|rv|tr|wg|enc)[ \t]?:|(?:forwarded|reenviad[oa])\b)[^\n]{0,200}\n"
    r"|(?:from|de|subject|asunto):[ \t]{1,8}[^\n]{1,200}\n)",
    re.MULTILINE | re.IGNORECASE,
)


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the text that is not the person's statement: fenced, tagged, cited, forwarded, quoted at length."""
    return merged_spans(_pasted(text))


def _pasted(text: str) -> Iterator[tuple[int, int]]:
    for fence in _FENCES:
        places = [found.start() for found in fence.finditer(text)]
        if places:
            yield places[0], places[-1] + 3 if len(places) % 2 == 0 else len(text)
    closings: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[1].lower()
        if name not in closings:
            if len(closings) >= _MAX_TAGS:
                break
            closings[name] = text.lower().rfind(f"</{name}>")
        if closings[name] >= tag.end():
            yield tag.start(), closings[name]
    yield from (cited.span() for cited in _CITED.finditer(text))
    forwarded = _FORWARDED.search(text)
    if forwarded is not None:
        yield forwarded.start(), len(text)
    for token in tokenize(text):
        if token.kind is Kind.QUOTE and len(token.raw) > _LONG_QUOTE and len(tokenize(token.raw)) > _LONG_QUOTE:
            yield token.start, token.stop
    for part in list(re.finditer(r"(?:[^\n]|\n(?!\s*\n))+", text))[1:]:
        if len(part[0]) > _LONG_PART or part[0].count("\n") >= _MANY_LINES:
            yield part.span()
