"""Multinomial naive Bayes over the features of phrases, with shares that mean what they say."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Final

_SMOOTHING: Final = 0.1
"""What every feature counts in every class, seen or not."""
_PRIOR: Final = 0.5
"""The exponent of a class's share of the phrases: how often authors wrote of it says little of how often it is said."""


@dataclass(frozen=True, slots=True)
class Share:
    """A class and its share, from 0 to 1."""

    name: str
    share: float


class NaiveBayes:
    """A classifier that is built once from labelled features and never changes."""

    def __init__(self, phrases: Iterable[tuple[str, Sequence[str]]], *, temperature: float) -> None:
        """Count the features of each class."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        sizes: Counter[str] = Counter()
        for name, features in phrases:
            counts[name].update(set(features))
            sizes[name] += 1
        self._names: Final = tuple(sorted(counts))
        self._temperature = temperature
        known = {feature for of_class in counts.values() for feature in of_class}
        room = _SMOOTHING * len(known)
        totals = [math.log(counts[name].total() + room) for name in self._names]
        least = math.log(_SMOOTHING)
        whole = sum(size**_PRIOR for size in sizes.values())
        self._prior = [math.log(sizes[name] ** _PRIOR / whole) for name in self._names]
        self._absent = [least - total for total in totals]
        gains: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, name in enumerate(self._names):
            for feature, count in counts[name].items():
                gains[intern(feature)].append((place, math.log(count + _SMOOTHING) - least))
        self._gains: Mapping[str, tuple[tuple[int, float], ...]] = {
            feature: tuple(one) for feature, one in gains.items()
        }

    def shares(self, features: Iterable[str]) -> list[Share]:
        """Return every class with its share, the largest first. Features that no phrase has are left out."""
        known = [self._gains[one] for one in set(features) if one in self._gains]
        if not known:
            return []
        scores = [prior + len(known) * absent for prior, absent in zip(self._prior, self._absent, strict=True)]
        for gains in known:
            for place, gain in gains:
                scores[place] += gain
        # features repeat one another, so that their number does not make a message surer in proportion
        scale = 1.0 / (self._temperature * math.sqrt(len(known)))
        top = max(scores)
        weights = [math.exp((score - top) * scale) for score in scores]
        whole = sum(weights)
        found = [Share(name, weight / whole) for name, weight in zip(self._names, weights, strict=True)]
        return sorted(found, key=lambda one: (-one.share, one.name))

    def knows(self, feature: str) -> bool:
        """Return True if some phrase has a feature."""
        return feature in self._gains
