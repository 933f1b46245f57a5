"""What a message resembles: the tools' own examples, or what people say to an assistant in conversation.

A message is compared as a bag of words, word pairs and letter triples, weighted by how rare they are among the examples
(cosine of tf-idf vectors), after case, accents, quoted text, file names, addresses and numbers are taken out. A message
with a word that no sentence of conversation has ("the contract") is none. It takes no model and no state, and the cost
is bounded by the length that is read.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

from phylactery_understanding.documents import read_yaml

from phylactery_agent.rules.spelling import unaccented
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import ToolRegistry

MAX_CHARS: Final = 300
"""The characters that are read of a message. Conversation is short, and a longer message is no conversation."""
THRESHOLD: Final = 0.3
"""The score from which a message resembles conversation, measured on CLINC150 (docs/benchmarks.md)."""
MARGIN: Final = 0.1
"""By how much it has to be nearer to conversation than to any tool."""
TALK: Final = ""
"""What conversation is called beside the names of tools."""
_VALUES: Final = (
    (re.compile(r"\"[^\"]*\"|«[^»]*»|“[^”]*”"), " quoted "),
    (re.compile(r"https?://\S+|\S+@\S+\.\S+"), " address "),
    (re.compile(r"\b[\w./-]*\w\.[a-z]{2,4}\b"), " file "),
    (re.compile(r"\bout_[a-z0-9]+\b"), " pointer "),
    (re.compile(r"\d+(?:[:.,/-]\d+)*"), " number "),
)
_WORD: Final = re.compile(r"[^\W_]+")
_OWN: Final = re.compile(
    r"\b(?:my|mine|mis?|mi[oa]s?|(?:do|did|am|was|have|had|can|could|should) i|tengo|tenia|vivo|llamo|naci|trabajo)\b"
)
"""Words of people who speak of themselves: what they ask may be in memory, which small talk does not search."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """The nearest examples of a message; scores are from 0 to 1."""

    talk: float
    tool: str
    """The tool with the nearest example, empty if none shares a word with the message."""
    tool_score: float

    @property
    def is_talk(self) -> bool:
        """Return True if the message resembles conversation, and no tool as much."""
        return self.talk >= THRESHOLD and self.talk >= self.tool_score + MARGIN

    @property
    def is_tool(self) -> bool:
        """Return True if the message resembles a tool's example."""
        return self.tool_score >= THRESHOLD


def likeness(text: str, tools: ToolRegistry) -> Likeness:
    """Return what a message resembles among the examples of the tools and of conversation."""
    index = _index(tuple((spec.name, text) for spec in tools.offered() for text in _told(spec)))
    return index.nearest(text)


def _told(spec: ToolSpec) -> Iterable[str]:
    """Return a tool's examples, or what it says of itself if it has none, as a tool of another server."""
    return [example.text for example in spec.examples] or spec.descriptions.values()


class _Index:
    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        said = [(name, _words(text)) for name, text in examples]
        self._talked = frozenset(word for name, words in said if name == TALK for word in words)
        counted = [(name, _features(words)) for name, words in said]
        seen = Counter(feature for _, features in counted for feature in features)
        self._idf = {feature: math.log((1 + len(counted)) / count) for feature, count in seen.items()}
        self._unseen = math.log(1 + len(counted))
        self._names = [name for name, _ in counted]
        self._postings: Mapping[str, list[tuple[int, float]]] = defaultdict(list)
        for place, (_, features) in enumerate(counted):
            for feature, weight in self._weighted(features).items():
                self._postings[feature].append((place, weight))

    def nearest(self, text: str) -> Likeness:
        """Return the nearest example of conversation and of a tool. A text longer than MAX_CHARS resembles nothing."""
        if len(text) > MAX_CHARS:
            return Likeness(0.0, "", 0.0)
        words = _words(text)
        strange = not self._talked.issuperset(words) or _OWN.search(" ".join(words)) is not None
        scores: dict[int, float] = defaultdict(float)
        for feature, weight in self._weighted(_features(words)).items():
            for place, other in self._postings.get(feature, ()):
                scores[place] += weight * other
        talk = max((score for place, score in scores.items() if self._names[place] == TALK), default=0.0)
        tools = [(score, self._names[place]) for place, score in scores.items() if self._names[place] != TALK]
        tool_score, tool = max(tools, default=(0.0, ""))
        return Likeness(0.0 if strange else talk, tool, tool_score)

    def _weighted(self, features: Counter[str]) -> dict[str, float]:
        weights = {feature: count * self._idf.get(feature, self._unseen) for feature, count in features.items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return {feature: weight / length for feature, weight in weights.items()}


@lru_cache(maxsize=8)
def _index(of_tools: tuple[tuple[str, str], ...]) -> _Index:
    return _Index([*of_tools, *((TALK, text) for text in _conversation())])


@lru_cache(maxsize=1)
def _conversation() -> Sequence[str]:
    raw = (files("phylactery_agent.rules") / "conversation.yaml").read_text(encoding="utf-8")
    return [text for texts in read_yaml(raw).values() for text in texts]


def _features(words: Sequence[str]) -> Counter[str]:
    found = Counter(words)
    found.update(f"{one} {other}" for one, other in pairwise(words))
    found.update(_triples(words))
    return found


def _words(text: str) -> list[str]:
    folded = unaccented(text.casefold())
    for values, name in _VALUES:
        folded = values.sub(name, folded)
    return _WORD.findall(folded)


def _triples(words: Iterable[str]) -> Iterable[str]:
    for word in words:
        padded = f"<{word}>"
        for place in range(len(padded) - 2):
            yield f"~{padded[place : place + 3]}"
