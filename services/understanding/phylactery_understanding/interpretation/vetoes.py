"""Words around an interpreted ask that prevent it: operators, questions, corrections, what is spared."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.calls.understanding import RECURRING
from phylactery_understanding.interpretation.model import ADDING, WRITING, InterpretedAsk, Mode, covers, is_covered
from phylactery_understanding.interpretation.narration import ASKED_OF, done_by_another, narrated, told_by_another
from phylactery_understanding.interpretation.scope import ENDING, JOINTS, KEEPING, SMALL_WORDS, Scope
from phylactery_understanding.language.text import STOPS, Kind, Token
from phylactery_understanding.language.vocabulary import word_map, word_set
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.retraction import WEAK
from phylactery_understanding.requests.model import Fault, Label, Request
from phylactery_understanding.requests.operators import set_aside

_ANYWHERE: Final = frozenset({"retraction", "irony", "announce"})
"""Operators that apply to the whole message."""
_FIRST: Final = 3
"""The number of tokens of a sentence in which a scenario may be introduced: imagine that, what if."""
_NEAR: Final = 6
"""The number of tokens after a negation in which its verb may occur: I don't want you to send it."""
_WHEN: Final = frozenset(
    [*word_map("weekdays"), *word_map("noon"), *(one for one, ahead in word_map("days_ahead").items() if ahead)]
)
"""Words for a day or an hour that is not now."""
_NEEDING: Final = word_set("needing")
_TELLING: Final = word_set("own_report")
_TOLD_TO: Final = word_set("told_to")
_AFTER: Final = 200
"""The number of tokens that may follow a word that only corrects."""
_SHORT: Final = 3
"""The maximum length of what a correction puts in the place of a value, in words."""
_MEANT: Final = frozenset({"idiom", "content"})
"""Faults of a grammar's ask that say what its words mean, whoever reads them."""
_TAKING: Final = frozenset({"retraction", "irony"})
_ABOUT: Final = frozenset({"condition", "past", "future", "report", "exclusion", "negation"})
"""Operators that occur in texts: ask her why it fell down yesterday."""


def veto_of(scope: Scope, ask: InterpretedAsk, request: Request) -> Fault | None:
    """Return why words cannot be this ask, apart from single operators, or None."""
    return (
        _asked_about(scope)  # what was mentioned before may be what is meant now
        or told_by_another(scope, ask)
        or done_by_another(scope)
        or narrated(scope, ask, request)
        or _corrected(scope)
        or _spared(scope, ask)
        or _set_aside(scope)
        or _untimed(scope, request)
        or _other_mode(ask, request)
    )


def vetoes_of(scope: Scope, ask: InterpretedAsk) -> Iterator[tuple[int, int, Fault]]:
    """Yield the operators of the grammar that prevent words from being this ask."""
    first = next(iter(_covered_by(ask, scope.tokens)), -1)
    for at, size, fault in scope.operators:
        if scope.covered[at]:
            if fault.kind in _TAKING and scope.begins(at) and at != first:
                yield at, size, fault
        elif _vetoes(scope, ask, at, fault):
            yield at, size, fault


def may_be_content(scope: Scope, at: int, size: int, fault: Fault) -> bool:
    """Return True if an operator follows words of a sentence: crashes when I rotate it; but not after a comma.

    What it is part of may then be what a text is about.
    """
    before = scope.tokens[at - 1] if at else None
    joined = before is None or before.kind in STOPS or before.text in JOINTS or scope.covered[at - 1]
    return fault.kind in _ABOUT and not joined and not any(scope.covered[at : at + size])


