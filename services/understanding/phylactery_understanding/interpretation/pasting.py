"""Text in a message that is not the person's own: fenced, tagged, cited, forwarded, quoted at length."""

from __future__ import annotations

import re
import unicodedata
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
_SENT: Final = (
    r"(?:(?:from|de|sent|enviado(?: el)?|reply-to)[ \t]?:"
    r"|(?:date|fecha)[ \t]?:[ \t]*(?:mon|tue|wed|thu|fri|sat|sun|lun|mar|mi[eé]|jue|vie|s[aá]b|dom)\w{0,8}\.?,)"
)
"""How a head line begins that only a mail has which was sent: one that is dictated has a recipient and a subject."""
_HOUR: Final = r"\d{1,2}:\d{2}"
_DAY: Final = r"\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?"
_STAMP: Final = rf"\[(?=[^\]\n]{{0,40}}{_HOUR})(?=[^\]\n]{{0,40}}(?<![\d:]){_DAY}(?![\d:]))[^\]\n]{{6,45}}\]"
"""A day and an hour in brackets, in either order, as chats are copied: [10:32 AM, 5/3/2026]."""
_NAME: Final = r"[^\W\d_]{1,40}(?:[ \t][^\W\d_]{1,40}){0,2}"
SPEAKER: Final = (
    rf"^[ \t\u200e]{{0,8}}(?:(?:~[ \t]?{_NAME}|[\w.+-]{{0,64}}@[\w.-]{{1,190}}|\+\d[\d ()-]{{6,24}}"
    rf"|[\[(<*_]{{1,2}}{_NAME}[\])>*_]{{1,2}}"
    rf"|(?:\[{_HOUR}(?::\d{{2}})?\][ \t-]{{1,4}}|{_HOUR}(?::\d{{2}})?[ \t]-[ \t]){_NAME})[ \t]?:(?=\s)"
    rf"|[*_]{{1,2}}{_NAME}:[*_]{{1,2}}(?=\s)"
    rf"|{_DAY},?[ \t]{{1,4}}{_HOUR}(?::\d{{2}})?[^\n:-]{{0,10}}[ \t]-(?=[ \t]+[^\W\d]))"
)
"""How a line of a chat begins that is marked as somebody's: @eve: …, *Eve*: …, ~Eve: …, 10:15 - Eve: …, +34 600 …: ….
A name without a mark is none: it may be a title (Shopping: …), or whom the line is written to."""
_FORWARDED: Final = re.compile(
    r"^[ \t\u200e]{0,8}(?:-{2,}[ \t]{0,8}(?:begin |inicio )?(?:original message|forwarded message|mensaje original|"
    r"mensaje reenviado)"
    r"|(?:on|el)\b[^\n]{1,200}\b(?:wrote|escribió|escribio):[ \t]{0,8}$"
    r"|(?:(?:fwd?|fw|rv|tr|wg|enc)[ \t]?:|(?:forwarded|reenviad[oa])\b)[^\n]{0,200}\n"
    r"|(?:from|de):[ \t]{1,8}[^\n]{1,200}\n"
    rf"|(?:{_HEADS})[ \t]?:[^\n]{{1,200}}\n"
    rf"(?:[ \t]{{0,8}}(?:{_HEADS})[ \t]?:[^\n]{{1,200}}\n){{0,3}}[ \t]{{0,8}}{_SENT}"
    rf"|{_SENT}[^\n]{{1,200}}\n[ \t]{{0,8}}(?:{_HEADS})[ \t]?:"
    rf"|(?:from|de)[ \t]?:[^\n]{{1,120}}?\s(?:{_HEADS})[ \t]?:"
    rf"|\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}},?[ \t]{{1,4}}{_HOUR}[^\n:]{{0,20}}[ \t-]{{1,4}}[^\n:]{{1,60}}:"
    rf"|{_DAY},?[ \t]{{1,4}}{_HOUR}(?::\d{{2}})?[^\n:]{{0,10}}[ \t]-[ \t][^\n:]{{1,60}}:"
    rf"|{_STAMP}[ \t]{{0,4}}[^\n:]{{1,60}}:"
    rf"|[^\n\[\]]{{1,60}},[ \t]{_STAMP}[ \t:]{{0,4}}$)"
    rf"|{SPEAKER}",
    re.MULTILINE | re.IGNORECASE,
)
"""How a line begins that says that what follows is a mail or a chat: its head, or two lines of one."""
_SAID: Final = re.compile(r":(?=\s|[\"“«'])|[\"“«]")
"""What opens the words that somebody said: a colon, or a quotation."""
_SENTENCE: Final = re.compile(r"[.!?;\n]")
_NEXT: Final = re.compile(r"(?:[.!?]\s|\n)\s*(?=\S)")
"""Where a further sentence or line begins."""
_NEAR: Final = 6
"""The number of words in which a quotation follows the verb that says whose it is."""
_MOST_MARKS: Final = 64
"""Colons and quotation marks that are looked at in one text."""
_LONGEST_HEAD: Final = 200
_THIRD: Final = "ø"
"""Stands for an accented o at the end of a word, which plain words lose: explicó is another's, explico is not."""
_ACCENTED: Final = re.compile(r"ó\b")
_REPORTING: Final = word_set("reporting")
_FIRSTS: Final = word_set("reporting_firsts")
_PERFECTS: Final = word_set("reporting_perfects")
_SELVES: Final = word_set("reporting_selves")
_PERFECT_SELVES: Final = word_set("reporting_perfect_selves")
_BETWEEN: Final = word_set("reporting_between")
_HEARERS: Final = word_set("reporting_hearers")
_NOUNS: Final = word_set("reporting_nouns")
_ARTICLES: Final = word_set("reporting_articles")
_OWNERS: Final = word_set("reporting_owners")
_DENIALS: Final = word_set("reporting_denials")
_DENIED_BETWEEN: Final = word_set("reporting_denied_between")
_WISHES: Final = word_set("reporting_wishes")


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the text that is not the person's statement: fenced, tagged, cited, forwarded, quoted at length."""
    return merged_spans(_pasted(text))


