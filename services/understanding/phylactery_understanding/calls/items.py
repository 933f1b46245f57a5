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
from phylactery_understanding.requests.model import Ask, Label

_DEFINITE: Final = word_set("demonstratives") | word_set("definite_articles")
_SUPERLATIVES: Final = word_set("superlatives")
_BY, _OF = frozenset({"by", "por"}), frozenset({"from", "of", "de", "del"})
"""Words before the name of the person whose an object is; of the latter, only before a capital letter."""
_ENDS: Final = frozenset({0, -1})
"""The ordinals of the first and the last one."""
_BY_TIME: Final = -1
"""Stands for the times of an ask among the numbers of its words."""


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
    said = [*(each for _, each in tokens), *before]
    ordinals, compares = _ordinals(match), any(one.text in _SUPERLATIVES for one in ask.tokens)
    ranks: dict[Listing, _Ranks] = {}

    def ranked_in(listing: Listing) -> _Ranks:
        if listing not in ranks:
            ranks[listing] = _Ranks(match, listing, name, said)
        return ranks[listing]

    for one in found:
        item, ranked = one.item, ranked_in(one.listing)
        if name is not None and item.holds(name.raw) and ranked.only_with_name(item):
            match.item = match.item or item
            match.found.append(one)
            return True
        if item.made or (compares and not one.listing.whole) or _is_anothers(ask, item):
            continue
        said_at = _place_said(one, ranked, ordinals)
        # The last one is the newest and, in a list that was shown, the one that stands there.
        misplaced = said_at is None and bool(ordinals) and one.shown
        picked = _is_picked(one, ranked) and not misplaced
        if said_at is None and not picked and not ranked.is_best(item):
            continue
        by_place = said_at is not None and not picked
        if any(ranked_in(other).has_rival(one, ranked, picked=picked, placed=by_place) for other in one.beside):
            continue
        match.used |= set() if said_at is None else {said_at}
        match.used |= {at for at, token in tokens if in_item(token, item)}
        if ask.times.features and same_day(ask.times.features, item.times, match.call.day):
            match.used |= set(ask.times.places)
        match.item = match.item or item
        match.found.append(one)
        return True
    return False


def _is_anothers(ask: Ask, item: Item) -> bool:
    """Return True if the ask says whose an object is, and it is only called so: Ana's request, by Eve, titled Ana."""
    return bool(item.owners) and any(
        in_item(one, item) and one.text.removesuffix("'s") not in item.owners
        for before, one in itertools.pairwise((None, *ask.tokens))
        if one is not None and _says_whose(before, one)
    )


def _says_whose(before: Token | None, token: Token) -> bool:
    if token.text.endswith("'s") or (before is not None and before.text in _BY):
        return True
    return before is not None and before.text in _OF and token.raw[:1].isupper()


def _place_said(one: Found, ranked: _Ranks, ordinals: Sequence[tuple[int, int]]) -> int | None:
    """Return the position of an ordinal that says where an item is in its list, or None.

    The first and the last one are such by time where the list says when, and then by that; without it, nothing says
    that the end of a list is the last of what it lists.
    """
    item = one.item
    for at, wanted in ordinals:
        placed = item.place == (wanted if wanted >= 0 else item.count + wanted)
        ends = wanted in _ENDS and ranked.picks_any
        if placed and (_is_picked(one, ranked) if ends else wanted >= 0):
            return at
    return None


def _is_picked(one: Found, ranked: _Ranks) -> bool:
    """Return True if an order that the user mentioned picks an item, of all that there are, and no other."""
    return one.item.picked and ranked.only_picked(one.item) and one.listing.whole


class _Ranks:
    """How the items of a listing compare by the words of an ask; each is scored once, not once for each of them."""

    def __init__(self, match: Match, listing: Listing, name: Token | None, said: Sequence[Token]) -> None:
        self._listing = listing
        self._with_name = listing.with_word(name) if name is not None else ()
        self._picked = [one for one in listing.items if one.picked]
        more, named = Counter[Item](), Counter[Item]()
        marks: dict[Item, set[int]] = {}
        for number, token in enumerate(said):
            named.update(listing.named_by(token))
            having = listing.with_word(token)
            more.update(having)
            for one in having:
                marks.setdefault(one, set()).add(number)
        times, day = match.ask.times.features, match.call.day
        if times:
            timely = [one for one in listing.items if same_day(times, one.times, day)]
            more.update(timely)
            for one in timely:
                marks.setdefault(one, set()).add(_BY_TIME)
        self._marks = {one: frozenset(found) for one, found in marks.items()}
        # Of two that mention a check-up, the one that is called so is meant.
        self._score = {one: (more[one], named[one]) for one in more}
        self._order = sorted(self._score, key=self._score.__getitem__, reverse=True)
        self._rivals: dict[tuple[frozenset[int], bool, int], bool] = {}

    @property
    def picks_any(self) -> bool:
        """Return True if an order that the user mentioned picks something here."""
        return bool(self._picked)

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

    def has_rival(self, found: Found, ranked: _Ranks, *, picked: bool, placed: bool) -> bool:
        """Return True if an item here is another object and is meant by the words as well as one of another listing.

        ``ranked`` are the ranks of that listing. What was picked by an order or a place there must be that here too:
        the cheapest of two pages is the cheapest of one of them.
        """
        marks = ranked.marks_of(found.item)
        key = marks, picked, found.item.place if placed else -1
        if key not in self._rivals:
            among = (self._picked if picked else ()) or self._listing.items  # with nothing to compare by, any may be it
            self._rivals[key] = any(
                marks <= self.marks_of(one)
                and (not placed or one.place == found.item.place)
                and not one.holds(found.text)
                for one in among
            )
        return self._rivals[key]

    def marks_of(self, item: Item) -> frozenset[int]:
        """Return the numbers of the words that say something of an item."""
        return self._marks.get(item, frozenset())


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
    """Return the ask's ordinals, with their positions; the third most expensive is no third place."""
    ask = match.ask
    ranks = any(
        one.text in _SUPERLATIVES and one.text not in ORDINALS and at not in ask.times.places
        for at, one in enumerate(ask.tokens)
    )
    said = ((at, ORDINALS[one.text]) for at, one in enumerate(ask.tokens) if one.text in ORDINALS)
    return [(at, wanted) for at, wanted in said if wanted in _ENDS or not ranks]


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
