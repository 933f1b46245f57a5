"""Listed objects that an ask describes: the cheapest one, the invoice of Acme, the same guests as the kick-off."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import Argument, Item, in_item, names_of
from phylactery_understanding.calls.values import NO_GOAL, ORDINALS, has_name
from phylactery_understanding.language.text import Kind, Token, fold, is_file_name
from phylactery_understanding.language.times import read_times, same_day
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.asks import comparison
from phylactery_understanding.requests.model import Label

_DEFINITE: Final = word_set("demonstratives") | word_set("definite_articles")
_SUPERLATIVES: Final = word_set("superlatives")


def describes(match: Match, argument: Argument) -> bool:
    """Return True if the ask describes exactly the listed objects whose ids an argument has."""
    texts = {value for value, _, _ in argument.items}
    return bool(texts) and all(
        has_name(match, text)
        or any(_singles_out(match, text, item, others) for value, item, others in argument.items if value == text)
        for text in sorted(texts)
    )


def _singles_out(match: Match, text: str, item: Item, others: Sequence[Item]) -> bool:
    """Return True if the ask distinguishes a listed object from the others, by more than an apparent id."""
    name = _named_before(match)
    if name is not None and item.holds(name.raw) and [one for one in (item, *others) if in_item(name, one)] == [item]:
        match.item = match.item or item
        match.items.append(item)
        return True
    if item.made:
        return False
    own = fold(text)
    tokens = [
        (at, one)
        for at, one in enumerate(match.ask.tokens)
        if _tells(match, at, one) and one.text.removesuffix("'s") != own
    ]
    before = [one for one in match.ask.before if one.kind is not Kind.MARK] if match.ask.refers else []
    before = [
        one for one in before if not match.ask.lexicon.holds("stop", one.text) and one.stem not in match.call.nouns
    ]
    said = match.ask.times.features

    def score(one: Item) -> tuple[int, int]:
        """Return how many words the item's short fields have, and how many all of it has."""
        named = replace(one, says=lambda _: False)
        hits = [sum(in_item(token, of) for token in (*(each for _, each in tokens), *before)) for of in (named, one)]
        return hits[0], hits[1] + (bool(said) and same_day(said, one.times, match.call.day))

    mine = score(item)
    order = _ordinal(match, item) or (item.picked and not any(one.picked for one in others))
    # Of two that mention a check-up, the one that is called so is meant.
    if not (order or mine[1]) or not (order or all(_is_less(score(one), mine) for one in others)):
        return False
    match.used |= {at for at, token in tokens if in_item(token, item)}
    if said and same_day(said, item.times, match.call.day):
        match.used |= set(match.ask.times.places)
    match.item = match.item or item
    match.items.append(item)
    return True


def _named_before(match: Match) -> Token | None:
    """Return the only file name of earlier asks, if this one says just "the file"; None for none, or two.

    An action on a named object may be stated of the object: read a.txt and add a line to the file.
    """
    ask = match.ask
    pairs = zip(itertools.pairwise(ask.tokens), ask.labels, strict=False)
    definite = any(
        first.text in _DEFINITE and second.stem in match.call.nouns and label not in NO_GOAL
        for (first, second), label in pairs
    )
    if not definite or any(_is_name_of_file(one) for one in ask.tokens):
        return None
    earlier = list(itertools.takewhile(lambda one: one.tokens[-1] is not ask.tokens[-1], match.request.asks))
    names = {one.raw: one for other in earlier for one in other.tokens if _is_name_of_file(one)}
    return names.popitem()[1] if len(names) == 1 and all(one.fault is None for one in earlier) else None


def _tells(match: Match, place: int, token: Token) -> bool:
    return (
        place not in match.used
        and match.ask.labels[place] in {Label.OBJECT, Label.QUOTE, Label.ARTICLE, Label.CONTENT}
        and token.kind is not Kind.MARK
        and not match.ask.lexicon.holds("stop", token.text)
        and token.stem not in match.call.nouns
    )


def _ordinal(match: Match, item: Item) -> bool:
    for at, token in enumerate(match.ask.tokens):
        wanted = ORDINALS.get(token.text)
        if wanted is not None and item.place == (wanted if wanted >= 0 else item.count + wanted):
            match.used.add(at)
            return True
    return False


def is_same_as_listed(match: Match, argument: Argument) -> bool:
    """Return True if the ask wants what one listed thing has: with the same participants as the kick-off."""
    tokens, words = match.ask.tokens, match.ask.lexicon
    compared = comparison(tokens)
    if compared is None or {one.stem for one in tokens[compared[0] : compared[1]]}.isdisjoint(names_of(argument.name)):
        return False
    begins = compared[1] + 1
    size = len(list(itertools.takewhile(lambda one: one is Label.SOURCE, match.ask.labels[begins:])))
    thing = [one for one in tokens[begins : begins + size] if one.kind is not Kind.MARK]
    times = read_times(thing)
    said = [
        one
        for at, one in enumerate(thing)
        if at not in times.places and not words.holds("stop", one.text) and one.stem not in match.call.nouns
    ]

    def fits(item: Item) -> bool:
        timely = not times.features or same_day(times.features, item.times, match.call.day)
        return timely and bool(said) and all(in_item(one, item) for one in said)

    if not any(fits(item) and not any(map(fits, others)) for item, others in argument.shared):
        return False
    match.used.update(range(compared[0], begins + size))
    return True


def is_of_item(match: Match, token: Token) -> bool:
    """Return True if a word names or picks a listed object that the call is about."""
    if any(in_item(token, one) or (one.picked and token.text in _SUPERLATIVES) for one in match.items):
        return True
    return match.item is not None and in_item(token, match.item)


def _is_less(other: tuple[int, int], mine: tuple[int, int]) -> bool:
    """Return True if another item fits worse: fewer words in all, or as many of which fewer are in its name."""
    return other[1] < mine[1] or (other[1] == mine[1] and other[0] < mine[0])


def _is_name_of_file(token: Token) -> bool:
    return token.kind in {Kind.QUOTE, Kind.LITERAL} and is_file_name(token.text)
