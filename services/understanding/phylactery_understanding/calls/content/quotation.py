"""Quoted content: it must be present letter for letter."""

from __future__ import annotations

from collections.abc import Sequence

from phylactery_understanding.calls.content.model import MASK, Fidelity, is_plain
from phylactery_understanding.language.text import STEM, STOPS, Kind, Token, tokenize
from phylactery_understanding.requests.model import Ask, Fault


def quoted_content(quotes: Sequence[Token], values: Sequence[str], ask: Ask, places: frozenset[int]) -> Fidelity:
    """Compare quoted content: it must be present verbatim, with nothing added."""
    wanted = [
        [
            f"«{one.text}»" if one.kind is Kind.QUOTE and quote.raw[one.start] == "«" else one.text
            for one in tokenize(quote.raw)
            if one.kind is not Kind.MARK
        ]
        for quote in quotes
    ]
    found = [
        [
            f"«{one.text}»" if one.kind is Kind.QUOTE and value[one.start] == "«" else one.text
            for one in tokenize(value)
            if one.kind not in STOPS
        ]
        for value in values
        if value.strip()
    ]
    if not all(any(_says(other, one) for other in found) or _joined(wanted, found) for one in wanted):
        return Fidelity(Fault("content", "quote"), frozenset())
    if not all(any(is_written_so(quote.raw, value) for value in values) for quote in quotes) and not any(
        is_written_so(" ".join(quote.raw for quote in quotes), value) for value in values
    ):
        return Fidelity(Fault("content", "quote"), frozenset())
    rest = [value for value in found if not any(_says(value, one) for one in wanted) and not _joined(wanted, [value])]
    around = {one.stem for one in ask.tokens} | {word[:STEM] for one in wanted for word in one}
    if any(not is_plain(word, ask.lexicon) and word[:STEM] not in around for value in rest for word in value):
        return Fidelity(Fault("content", "quote"), frozenset())
    return Fidelity(None, places)


def is_written_so(quote: str, value: str) -> bool:
    """Return True if a content has a quotation letter for letter; its lines may begin and end a sentence."""
    if MASK.search(value):
        return True
    wanted, lines = quote.strip(), [value.strip(), *map(str.strip, value.splitlines())]
    same = {wanted, wanted + ".", wanted[:1].upper() + wanted[1:], wanted[:1].upper() + wanted[1:] + "."}
    return any(one in same for one in lines)


def _says(called: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return True if a content is the quotation; secrets may be replaced by their kind: «aws_key»."""
    if list(called) == list(wanted):
        return True
    masked = [at for at, word in enumerate(called) if MASK.fullmatch(word)]
    if len(masked) != 1:
        return False
    before, behind = list(called[: masked[0]]), list(called[masked[0] + 1 :])
    middle = len(wanted) - len(before) - len(behind)
    return middle > 0 and list(wanted[: len(before)]) == before and list(wanted[len(before) + middle :]) == behind


def _joined(wanted: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> bool:
    whole = [word for one in wanted for word in one]
    return any(list(one) == whole for one in found)