def _vetoes(scope: Scope, ask: InterpretedAsk, at: int, fault: Fault) -> bool:
    if fault.kind == "retraction" and not _NEEDING.isdisjoint(fault.words.split()):
        return _denies(scope, ask, at, fault.words)
    if fault.kind == "permission" and is_yes(scope.tokens, scope.newest):
        return False
    if fault.words in WEAK and _begins_anew(scope, ask, at, len(fault.words.split())):
        return False
    if fault.kind == "report" and fault.words in _TELLING and at and scope.tokens[at - 1].text in _TOLD_TO:
        return False
    if fault.kind in _ANYWHERE and not (fault.words in WEAK and _goes_on(scope, at)):
        return True
    if fault.kind == "hypothetical" and at - bisect_left(scope.sentences, scope.sentences[at]) < _FIRST:
        return True
    if fault.kind == "negation":
        return scope.is_near[at] and _denies(scope, ask, at, fault.words)
    if fault.kind == "exclusion":
        return scope.is_near[at]
    return fault.kind not in _ANYWHERE and scope.sentences[at] in scope.requesting


def _denies(scope: Scope, ask: InterpretedAsk, at: int, words: str) -> bool:
    """Return True if a negation may negate an ask; reasons that people give and ended needs do not."""
    lexicon, texts, size = scope.words, scope.texts, len(words.split())
    reason = max(lexicon.match("reason", texts, place) - (at - place) for place in range(max(at - 1, 0), at + 1))
    if reason > size:
        return False
    if _contrasts(scope, ask, at, size):
        return False
    effects = frozenset(ask.tool.lower().split("_"))
    verbs = {
        one for text in texts[at + size : at + size + _NEAR] for verb in lexicon.verb(text) for one in verb.meanings
    }
    if "forget" in verbs and effects & KEEPING and effects.isdisjoint(ENDING):
        return False  # don't let me forget it
    needless = any(one in _NEEDING for one in texts[max(at - 1, 0) : at + size + 2]) or bool(verbs & RECURRING)
    return effects.isdisjoint(ENDING) or not needless or not verbs.isdisjoint(effects - RECURRING)


def is_yes(tokens: Sequence[Token], newest: int) -> bool:
    """Return True if the newest of several messages begins with a yes."""
    first = next((one for one in tokens if one.start >= newest and one.kind is Kind.WORD), None)
    return bool(newest) and first is not None and read_answer(first.text) == "yes"


