"""Sentences that tell something rather than request it: somebody said it, somebody else does it, it happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.calls.proposal import names_of
from phylactery_understanding.interpretation.model import InterpretedAsk, Span, covers
from phylactery_understanding.interpretation.scope import (
    JOINTS,
    RELATIVE,
    SENTENCE_ENDS,
    SMALL_WORDS,
    Scope,
    ended_needs,
    ends_something,
)
from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import STOPS, Kind
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.replies.retraction import WEAK
from phylactery_understanding.requests.model import Fault, Label, Request

_SPEAKER: Final = 5
"""The number of tokens in which a line may name its speaker."""
ASKED_OF: Final = word_set("asked_of")
_POINTING: Final = word_set("demonstratives") | word_set("pointing")
_TOWARDS: Final = word_set("towards")
_PLEASE: Final = word_set("please_at_end")
_PART_ENDS: Final = frozenset(",:–—-()") | SENTENCE_ENDS
_ASKING: Final = ("wish", "unneeded", "polite")
_TELLING_ENDINGS: Final = ("é", "ó", "aron", "ieron", "ímos", "aste", "iste", "aba", "aban")
"""Endings of Spanish verb forms that tell something, and never request it."""
_AHEAD: Final = "ré"
_ANYONE: Final = word_set("anyone")
_TEXTS: Final = ("title", "subject", "comment", "reason", "text", "body", "message", "description", "topic")
"""Names of arguments for texts, which a form has, too."""


def told_by_another(scope: Scope, ask: InterpretedAsk) -> Fault | None:
    """Return a sentence that states its speaker: Bob (manager): send it; but not a field of a form: Repo: website."""
    for number in scope.mine:
        places = [at for at in scope.places[number] if scope.tokens[at].kind is not Kind.BREAK]
        head = [scope.tokens[at] for at in places[:_SPEAKER]]
        speaks = head and head[0].kind is Kind.WORD and head[0].raw[:1].isupper()
        if speaks and any(one.text == ":" for one in head):
            said = [one.argument for one in ask.slots if any(covers(one.span, scope.tokens[at]) for at in places)]
            if not any(head[0].stem in names_of(name) for name in (*said, *_TEXTS)):
                return Fault("report", ":")
    return None


def done_by_another(scope: Scope) -> Fault | None:
    """Return words by which something else does it: a robot that writes to a.txt, esa foto me recuerda a ella."""
    tokens, words = scope.tokens, scope.words
    begun, end, last = -1, 0, -1
    for at, one in enumerate(tokens):
        begun = at if scope.begins(at) else begun
        if at >= end:
            end = next((later for later in range(at, len(tokens)) if tokens[later].kind in STOPS), len(tokens))
            last = max((later for later in range(at, end) if scope.covered[later]), default=-1)
        if at >= last or scope.sentences[at] not in scope.requesting:
            continue
        if one.kind is not Kind.WORD or not words.verb(one.text) or at < 2:
            continue
        before, first = tokens[at - 1], tokens[begun]
        noun = at > 2 and words.holds("article", tokens[at - 3].text) and not words.verb(tokens[at - 2].text)
        noun = noun and not scope.covered[at - 2]  # the ask's own time: at noon, that I call her
        if before.text in RELATIVE and noun:
            return Fault("report", one.raw)
        if first.text in _POINTING and begun < at - 1 and before.text in ASKED_OF and not one.text.endswith("s"):
            return Fault("report", one.raw)
    return None


def narrated(scope: Scope, ask: InterpretedAsk, request: Request) -> Fault | None:
    """Return a word of the target's sentences if nothing in them asks: I spent all morning on report.txt.

    A sentence asks if the grammar found a request in it; if it has a request's verb, a wish about the target, or a goal
    in a part of its own; or if it is made of names and small words alone: VEL-12 now at 9.95.
    """
    verbs = {id(one.tokens[one.labels.index(Label.VERB)]) for one in request.asks}
    slots = [slot.span for slot in ask.slots]
    spans = [*slots, *ask.times] or list(ask.spans)
    told: Fault | None = None
    needless = ended_needs(request) if ends_something(ask) else set[int]()
    for number in scope.requesting:
        places = scope.places[number]
        parts = list(_parts_within(scope, places))
        heard = any(id(scope.tokens[at]) in verbs for at in places)
        ended = not needless.isdisjoint(places)
        word = next((scope.tokens[at].text for at in places if _says_more(scope, at)), None)
        if word is None or heard or ended or any(_asks_of_itself(scope, part, spans, slots) for part in parts):
            return None
        told = told or Fault("report", word)
    return told


def _says_more(scope: Scope, at: int) -> bool:
    """Return True if a word is neither a quoted one nor a small one."""
    token = scope.tokens[at]
    if scope.covered[at] or token.kind is not Kind.WORD or token.text in WEAK:
        return False
    return tells(scope, at) or not scope.words.holds_any((*SMALL_WORDS, "goal", "link"), token.text)


def _parts_within(scope: Scope, places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the parts of a sentence between its pauses and joints."""
    part: list[int] = []
    for at in places:
        if (
            scope.tokens[at].text in _PART_ENDS
            or scope.tokens[at].kind is Kind.BREAK
            or scope.tokens[at].text in JOINTS
        ):
            yield part
            part = []
        else:
            part.append(at)
    yield part


