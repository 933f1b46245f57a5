"""What the words behind a request, in the same message, take back or change of it: … to b.txt. Forget it.

The readers of later messages are applied to every sentence, line and joined message behind a request, as if it had been
sent after the words before it: a message that is joined to another by a channel must not mean more than it did alone.
Nothing here makes a request of words that were none, except a change that amends one as a later message would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon, lexicon
from phylactery_understanding.language.text import STOPS, Kind, Token, tokenize, written
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.replies.amendment import LONGEST_EARLIER, Amendment, amended, has_marker, may_correct
from phylactery_understanding.replies.retraction import Forbidden, read_retraction, retraction_of
from phylactery_understanding.replies.stops import read_stop
from phylactery_understanding.requests.model import Label, Request
from phylactery_understanding.requests.parser import parse

_ENDS: Final = frozenset({".", "!", "?", "…", "...", ";"})
_PAUSES: Final = frozenset(",-–—(")
_CUTS: Final = word_set("cuts")
_LONGEST: Final = 24
"""The number of tokens of words that may take something back."""
_MOST: Final = 40
"""The number of places of a message that are looked at; behind more, nothing is understood."""
_LAST: Final = 3
"""The number of last sentences of a dictated text that may be meant of it."""
_SHORT: Final = 4
"""The number of words of a dictated sentence that may change what is dictated."""
_SHORTER: Final = 2
"""The number of words that may follow words that take something back: wrong chat, sorry."""
_SENTENCES: Final = re.compile(r"[.!?…;](?=\s)|\n|\s[-–—](?=\s)")
_LEAVING: Final = word_set("leaving_verbs")
_LEFT: Final = word_set("left_alone")
_OTHERS: Final = word_set("other_things")
_LEADS: Final = word_set("changing_leads")
_ENDING: Final = frozenset({"cancel", "forget", "stop"})
_REMOVING: Final = frozenset({"delete", "remove"})
_CHANGING: Final = frozenset({"change", "replace"})
_PLACING: Final = frozenset({"put"})
_SHOWING: Final = frozenset({"read", "tell", "ask"})
_FIRST: Final = word_set("shown_first")
_TELLING: Final = 4
"""The number of letters from which a word names something."""
_SMALL: Final = ("article", "link", "goal", "please", "greet", "phatic", "stop", "polite")


@dataclass(frozen=True, slots=True)
class Behind:
    """What words behind a place take back or change of the requests before it; ``place`` is an offset in the text.

    ``everything`` are all of them, ``targets`` those whose call has one of these values, ``forbidden`` those of an
    effect. ``doubts`` says that the words change something and not surely what: then nothing before is clear.
    """

    place: int
    everything: bool = False
    doubts: bool = False
    targets: frozenset[str] = frozenset()
    doubted: frozenset[str] = frozenset()
    forbidden: tuple[Forbidden, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """A message with what it changes of itself: the request that counts, and what is taken back of it.

    ``changed`` says that the request is not as the words have it.
    """

    request: Request
    behind: tuple[Behind, ...] = ()
    changed: bool = False

    @property
    def ends(self) -> bool:
        """Return True if the message ends with words that take back or change something."""
        last = max((ask.tokens[0].start for ask in self.request.asks if ask.tokens), default=0)
        return self.changed or any(one.place >= last for one in self.behind)


def settle(request: Request, starts: Sequence[int] = ()) -> Settled:
    """Return what a message comes to once the words behind its requests have acted on them.

    ``starts`` are the offsets at which further messages begin.
    """
    text = request.text
    if not request.asks:
        return Settled(request)
    found = [Behind(start, doubts=True) for start in _inside_content(request, starts)]
    for number, (start, stop, surely, dictated) in enumerate(_parts(request, starts)):
        if number >= _MOST:
            return Settled(request, (*found, Behind(len(text), doubts=True)))
        later = text[start:stop]
        said = parse(later)
        change = _change(text[:start].rstrip(), said) if surely else None
        if change is not None and text[stop:].strip(" \t\n.,;!…") == "":
            return Settled(change.request, tuple(found), changed=True)
        one: Behind | None = Behind(start, doubts=True)
        if change is None:
            one = _read(request, said, start, surely=surely, dictated=dictated)
        if one is not None and one != Behind(start):
            found.append(one)
    return Settled(request, tuple(found))


def takes_back(text: str, starts: Sequence[int] = ()) -> bool:
    """Return True if a sentence, line or joined message behind the first takes back or laughs off what was said.

    What was said need not be a request: I live in Lima – just kidding. ``starts`` are as in settle().
    """
    breaks = {found.end() for found in _SENTENCES.finditer(text)} | set(starts)
    places = [*sorted(one for one in breaks if text[:one].strip()), len(text)]
    return len(places) > _MOST or any(_laughs_off(text[one:other]) for one, other in pairwise(places))


def _laughs_off(later: str) -> bool:
    found = read_retraction(later)
    if found is not None and (found.everything or any("remember" in one.effects for one in found.forbidden)):
        return True
    if read_stop(later) not in (None, "denied"):
        return True
    words, said = lexicon(), [one.text for one in tokenize(later) if one.kind not in STOPS]
    if not 0 < len(said) <= _LONGEST:
        return False
    begins = words.match("retraction", said, 0)
    return (begins > 0 and len(said) - begins <= _SHORTER) or any(
        words.match("irony", said, place) for place in range(len(said))
    )


def _inside_content(request: Request, starts: Sequence[int]) -> Iterator[int]:
    """Yield where a further message begins in the middle of what a request says: the content ends there, or does not.

    Write to a.txt: hello – and then, as a message of its own, buy milk.
    """
    for ask in request.asks:
        said = [one for one, label in zip(ask.tokens, ask.labels, strict=True) if label is Label.CONTENT]
        yield from (start for start in starts if said and said[0].start < start <= said[-1].start)


def _change(earlier: str, later: Request) -> Amendment | None:
    """Return the request that words make of those before them, if they replace a value of it.

    Only words that may do so have those before them parsed: they are as long as the message, for each of its sentences.
    """
    change = amended(parse(earlier), later) if len(earlier) <= LONGEST_EARLIER and has_marker(later) else None
    return change if change is not None and change.corrects else None


def _parts(request: Request, starts: Sequence[int]) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield where words behind the first request begin and end, whether they surely stand alone, and are dictated.

    What is quoted is content, except where a further message begins. So is what is dictated behind a colon, but its
    last sentences may take it back: write to a.txt: hello. Forget it.
    """
    tokens = request.tokens
    verbatim = [ask for ask in request.asks if ask.verbatim]
    quoted = {id(one) for ask in verbatim for one in ask.of(Label.QUOTE)}
    dictated = {id(one) for ask in verbatim for one in ask.of(Label.CONTENT)}
    sentences = [one.start for one, before in zip(tokens[1:], tokens, strict=False) if _ends(before)]
    tail = sentences[-_LAST] if len(sentences) >= _LAST else 0
    first = request.asks[0].tokens[0].start if request.asks[0].tokens else 0
    waiting = list(starts)
    for place, token in enumerate(tokens[1:], 1):
        message = bool(waiting) and token.start >= waiting[0] and token.kind is not Kind.BREAK
        if message:
            waiting.pop(0)
        before = tokens[place - 1]
        ends, said = _ends(before), id(token) in dictated
        surely = message or (ends and not said)
        strange = before.kind is Kind.MARK and not before.text.isascii()
        pauses = strange or before.text in _PAUSES or before.text in _CUTS
        softly = ends and token.start >= tail if said else pauses
        skipped = token.kind is Kind.BREAK or token.text in _ENDS or (id(token) in quoted and not message)
        if token.start <= first or skipped or not (surely or softly):
            continue
        near = range(place, min(place + _LONGEST + 1, len(tokens)))  # no further: a text may be one long sentence
        last = next((at for at in near if _ends(tokens[at])), near.stop)
        if last - place <= _LONGEST:
            yield token.start, tokens[last - 1].stop, surely, said and not message


