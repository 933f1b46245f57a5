"""Messages that are served as one turn and are no one request: each is read on its own.

Together they may not be read as something else. What one asks for is then done, and another that stands by itself is
answered beside it, or named as not understood. Whether one stands by itself is judged by the library that RiskGate also
uses, and closely: a word, a time or a name may be a part of the request before it, and words that refer to it, restrict
it or take it back are about it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

from phylactery_understanding.language.text import Kind, tokenize
from phylactery_understanding.replies.amendment import may_amend
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.behind import settle
from phylactery_understanding.replies.talk import small_talk_in
from phylactery_understanding.requests.parser import parse

from phylactery_agent.ports import LikelyMeaning
from phylactery_agent.rules.intents import parse_reply, talk_kind
from phylactery_agent.rules.plain_replies import asks_time
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.references import may_refer
from phylactery_agent.tools.registry import ToolRegistry

_LONGEST: Final = 4_000
"""Maximum length of all messages together, in characters."""
_MOST: Final = 8
"""Maximum number of messages."""
_WORDS: Final = 3
"""Words of a question that is more than an echo of what was said before it: why? should I?"""


def read_apart(text: str, starts: Sequence[int], tools: ToolRegistry) -> LikelyMeaning | None:
    """Return the request of the messages that ask for something, and the others; None if they are to be read as one.

    ``starts`` are the offsets at which further messages begin, each behind a line break.
    """
    if not starts or len(starts) >= _MOST or len(text) > _LONGEST:
        return None
    asides = small_talk_in(text, starts)
    spans = [span for span in itertools.pairwise([0, *starts, len(text)]) if span not in asides]
    messages = [text[slice(*span)].strip("\n") for span in spans]
    read = [_calls(one, tools) for one in messages]
    left = tuple(one for one, calls in zip(messages, read, strict=True) if not calls)
    together = _calls(text, tools)
    if not any(read) or not left or (together and together != list(itertools.chain(*read))):
        return None
    settled = settle(parse(text), starts)
    if settled.behind or settled.changed or not all(map(_stands_alone, left)):
        return None
    return LikelyMeaning("\n".join(itertools.compress(messages, read)), left=left)


def _calls(text: str, tools: ToolRegistry) -> list[tuple[str, dict[str, Any]]]:
    return [(found[0].tool, found[0].args) for found in read_request(text, tools).clauses]


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
