"""Messages that are served as one turn and are no one request: each is read on its own.

Together they may not be read as something else. What one asks for is then done, and another that stands by itself is
answered beside it, or named as not understood. Whether one stands by itself is judged by the library that RiskGate also
uses, and closely: a word, a time or a name may be a part of the request before it, and words that refer to it, restrict
it or take it back are about it. What a person tells of themselves is for memory, and divides one message as well: an
order beside it must not be lost because of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import or_
from typing import Any, Final

from phylactery_understanding.language.text import Kind, tokenize
from phylactery_understanding.language.times import times_of
from phylactery_understanding.replies.amendment import may_amend
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.behind import settle
from phylactery_understanding.replies.talk import small_talk_in
from phylactery_understanding.requests.parser import parse

from phylactery_agent.ports import LikelyMeaning
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.intents import parse_reply, talk_kind
from phylactery_agent.rules.plain_replies import asks_time
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.references import may_refer
from phylactery_agent.rules.spelling import unaccented
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import SEND_EMAIL, WRITE_FILE

_LONGEST: Final = 4_000
"""Maximum length of all messages together, in characters."""
_MOST: Final = 8
"""Maximum number of messages."""
_WORDS: Final = 3
"""Words of a question that is more than an echo of what was said before it: why? should I?"""
_SENTENCE_ENDS: Final = frozenset(".!\n")
_OF_ONESELF: Final = expression(
    r"(?i)^(?:i\s+(?:live|work|study|like|love|hate|speak|play|own|drive|moved|was\s+born)\s+\S"
    r"|i(?:['’]m|\s+am)\s+(?:from\s|[0-9]|(?:allergic|vegetarian|vegan|diabetic|married|single|divorced|widowed|retired"
    r"|pregnant)\b)"
    r"|my\s+[\pL ]{2,30}(?:['’]s|\s+(?:is|are|has|have|lives?|works?))\s+\S"
    r"|(?:yo\s+)?(?:vivo|trabajo|estudio|naci|soy|hablo|me\s+(?:llamo|gustan?|encantan?|mude))\s+\S"
    r"|mis?\s+[\pL ]{2,30}\s+(?:es|son|se\s+llaman?|tienen?|viven?|trabajan?)\s+\S)"
)
"""How people begin to tell of themselves. What they want, need or prefer may be about the request beside it, and so may
what they are at the moment: I'm waiting for Ana to agree."""
_DENIES: Final = expression(r"(?i)\b(?:not?|never|nunca|jamas)\b|n['’]t\b")
_TAKE_WORDS: Final = frozenset({WRITE_FILE.name, SEND_EMAIL.name})
"""Tools whose content may be in the words behind the request, where it has none in quotes."""


def read_apart(text: str, starts: Sequence[int], tools: ToolRegistry) -> LikelyMeaning | None:
    """Return the request of the messages that ask for something, and the others; None if they are to be read as one.

    ``starts`` are the offsets at which further messages begin, each behind a line break. Without any, the sentences of
    a message are read so, if what none asks for in them is what the person tells of themselves.
    """
    told_only = not starts
    starts = starts or _sentence_starts(text)
    if not starts or len(starts) >= _MOST or len(text) > _LONGEST:
        return None
    asides = small_talk_in(text, starts)
    spans = [span for span in itertools.pairwise([0, *starts, len(text)]) if span not in asides]
    messages = [text[slice(*span)].strip("\n") for span in spans]
    read = [_calls(one, tools) for one in messages]
    if not any(read):
        told = [tells_of_oneself(one) for one in messages]
        answered = [asks_time(one) or talk_kind(one) is not None for one in messages]
        stand = any(told) and any(answered) and all(map(or_, told, answered))
        return LikelyMeaning(left=tuple(messages)) if stand else None
    left = tuple(one for one, calls in zip(messages, read, strict=True) if not calls)
    together = _calls(text, tools)
    if not left or (together and together != list(itertools.chain(*read))):
        return None
    settled = settle(parse(text), starts)
    if (
        settled.behind
        or settled.changed
        or not all(tells_of_oneself(one) or (not told_only and _stands_alone(one)) for one in left)
    ):
        return None
    for before, calls, behind in zip(messages, read, messages[1:], strict=False):
        takes_words = any(tool in _TAKE_WORDS for tool, _ in calls) and not _quotes(before)
        if takes_words and tells_of_oneself(
            behind
        ):  # it may be what is to be written: write my address, I live in Oslo
            return None
    return LikelyMeaning("\n".join(itertools.compress(messages, read)), left=left)


def _calls(text: str, tools: ToolRegistry) -> list[tuple[str, dict[str, Any]]]:
    return [(found[0].tool, found[0].args) for found in read_request(text, tools).clauses]


def tells_of_oneself(text: str) -> bool:
    """Return True if a text plainly tells of the person, and of nothing that a request beside it could be about."""
    said = parse(text)
    plain = unaccented(text.strip())
    if said.asks or _OF_ONESELF.match(plain) is None or next(_DENIES.finditer(plain), None) is not None or "?" in text:
        return False
    if may_amend(said) or may_refer(text, said) or times_of(text).places:
        return False
    return not any(one.kind in {Kind.LITERAL, Kind.QUOTE} for one in tokenize(text))


def _sentence_starts(text: str) -> list[int]:
    """Return where sentences but the first begin: behind a line break, or an end mark outside of quotes and names."""
    tokens = tokenize(text)
    return [
        following.start
        for ending, following in itertools.pairwise(tokens)
        if ending.kind in {Kind.BREAK, Kind.MARK}
        and ending.raw in _SENTENCE_ENDS
        and text[following.start - 1].isspace()
    ]


def _quotes(text: str) -> bool:
    return any(one.kind is Kind.QUOTE for one in tokenize(text))


def _stands_alone(text: str) -> bool:
    """Return True if a message says something by itself, and nothing about one beside it."""
    if parse_reply(text) is not None or read_answer(text) != "unclear":
        return False
    if asks_time(text):
        return True
    said = parse(text)
    if said.fault is not None or any(ask.fault is not None for ask in said.asks):
        return False
    if may_amend(said) or may_refer(text, said):
        return False
    if talk_kind(text) is not None or said.asks:
        return True
    tokens = tokenize(text)
    names = any(one.kind in {Kind.LITERAL, Kind.QUOTE} for one in tokens)
    words = sum(one.kind is Kind.WORD for one in tokens)
    return text.rstrip().endswith("?") and not names and words >= _WORDS
