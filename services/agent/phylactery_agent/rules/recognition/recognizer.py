"""Which intent a message resembles, and how sure that is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final, get_args

from phylactery_understanding.documents import read_yaml

from phylactery_agent.ports import Language
from phylactery_agent.rules.recognition import intents
from phylactery_agent.rules.recognition.bayes import NaiveBayes, Share
from phylactery_agent.rules.recognition.features import MAX_CHARS, features_of, words_of

SURE: Final = 0.9
"""The share from which an intent counts without asking."""
GROUP: Final = 0.7
"""The share from which what is chat, or beyond the agent, is answered as that: the reply to it does nothing."""
LIKELY: Final = 0.5
"""The share from which an intent is offered."""
TEMPERATURE: Final = 1.0
"""How far shares are evened out, so that of those above SURE 95 % are right: found on phrases that were kept apart."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """The intents that a message resembles, the nearest first."""

    shares: Sequence[Share]

    @property
    def intent(self) -> str:
        """Return the nearest intent, empty if the message resembles none."""
        return self.shares[0].name if self.shares else ""

    @property
    def share(self) -> float:
        """Return the share of the nearest intent."""
        return self.shares[0].share if self.shares else 0.0

    def share_of(self, names: Collection[str]) -> float:
        """Return the share of several intents together."""
        return sum(one.share for one in self.shares if one.name in names)

    def nearest(self, names: Collection[str], least: float) -> list[str]:
        """Return the intents among several that have at least a share, the nearest first."""
        return [one.name for one in self.shares if one.name in names and one.share >= least]


def needs_no_tool(found: Recognition, *, surely: bool) -> bool:
    """Return True if a message resembles talk that a model answers by itself.

    ``surely`` is for one that resembles an example of a tool too, and where tools are offered that no phrase is about.
    """
    talk, asks = found.share_of(intents.WITHOUT_TOOLS), found.share_of(intents.WITH_TOOLS)
    if surely:
        return talk >= SURE
    plain = found.intent in intents.WITHOUT_TOOLS and found.share >= _LEAST_TALK
    return (plain or talk >= GROUP) and talk > (1 - _MOST_ASKING) * (talk + asks)


_LEAST_TALK: Final = 0.4
"""The share from which one kind of talk alone is talk (docs/benchmarks.md)."""
_MOST_ASKING: Final = 0.75
"""The share of a request among talk and requests up to which a message is served without tools."""
_NONE: Final = Recognition(())


def recognize(text: str) -> Recognition:
    """Return what a message resembles; a long one, or one without a known word, resembles nothing."""
    if len(text) > MAX_CHARS:
        return _NONE
    return Recognition(tuple(model().shares(features_of(words_of(text)))))


@lru_cache(maxsize=1)
def model() -> NaiveBayes:
    """Return the classifier, which is built from the phrases once in a process."""
    known = ((name, list(features_of(words_of(phrase)))) for name, phrase in phrases())
    return NaiveBayes(known, temperature=TEMPERATURE)


def phrases() -> Iterator[tuple[str, str]]:
    """Yield every phrase of every language with its intent."""
    for language in get_args(Language):
        text = (files(__package__) / "phrases" / f"{language}.yaml").read_text(encoding="utf-8")
        of_language: Mapping[str, Sequence[str]] = read_yaml(text)
        for name, said in of_language.items():
            for phrase in said:
                yield name, phrase