def _ends(token: Token) -> bool:
    return token.text in _ENDS or token.kind is Kind.BREAK


def _read(request: Request, later: Request, start: int, *, surely: bool, dictated: bool) -> Behind | None:
    """Return what words take back of a message before their place."""
    text, told = later.text, retraction_of(later)
    pointed = _pointed(request, later, start)
    if pointed is not None:
        doubts = pointed.everything or pointed.doubts
        return pointed if surely else Behind(start, doubts=doubts, doubted=pointed.targets | pointed.doubted)
    changes = may_correct(later) or _changes(request, later, start, surely=surely)
    if dictated and len(text.split()) > _SHORT:  # a longer sentence is as likely content
        changes = False
    if told is None:
        return Behind(start, doubts=True) if changes else None
    # don't change anything else: of what was asked for, nothing is forbidden
    others = any(one.text in _OTHERS for one in later.tokens)
    forbidden = tuple(one for one in told.forbidden if one.targets or (surely and not others))
    if not surely or changes:
        return Behind(start, doubts=told.everything or changes, forbidden=() if changes else forbidden)
    return Behind(start, everything=told.everything, forbidden=forbidden)


def _changes(request: Request, later: Request, start: int, *, surely: bool) -> bool:
    """Return True if words may change what was asked for: change it to …, cambia el texto a …, better put it in …."""
    said = [one for one in later.tokens if one.kind not in STOPS]
    texts, words = [one.text for one in said], later.lexicon
    sizes = [words.match("amend", texts, at) for at in range(len(texts))]
    if any(" ".join(texts).startswith(f"{lead} ") for lead in _LEADS):
        return True
    if said and (sizes[0] or any(size and at + size == len(texts) for at, size in enumerate(sizes))):
        return True
    if not later.asks:
        return False
    ask = later.asks[0]
    before = {written(one.raw.strip()) for one in request.tokens if one.start < start and _is_said(one)}
    names = {written(one.raw.strip()) for one in ask.tokens if _is_name(one)}
    if not ask.verb.meanings.isdisjoint(_PLACING):
        return surely and ask.refers and bool(names) and any(map(_is_name, request.asks[0].tokens))
    if not (names or ask.verb.meanings.isdisjoint(_SHOWING) or _FIRST.isdisjoint(texts)):
        return True  # read it to me first, let Ana see it first
    changing = not ask.verb.meanings.isdisjoint(_CHANGING)
    said_before = any(written(one.raw.strip()) in before for one in ask.tokens if _is_said(one))
    return changing and (ask.refers or not names or said_before)


