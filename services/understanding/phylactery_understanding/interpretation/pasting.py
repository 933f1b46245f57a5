"""Text in a message that is not the person's own: fenced, tagged, cited, forwarded, quoted at length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from phylactery_understanding.language.own_words import Span, others_in, without_others
from phylactery_understanding.language.text import Kind, merged_spans, tokenize
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.replies.answers import plain_words

_LONG_QUOTE: Final = 25
"""The maximum length of a quotation in tokens; a longer one is pasted text."""
_LONG_PART: Final = 600
_MANY_LINES: Final = 8
"""The lengths, in characters and in lines, from which a later paragraph is more likely pasted than said."""
_FENCES: Final = (re.compile("```"), re.compile(r'^[ \t]{0,8}(?:~{3,}|"{3,})[^\n"~]{0,40}$', re.MULTILINE))
_TAG: Final = re.compile(r"<([a-z][a-z0-9_-]{0,39})(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_MAX_TAGS: Final = 64
_CITED: Final = re.compile(r"^[ \t]{0,8}>[^\n]*+", re.MULTILINE)
_HEADS: Final = "from|de|to|para|cc|subject|asunto|date|fecha|sent|enviado(?: el)?|reply-to"
_FORWARDED: Final = re.compile(
    r"^[ \t]{0,8}(?:-{2,}[ \t]{0,8}(?:begin |inicio )?(?:original message|forwarded message|mensaje original|"
    r"mensaje reenviado)"
    r"|(?:on|el)\b[^\n]{1,200}\b(?:wrote|escribió|escribio):[ \t]{0,8}$"
    r"|(?:(?:fwd?|fw|rv|tr|wg|enc)[ \t]?:|(?:forwarded|reenviad[oa])\b)[^\n]{0,200}\n"
    r"|(?:from|de|subject|asunto):[ \t]{1,8}[^\n]{1,200}\n"
    rf"|(?:(?:{_HEADS})[ \t]?:[^\n]{{1,200}}\n){{2}}"
    rf"|(?:from|de)[ \t]?:[^\n]{{1,120}}?\s(?:{_HEADS})[ \t]?:"
    r"|\[?\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},?[ \t]{1,4}\d{1,2}:\d{2}[^\n:]{0,20}\]?[ \t-]{1,4}[^\n:]{1,60}:)",
    re.MULTILINE | re.IGNORECASE,
)
"""How a line begins that says that what follows is a mail or a chat: its head, or two lines of one."""
_SAID: Final = re.compile(r":(?=\s|[\"“«'])|[\"“«]")
"""What opens the words that somebody said: a colon, or a quotation."""
_SENTENCE: Final = re.compile(r"[.!?;\n]")
_NEAR: Final = 6
"""The number of words in which a quotation follows the verb that says whose it is."""
_LONGEST_HEAD: Final = 200
_REPORTING: Final = word_set("reporting")
_PERFECTS: Final = word_set("reporting_perfects")
_SELVES: Final = word_set("reporting_selves")
_PERFECT_SELVES: Final = word_set("reporting_perfect_selves")
_BETWEEN: Final = word_set("reporting_between")


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the text that is not the person's statement: fenced, tagged, cited, forwarded, quoted at length."""
    return merged_spans(_pasted(text))


def reported(text: str) -> list[Span]:
    """Return what a text says that somebody else said: mi jefa dice: …, my boss told me: …, he wrote "…".

    Behind a colon it goes on to the end, because nothing shows where it ends. What the person says that they said
    themselves is theirs: I said: …, te lo he dicho: ….
    """
    found = list[Span]()
    for opened in _SAID.finditer(text):
        if found and opened.start() < found[-1][1]:
            continue
        head = text[max(0, opened.start() - _LONGEST_HEAD) : opened.start()]
        colon = opened[0] == ":"
        words = plain_words(_SENTENCE.split(head.rstrip(": "))[-1])
        if not _says_whose(words if colon else words[-_NEAR:]):
            continue
        if colon:
            found.append((opened.end(), len(text)))
            break
        closing = {"“": "”", "«": "»"}.get(opened[0], opened[0])
        end = text.find(closing, opened.end())
        found.append((opened.start(), len(text) if end < 0 else end + 1))
    return merged_spans(found)


def _says_whose(words: tuple[str, ...]) -> bool:
    """Return True if words say that somebody else says something."""
    for place, word in enumerate(words):
        selves = _SELVES if word in _REPORTING else _PERFECT_SELVES if word in _PERFECTS else None
        if selves is None:
            continue
        before = place - 1
        while before >= 0 and words[before] in _BETWEEN:
            before -= 1
        if before < 0 or words[before] not in selves:
            return True
    return False


def own_statements(text: str) -> str:
    """Return what the person states in a text, with blank lines in place of what is pasted or reported in it.

    It says who wants, is or asks for something: what begins a form, calls a person or is kept of somebody is read in
    nothing else. A request may be about the rest: read_request has its own view of that.
    """
    foreign = merged_spans((*pasted(text), *reported(text)))
    return without_others(text, list(others_in(text, foreign))) if foreign else text


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