def reported(text: str, *, wishes: bool = False) -> list[Span]:
    """Return what a text says that somebody else said: mi jefa dice: …, my boss told me: …, he wrote "…".

    Of a text with very many marks the rest is taken for reported, too: nobody states anything so, and to read each
    would take seconds. Behind a colon it goes on to the end, because nothing shows where it ends; with ``wishes`` it
    ends where a further sentence begins as a wish of whoever speaks: the screen says: error 4. I want …. What the
    person says that they said themselves is theirs: I said: …, te lo he dicho: ….
    """
    found = list[Span]()
    for count, opened in enumerate(_SAID.finditer(text)):
        if found and opened.start() < found[-1][1]:
            continue
        if count >= _MOST_MARKS:
            found.append((opened.start(), len(text)))
            break
        head = _SENTENCE.split(text[max(0, opened.start() - _LONGEST_HEAD) : opened.start()].rstrip(": "))[-1]
        colon = opened[0] == ":"
        near = head if colon else " ".join(head.split()[-_NEAR:])
        if not any(_says_whose(_words_of(part)) for part in near.split(",")):
            continue
        if colon:
            found.append((opened.end(), _end_of(text, opened.end()) if wishes else len(text)))
            continue
        closing = {"“": "”", "«": "»"}.get(opened[0], opened[0])
        end = text.find(closing, opened.end())
        found.append((opened.start(), len(text) if end < 0 else end + 1))
    return merged_spans(found)


def _words_of(clause: str) -> tuple[str, ...]:
    return plain_words(_ACCENTED.sub(_THIRD, unicodedata.normalize("NFC", clause.lower())))


def _end_of(text: str, start: int) -> int:
    """Return where what was reported from a place on ends: where a further sentence wishes for something."""
    for place in _NEXT.finditer(text, start):
        words = plain_words(text[place.end() : place.end() + _LONGEST_HEAD].lstrip("¿¡"))
        if words and words[0] in _WISHES:
            return place.end()
    return len(text)


def _says_whose(words: tuple[str, ...]) -> bool:
    """Return True if words of a clause say that somebody else says something."""
    return any(_is_others(words, place) for place in range(len(words)))


def _is_others(words: tuple[str, ...], place: int) -> bool:
    """Return True if a word is a verb by which somebody else says something."""
    word = words[place]
    accented, word = word.endswith(_THIRD), word.replace(_THIRD, "o")
    selves = _SELVES if word in _REPORTING else _PERFECT_SELVES if word in _PERFECTS else None
    if selves is None:
        return False
    if place and (words[place - 1] in _OWNERS or (words[place - 1] in _ARTICLES and words[place] in _NOUNS)):
        return False  # my order, a question
    if _before(words, place, _DENIED_BETWEEN) in _DENIALS:
        return False
    before = _before(words, place, _BETWEEN)
    if word in _FIRSTS and not accented and (not before or words[place - 1] in _HEARERS):
        return False  # te explico; but mi jefa pregunto, which lacks its accent
    return before not in selves


def _before(words: tuple[str, ...], place: int, between: frozenset[str]) -> str:
    """Return the word before a place and what may stand between, empty if there is none."""
    at = place - 1
    while at >= 0 and words[at] in between:
        at -= 1
    return words[at] if at >= 0 else ""


def own_statements(text: str, *, wishes: bool = False) -> str:
    """Return what the person states in a text, with blank lines in place of what is pasted or reported in it.

    It says who wants, is or asks for something: what begins a form, calls a person or is kept of somebody is read in
    nothing else. A request may be about the rest: read_request has its own view of that. With ``wishes`` a wish behind
    what is reported counts, too, which may be somebody else's: for what harms nobody if it is heard.
    """
    foreign = merged_spans((*pasted(text), *reported(text, wishes=wishes)))
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
    for part in list(re.finditer(r"(?:[^\n]|\n(?![^\S\n]*\n))+", text))[1:]:
        if len(part[0]) > _LONG_PART or part[0].count("\n") >= _MANY_LINES:
            yield part.span()