def _is_said(token: Token) -> bool:
    """Return True if a token names something: a name, or a word that is no small one."""
    return _is_name(token) or (token.kind is Kind.WORD and len(token.text) >= _TELLING)


def _pointed(request: Request, later: Request, start: int) -> Behind | None:
    """Return what words leave out by its name, or by pointing at it: leave b.txt alone, el b.txt déjalo, cancélalo.

    They are nothing but a word that leaves out, names that the message has before, and small words.
    """
    words, said = later.lexicon, [one for one in later.tokens if one.kind not in STOPS]
    named = {written(one.raw.strip()) for one in request.tokens if one.start < start and _is_name(one)}
    targets = {written(one.raw.strip()) for one in said if _is_name(one)}
    if not targets <= named:
        return None
    leaving = removing = False
    texts = [one.text for one in said]
    at = 0
    while at < len(said):
        size, leaves, removes = _leaving_at(words, texts, at)
        if size:
            leaving, removing, at = leaving or leaves, removing or removes, at + size
        elif _is_name(said[at]) or words.holds_any(_SMALL, texts[at]) or texts[at] in _LEFT:
            at += 1
        else:
            return None
    if not (leaving or removing):
        return None
    if targets:
        return Behind(start, targets=frozenset(targets)) if leaving else Behind(start, doubted=frozenset(targets))
    return Behind(start, everything=leaving, doubts=not leaving)


def _leaving_at(words: Lexicon, texts: Sequence[str], at: int) -> tuple[int, bool, bool]:
    """Return the size of words that leave something out, whether they do, and whether they may also remove it."""
    size = words.longest(("retraction", "negation", "exclusion"), texts, at)
    if size or texts[at] in _LEAVING:
        return max(size, 1), True, False
    meanings = {meaning for verb in words.verb(texts[at]) for meaning in verb.meanings}
    if not meanings:
        return 0, False, False
    removes = not meanings.isdisjoint(_REMOVING)
    return int(removes or meanings <= _ENDING), not removes and meanings <= _ENDING, removes


def _is_name(token: Token) -> bool:
    return token.kind in {Kind.LITERAL, Kind.QUOTE} or (token.kind is Kind.NUMBER and len(token.text) > 1)