def _asks_of_itself(scope: Scope, part: Sequence[int], spans: Sequence[Span], slots: Sequence[Span]) -> bool:
    """Return True if a part of a sentence asks: by its verb, by a wish about the target, or by naming a goal."""
    words, texts = scope.words, [scope.tokens[at].text for at in part]
    first = next((at for at, one in enumerate(texts) if not _is_lead(words, one)), None)
    if first is None:
        return False
    if _requests(scope, part[first]) or any(verb.joined for text in texts for verb in words.verb(text)):
        return True
    if words.match("polite", texts, first) > 1 and texts[first] not in _ANYONE:
        return True
    if first and texts[first - 1] in _PLEASE and not tells(scope, part[first]):
        return True  # please initiate the engine
    told = next((at for at, one in enumerate(part) if tells(scope, one)), len(part))
    mine = any(covers(span, scope.tokens[at]) for span in spans for at in part)
    if mine and any(
        words.match(name, texts, at) > (at == told) for name in _ASKING for at in range(len(texts[: told + 1]))
    ):
        return True
    placed = words.holds("goal", texts[0])  # in the one to the bank change the amount
    if any(
        _requests(scope, part[at])
        and (placed or words.verb(texts[at])[0].language == "es")
        and not _is_noun(words, texts[at - 1])
        for at in range(first + 1, told)
    ):
        return True  # en el segundo añade que está reservado
    return texts[-1] in _PLEASE or (told == len(part) and _aims(scope, part, slots))


def _aims(scope: Scope, part: Sequence[int], slots: Sequence[Span]) -> bool:
    """Return True if a part says where something goes, with one unknown word at most: chuck milk onto a.txt."""
    texts = [scope.tokens[at].text for at in part]
    mine = [any(covers(span, scope.tokens[at]) for span in slots) for at in part]
    led = any(text in _TOWARDS and any(mine[at + 1 : at + 3]) for at, text in enumerate(texts))
    more = [at for at, one in enumerate(part) if _says_more(scope, one)]
    if texts[0] in _TOWARDS and any(mine) and len(more) <= 1:
        return True  # to the log of trainings
    behind = next((at for at in part[1:] if not scope.words.holds("article", scope.tokens[at].text)), None)
    return led and (not more or (more == [0] and behind is not None and scope.covered[behind]))


def _is_noun(words: Lexicon, before: str) -> bool:
    """Return True if the word after one is a noun rather than a request: la cuenta, que anote."""
    return (words.holds("article", before) and not words.holds("please", before)) or before in RELATIVE


def _is_lead(words: Lexicon, text: str) -> bool:
    return text in ASKED_OF | WEAK or words.holds_any(("please", "article"), text)


def _requests(scope: Scope, at: int) -> bool:
    """Return True if a word is a form of a verb by which people request: neither a past one nor an infinitive."""
    token = scope.tokens[at]
    plain = token.kind is Kind.WORD and not token.text.endswith(("ing", "ar", "er", "ir"))
    small = scope.words.holds_any(("stop", "article", "goal"), token.text)
    return plain and not small and bool(scope.words.verb(token.text)) and not tells(scope, at)


def tells(scope: Scope, at: int) -> bool:
    """Return True if a word is a verb form that only tells something: noticed, looks, tiene, quedó."""
    token, words = scope.tokens[at], scope.words
    if token.kind is not Kind.WORD:
        return False
    if words.match("telling", [token.text], 0) or token.raw in words.told:
        return True
    if token.raw.endswith(_TELLING_ENDINGS) and not token.raw.endswith(_AHEAD) and len(token.raw) > 2:
        return not words.verb(token.text) or token.raw[-1] in "éó"
    before = scope.tokens[at - 1].text if at else ""
    led = words.holds("article", before) and not words.holds("telling", before)
    return token.text.endswith("ed") and not led and token.text in words.done
