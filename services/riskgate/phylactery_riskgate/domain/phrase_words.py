"""The words of a catalog's phrases, as the facts of a task hear them."""

from __future__ import annotations

from phylactery_riskgate.domain.catalog_facts import ANY
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.languages import SMALL
from phylactery_riskgate.domain.tasks.phrases import stem


def written(phrase: str) -> tuple[str, ...]:
    """Answers a phrase's words, folded, without gaps."""
    return tuple(folding.atoms_of(folding.fold(phrase)))


def form(phrase: str) -> tuple[str, ...]:
    """Answers a phrase without endings and with its gaps: phrases of one form are heard in the same requests."""
    return tuple(part for word in phrase.split() for part in ((word,) if word == ANY else map(stem, written(word))))


def heard(phrase: str) -> tuple[str, ...]:
    """Answers what is left of a phrase's words for telling whether somebody asks: neither small words nor endings."""
    return tuple(stem(word) for word in written(phrase) if word not in SMALL)