def _contrasts(scope: Scope, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a negation only contrasts one number with another that is not used: at 6, not 5."""
    before, behind = scope.tokens[at - 1 : at], scope.tokens[at + size : at + size + 1]
    numbers = all(one.kind is Kind.NUMBER for one in (*before, *behind)) and len(before) == len(behind) == 1
    return numbers and not any(is_covered(ask, one) for one in behind)


def _begins_anew(scope: Scope, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a request follows a word that only corrects the text before: actually ship it to her."""
    behind = scope.tokens[at + size : at + size + 1]
    follows = bool(behind) and behind[0].kind is Kind.WORD and bool(scope.words.verb(behind[0].text))
    return follows and scope.begins(at) and all(one.start > scope.tokens[at].start for one in ask.spans)


def _goes_on(scope: Scope, at: int) -> bool:
    """Return True if only the ask follows a word that corrects: sorry, wednesday."""
    behind = [one for one in range(at + 1, len(scope.tokens[: at + _AFTER])) if scope.tokens[one].kind not in STOPS]
    if at + _AFTER < len(scope.tokens) or not any(scope.covered[one] for one in behind):
        return False
    names = ("link", "please", "amend")
    return all(scope.covered[one] or scope.words.holds_any(names, scope.tokens[one].text) for one in behind)


def _covered_by(ask: InterpretedAsk, tokens: Sequence[Token]) -> Iterator[int]:
    """Return the positions of the tokens of an ask's content."""
    content = ask.content
    if content is not None:
        yield from (at for at, one in enumerate(tokens) if content.start < one.stop and one.start < content.stop)


def _asked_about(scope: Scope) -> Fault | None:
    """Return the question in a sentence, if there is one and it is not a polite request."""
    words = scope.words
    for number in scope.asking:
        said = [scope.tokens[at] for at in scope.places[number] if scope.tokens[at].kind is not Kind.BREAK]
        texts = [one.text for one in said]
        opening = next((at for at, one in enumerate(said) if one.text != "¿"), len(said))
        asks = opening < len(said) and bool(words.match("question", texts, opening))
        # A question word may open a request by itself: what for, can you tell me; but not what can you do.
        polite = any(words.match("polite", texts, at) for at in ([opening] if asks else range(len(texts))))
        beg = not asks and not ASKED_OF.isdisjoint(texts[opening : opening + 1])
        if (asks or "?" in texts) and not polite and not beg:
            return Fault("question", "?")
    return None


def _corrected(scope: Scope) -> Fault | None:
    """Return the words by which the person replaces a value of the ask: at 4, I mean at 6."""
    texts = scope.texts
    kinds: set[Kind] = set()
    for at in range(1, len(texts)):
        if scope.covered[at - 1]:
            kinds.add(scope.tokens[at - 1].kind)
        strong = scope.words.match("correction", texts, at)
        size = max(strong, scope.words.match("amend", texts, at))
        begins = scope.tokens[at - 1].kind in STOPS
        if not size or not begins or not kinds or scope.covered[at]:
            continue
        start = next((one for one in range(at + size, len(texts)) if scope.tokens[one].kind not in STOPS), len(texts))
        end = next((one for one in range(start, len(texts)) if scope.tokens[one].kind in STOPS), len(texts))
        said = [one for one in range(start, end) if not scope.words.holds_any(SMALL_WORDS, texts[one])]
        named = any(scope.tokens[one].kind in kinds - {Kind.WORD} for one in said if not scope.covered[one])
        other = strong and said and not any(scope.covered[one] for one in said) and len(said) <= _SHORT
        if named or other:
            return Fault("retraction", " ".join(texts[at : at + size]))
    return None


def _spared(scope: Scope, ask: InterpretedAsk) -> Fault | None:
    """Return the words by which a target stays as it is: leave c.txt be, deja c.txt en paz."""
    texts = scope.texts
    for slot in ask.slots:
        mine = [at for at, one in enumerate(scope.tokens) if covers(slot.span, one)]
        if not mine:
            continue
        at = mine[0] - 1
        while at >= 0 and scope.words.holds("article", texts[at]):
            at -= 1
        end = mine[-1] + 1
        ends = end >= len(texts) or scope.tokens[end].kind in STOPS or texts[end] in JOINTS
        if at >= 0 and scope.words.holds("leaving", texts[at]):
            if ends or scope.words.match("spared", texts, end):
                return Fault("exclusion", texts[at])
    return None


def _untimed(scope: Scope, request: Request) -> Fault | None:
    """Return a day or an hour that the grammar read in the request, and the ask nowhere: write dinner on Sunday."""
    if scope.newest:
        return None  # another one an hour earlier: the day is that of the message before
    covered = {id(one) for one, is_so in zip(scope.tokens, scope.covered, strict=True) if is_so}
    for one in request.asks:
        if covered.isdisjoint(map(id, one.tokens)):
            continue
        for token in one.of(Label.TIME):
            if (token.text in _WHEN or token.kind is Kind.NUMBER) and id(token) not in covered:
                return Fault("time", token.raw)
    return None


def _set_aside(scope: Scope) -> Fault | None:
    """Return how the beginning of a clause, or of the message, keeps what follows from being a request."""
    for at, one in enumerate(scope.tokens):
        parted = not at or scope.tokens[at - 1].kind in STOPS
        near = scope.sentences[at] in scope.requesting
        if parted and one.kind is Kind.WORD and not scope.covered[at] and (near or not at):
            fault = set_aside(scope.words, scope.tokens[at : at + _NEAR], opens=not at, joined=near)
            if fault is not None and (near or fault.kind == "irony"):
                return fault
    return None


def _other_mode(ask: InterpretedAsk, request: Request) -> Fault | None:
    """Return a fault if the grammar read a verb that only adds where the ask replaces or removes, or an idiom."""
    for one in request.asks:
        near = any(span.start < token.stop and token.start < span.stop for span in ask.spans for token in one.tokens)
        if near and one.fault is not None and one.fault.kind in _MEANT:
            return one.fault
        if ask.mode not in {Mode.REPLACE, Mode.REMOVE}:
            continue
        if near and one.verb.meanings & ADDING and not one.verb.meanings & WRITING:
            return Fault("mode", "add")
    return None
