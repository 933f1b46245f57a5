"""Listed objects that an ask describes: the cheapest one, the invoice of Acme, the same guests as the kick-off."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import Argument, Found, Item, Listing, are_apart, in_item, names_of
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
    found: dict[str, list[Found]] = {}
    for one in argument.items:
        found.setdefault(one.text, []).append(one)
    if not found:
        return False
    name = _named_before(match)
    return all(has_name(match, text) or _singles_out(match, name, found[text]) for text in sorted(found))


def _singles_out(match: Match, name: Token | None, found: Sequence[Found]) -> bool:
    """Return True if the ask distinguishes an object of one name from the others, by more than an apparent id."""
    ask, own = match.ask, fold(found[0].text)
    tokens = [
        (at, one) for at, one in enumerate(ask.tokens) if _tells(match, at, one) and one.text.removesuffix("'s") != own
    ]
    before = [one for one in ask.before if one.kind is not Kind.MARK] if ask.refers else []
    before = [one for one in before if not ask.lexicon.holds("stop", one.text) and one.stem not in match.call.nouns]
    ordinals = _ordinals(match)
    ranks: dict[Listing, _Ranks] = {}
    for one in found:
        item = one.item
        ranked = ranks.get(one.listing)
        if ranked is None:
            ranked = ranks[one.listing] = _Ranks(match, one.listing, name, [*(each for _, each in tokens), *before])
        if name is not None and item.holds(name.raw) and ranked.only_with_name(item):
            match.item = match.item or item
            match.found.append(one)
            return True
        if item.made:
            continue
        said_at = next(
            (at for at, wanted in ordinals if item.place == (wanted if wanted >= 0 else item.count + wanted)), None
        )
        if said_at is None and not (item.picked and ranked.only_picked(item)) and not ranked.is_best(item):
            continue
        match.used |= set() if said_at is None else {said_at}
        match.used |= {at for at, token in tokens if in_item(token, item)}
        if ask.times.features and same_day(ask.times.features, item.times, match.call.day):
            match.used |= set(ask.times.places)
        match.item = match.item or item
        match.found.append(one)
        return True
    return False


class _Ranks:
    """How the items of a listing compare by the words of an ask; each is scored once, not once for each of them."""

    def __init__(self, match: Match, listing: Listing, name: Token | None, said: Sequence[Token]) -> None:
        self._listing = listing
        self._with_name = listing.with_word(name) if name is not None else ()
        self._picked = [one for one in listing.items if one.picked]
        more, named = Counter[Item](), Counter[Item]()
        for token in said:
            named.update(listing.named_by(token))
            more.update(listing.with_word(token))
        times, day = match.ask.times.features, match.call.day
        if times:
            more.update(one for one in listing.items if same_day(times, one.times, day))
        # Of two that mention a check-up, the one that is called so is meant.
        self._score = {one: (more[one], named[one]) for one in more}
        self._order = sorted(self._score, key=self._score.__getitem__, reverse=True)

    def only_with_name(self, item: Item) -> bool:
        """Return True if an item has the name, and no other one has."""
        return item in self._with_name and not any(are_apart(item, one) for one in self._with_name)

    def only_picked(self, item: Item) -> bool:
        """Return True if the user picked no other item."""
        return not any(are_apart(item, one) for one in self._picked)

    def is_best(self, item: Item) -> bool:
        """Return True if the words say more of an item, or as much by its name, than of any other."""
        mine = self._score.get(item)
        if mine is None:
            return False
        best = next((one for one in self._order if are_apart(item, one)), None)
        return best is None or self._score[best] < mine


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


def _ordinals(match: Match) -> list[tuple[int, int]]:
    """Return the ask's ordinals, with their positions."""
    return [(at, ORDINALS[one.text]) for at, one in enumerate(match.ask.tokens) if one.text in ORDINALS]


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

    if not said:
        return False
    fitting: dict[Listing, Collection[Item]] = {}
    for item, listing in argument.shared:
        if listing not in fitting:
            having = set(listing.items).intersection(*map(listing.with_word, said))
            fitting[listing] = {
                one for one in having if not times.features or same_day(times.features, one.times, match.call.day)
            }
        if item in fitting[listing] and not any(are_apart(item, one) for one in fitting[listing]):
            break
    else:
        return False
    match.used.update(range(compared[0], begins + size))
    return True


def is_of_item(match: Match, token: Token) -> bool:
    """Return True if a word names or picks a listed object that the call is about."""
    if any(in_item(token, one) or (one.picked and token.text in _SUPERLATIVES) for one in match.items):
        return True
    return match.item is not None and in_item(token, match.item)


def _is_name_of_file(token: Token) -> bool:
    return token.kind in {Kind.QUOTE, Kind.LITERAL} and is_file_name(token.text)
