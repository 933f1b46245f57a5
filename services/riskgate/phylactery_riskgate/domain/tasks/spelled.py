"""What the user spelled out for a call, and whether the call has any of it.

Who asks for an event 'Lunch' on the 19th and gets one that has no value of theirs, with guests out of a text, gets
another event than the one they asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_riskgate.domain.tasks.asking import Asked
from phylactery_riskgate.domain.tasks.folding import atoms
from phylactery_riskgate.domain.tasks.index import TaskIndex
from phylactery_riskgate.domain.tasks.languages import EXTENSIONS
from phylactery_riskgate.domain.tasks.literals import dates_in_token, numbers_in
from phylactery_riskgate.domain.tasks.naming import telling
from phylactery_riskgate.domain.tasks.words import is_value

_MAX_LITERALS: Final = 200


def is_another(index: TaskIndex, ask: Asked) -> bool:
    """Says whether each time the user asked for this they spelled something out that no reading call was for.

    It tells against a call that has nothing at all of what the user named.
    """
    if not ask.starts:
        return False
    ends = (*ask.starts[1:], len(index.words.tokens))
    return all(
        any(not _is_used(index, literal) for literal in _literals(index, start, end))
        for start, end in zip(ask.starts, ends, strict=True)
    )


def _literals(index: TaskIndex, start: int, end: int) -> Iterator[Sequence[str]]:
    words = index.words
    count = 0
    for first, stop in words.quotes:
        if start <= first < end and count < _MAX_LITERALS:
            count += 1
            yield words.tokens[first:stop]
    for place in range(start, min(end, start + _MAX_LITERALS)):
        token = words.tokens[place]
        if is_value(token) or any(dates_in_token(token)) or not words.money.isdisjoint(numbers_in(token)):
            yield (token,)


def _is_used(index: TaskIndex, literal: Sequence[str]) -> bool:
    """Says whether a literal told what to read, or names something that was read."""
    norm = " ".join(literal)
    forms = {norm, *numbers_in(norm)}
    tells = {atom for atom in telling(atom for token in literal for atom in atoms(token)) if atom not in EXTENSIONS}
    if not forms.isdisjoint(index.read_with) or (tells and any(tells <= said for said in index.read_for)):
        return True
    return any(
        value.kind[0] != "f"
        for result in index.results
        if not result.made
        for form in forms
        for value in result.by_norm.get(form, ())
    )
