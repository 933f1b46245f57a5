"""Phrases that people use about a form: lists per language, matched on folded words with their places in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, get_args
from unicodedata import category

from phylactery_understanding.language.lexicon import lexicons
from phylactery_understanding.language.text import STOPS, Kind, Token, tokenize
from phylactery_understanding.language.word_files import LexiconError, lists
from phylactery_understanding.replies.answers import Answer, Phrases, kinds_of, plain_words, read_answer

from phylactery_forms.definitions.model import Field
from phylactery_forms.dialogue.state import MAX_CHARACTERS
from phylactery_forms.values.model import Language

ListName = Literal[
    "undo", "skip", "told", "same", "leave", "cancel", "resume", "explain", "repeat", "beside",
    "marker", "denial", "wrong", "changes", "instead", "links",
    "regret", "rethink", "put", "wish", "denies", "gives", "seems", "approves", "faults",
    "sends", "sends_with", "judged", "judges", "degree", "good", "whom",
    "negation", "alternative", "bound", "condition", "others", "hedge", "postpone",
    "ahead", "errand", "no_errand", "echo", "agrees", "some_time", "span",
    "cancels", "undoing", "undone", "deals", "needs", "relative", "wants", "needless", "needed", "far",
    "orders", "tells", "doing", "done", "starting", "ending", "marks",
    "tail", "frame", "head", "about", "being", "asks_politely",
    "topic_change", "question",
    "person", "person_word", "polite", "not_person", "mild", "strong",
]  # fmt: skip
_Listed = Literal["undo", "skip", "told", "same", "leave", "cancel", "resume", "explain", "repeat"]
Command = _Listed | Literal["hold"]
"""Hold on is read by the lists of words that stop what waits, or hold it (replies/stops.py)."""
COMMANDS: Final[tuple[_Listed, ...]] = get_args(_Listed)
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
SWITCH_TOKENS: Final = 3
"""The least number of words that may change the language of a conversation."""
_FEWEST: Final = 2
"""The least number of words of the other language alone that change it."""

_JOINED: Final = re.compile(r"(?i)\.{2,}|(?<=\bno)\.(?=\w)|(?<=\bnope)\.(?=\w)")
"""Dots that join words which are none: no.it is, sorry...the other."""

_SENTENCES: Final = re.compile(r"[.!;\n]+(?=\s|$)")
_TRAILING: Final = re.compile(r"\.\s*\.")
"""Dots that leave a yes open."""
_CLAUSE: Final = re.compile(r"[;:!?\n]|[.,](?:\s|$)")
_LONGEST_YES: Final = 120
_SIGNS: Final = frozenset({"So", "Sk", "Cn"})
_ASKING: Final = frozenset({("is",), ("are",), ("was",), ("es",), ("son",), ("esta",), ("estan",)})
"""What begins a question where nothing is before it."""

_Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a message in order, without punctuation."""

    text: str
    tokens: tuple[Token, ...]

    @property
    def folded(self) -> _Phrase:
        """Return the words folded."""
        return tuple(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Span:
    """A phrase in a message: the range of its words."""

    start: int
    stop: int


def words_of(text: str) -> Words:
    """Return the words of a message's first 4,000 characters; a quotation counts word by word."""
    kept = text[:MAX_CHARACTERS].replace("\0", " ")
    for mark in '"“”«»„`':
        kept = kept.replace(mark, " ")
    kept = _JOINED.sub(lambda found: "," * len(found[0]), kept)
    return Words(kept, tuple(token for token in tokenize(kept) if token.kind not in STOPS))


def clauses_of(said: Words) -> Iterator[tuple[int, int]]:
    """Yield the clauses of a message, as the first of their words and the first behind."""
    start = 0
    for place in range(1, len(said.tokens) + 1):
        between = said.text[said.tokens[place - 1].stop : said.tokens[place].start] if place < len(said.tokens) else ""
        if place == len(said.tokens) or _CLAUSE.search(between):
            yield start, place
            start = place


def opening_of(said: Words) -> tuple[int, int]:
    """Return the first word of a message behind words that say nothing, and the first behind its last."""
    words, place = said.folded, 0
    while place < len(words) and words[place] != "no" and (size := size_at("beside", words, place)):
        if any(size_at(name, words, place) > size for name in _HEADS):
            break
        place += size
    return place, len(words)


_ORDERS: Final[tuple[ListName, ...]] = ("wish", "head", "put", "asks_politely", "orders")
_HEADS: Final[tuple[ListName, ...]] = ("marks", "put", "regret", "rethink", "changes")


def headed(said: Words, *names: ListName) -> bool:
    """Return True if a clause of a message begins as a correction: no, …; actually …; make it …; I changed my mind.

    ``names`` are the lists of such beginnings, all of them if none is given. A no does so only before a mark, as it may
    belong to what follows: no onions.
    """
    words, heads = said.folded, names or _HEADS
    for start, stop in clauses_of(said):
        place = start
        while place < stop and words[place] != "no" and (size := size_at("beside", words, place)):
            if any(size_at(name, words, place) for name in heads):
                return True
            place += size
        if place == stop:
            continue
        if words[place] in {"no", "nope"}:
            if place + 1 == stop < len(words):
                return True
        elif any(size_at(name, words, place) for name in heads):
            return True
    return False


def corrects_by_order(said: Words) -> bool:
    """Return True if a message begins with a no or a second thought that goes on with a wish, an order, or a number.

    "No, it's for two people", "actually, send it from my savings account"; not "no onions", "actually it never worked".
    """
    words = said.folded
    place = 0
    while place < len(words) and (size := size_at("beside", words, place)) and words[place] != "no":
        if size_at("rethink", words, place):
            break
        place += size
    denied, rethought = size_at("denial", words, place), size_at("rethink", words, place)
    if not denied and not rethought:
        return False
    place += max(denied, rethought)
    orders: tuple[ListName, ...] = (*_ORDERS, "tells") if denied else _ORDERS
    while place < len(words) and (size := max(size_at(name, words, place) for name in ("rethink", "beside"))):
        if any(size_at(name, words, place) >= size for name in orders):
            break
        place += size
    return any(size_at(name, words, place) for name in orders)


@cache
def _list(name: ListName) -> Mapping[str, tuple[_Phrase, ...]]:
    """Return the phrases of a list in every language by their first word, the longest first."""
    found: dict[str, set[_Phrase]] = {}
    for language in LANGUAGES:
        for phrase in _content(language).get(name, ()):
            words = tuple(token.text for token in tokenize(phrase) if token.kind not in STOPS)
            if words:
                found.setdefault(words[0], set()).add(words)
    return {first: tuple(sorted(some, key=len, reverse=True)) for first, some in found.items()}


@cache
def _content(language: Language) -> Mapping[str, Sequence[str]]:
    file = Path(str(files("phylactery_forms") / "words" / language / "dialogue.yaml"))
    found = dict(lists(file))
    if missing := set(get_args(ListName)) ^ set(found):
        raise LexiconError(f"{file}:1: the lists differ from those that are read: {', '.join(sorted(missing))}")
    return found


def size_at(name: ListName, words: _Phrase, place: int) -> int:
    """Return how many words from a place on are the longest phrase of a list, 0 if none."""
    for phrase in _list(name).get(words[place], ()) if place < len(words) else ():
        if words[place : place + len(phrase)] == phrase:
            return len(phrase)
    return 0


def find(name: ListName, words: _Phrase, start: int = 0) -> Span | None:
    """Return the first phrase of a list in a message, or None."""
    for place in range(start, len(words)):
        if size := size_at(name, words, place):
            return Span(place, place + size)
    return None


def count(name: ListName, words: _Phrase) -> int:
    """Return how many phrases of a list a message has."""
    place = found = 0
    while place < len(words):
        size = size_at(name, words, place)
        found += bool(size)
        place += size or 1
    return found


def consists_of(name: ListName | None, words: _Phrase, *more: ListName) -> bool:
    """Return True if phrases of a list, at least one if one is given, and of further lists hold every word."""
    place, seen = 0, name is None
    while place < len(words):
        size = 0 if name is None else size_at(name, words, place)
        other = max((size_at(one, words, place) for one in more), default=0)
        if not size and not other:
            return False
        seen = seen or size >= max(other, 1)
        place += max(size, other)
    return seen


def answer_to_review(text: str) -> Answer:
    """Return a clear yes or no to everything that was read back: there a yes is also "send it", or "that's right".

    As any yes, it says nothing else: the lists hold every word and sign of it.
    """
    answer = read_answer(text)
    if answer != "unclear" or len(text) > _LONGEST_YES or _leaves_open(text):
        return answer
    return "yes" if _says_sends(text) or _approves_in_all(text) else "unclear"


def _leaves_open(text: str) -> bool:
    """Return True if a text ends in dots behind a bare yes: it may go on. "Yes.. this is fine.." does not."""
    trails = list(_TRAILING.finditer(text))
    last = bool(trails) and not words_of(text[trails[-1].end() :]).folded
    return last and consists_of("sends_with", words_of(text).folded)


def _approves_in_all(text: str) -> bool:
    """Return True if every sentence of a text approves, says thanks, or orders to do what was read back."""
    sentences = [some for some in _SENTENCES.split(_TRAILING.sub(". ", text)) if words_of(some).folded]
    return (
        "?" not in text and any(_approves(some) for some in sentences) and all(_goes_along(some) for some in sentences)
    )


def _says_sends(text: str) -> bool:
    return "sends" in kinds_of(plain_words(text), _sending())


def approval_opens(text: str) -> str | None:
    """Return what follows the first sentence of a text if that approves what was read back, else None."""
    found = _SENTENCES.search(text)
    first = text[: found.start()] if found is not None else text
    approves = read_answer(first) == "yes" or _says_sends(first) or _approves(first)
    return (text[found.end() :] if found is not None else "") if approves else None


def _approves(text: str) -> bool:
    """Return True if a sentence says that all is right, and nothing else: yes, that sounds great to me, book it."""
    return _goes_along(text) and (
        read_answer(text) == "yes"
        or _says_sends(text)
        or any(_judging(words_of(text).folded, place) for place in range(len(words_of(text).tokens)))
    )


def _goes_along(text: str) -> bool:
    """Return True if a sentence only approves, says thanks, or orders to do it; a question is none: is that right."""
    words, place = words_of(text).folded, 0
    if read_answer(text) == "yes" or _says_sends(text):
        return True
    if any(category(sign) in _SIGNS for sign in text):
        return False  # send it, with a thumb that is down
    while place < len(words):
        size = max(size_at("sends_with", words, place), _judging(words, place), _order(words, place))
        if not size:
            return False
        place += size
    return bool(words) and "?" not in text


def _judging(words: _Phrase, place: int) -> int:
    """Return how many words from a place on say that what was read back is right, 0 if none do.

    The order within is fixed, so that "correct that" and "is that right" are none.
    """
    said = max(size_at("sends", words, place), size_at("agrees", words, place))
    begin, asks = place, False
    for name in ("judged", "judges", "degree", "good", "whom"):
        size = size_at(name, words, place)
        if not size and name == "good":
            return said
        asks = asks or (name == "judges" and place == begin == 0 and words[:size] in _ASKING)
        place += size
    return said if asks else max(said, place - begin)


def _order(words: _Phrase, place: int) -> int:
    """Return how many words from a place on order to do what was read back: book it, make the reservation for me."""
    verb = size_at("doing", words, place)
    thing = size_at("done", words, place + verb) if verb else 0
    return verb + thing if thing else 0


@cache
def _sending() -> Phrases[Literal["sends", "sends_with"]]:
    names: tuple[Literal["sends_with", "sends"], ...] = ("sends_with", "sends")
    return Phrases(
        {plain_words(one): name for name in names for language in LANGUAGES for one in _content(language)[name]}
    )


def command_in(words: Words) -> Command | None:
    """Return the command that a message consists of, or None if it says anything else."""
    folded = words.folded
    if not 0 < len(folded) <= 12:  # noqa: PLR2004
        return None
    exact = next((name for name in COMMANDS if size_at(name, folded, 0) == len(folded)), None)
    return exact or next((name for name in COMMANDS if consists_of(name, folded, "beside")), None)


def naming(one: Field) -> tuple[_Phrase, ...]:
    """Return the phrases by which people name a field, in every language, the longest first."""
    names = (*one.label.values(), *(alias for some in one.aliases.values() for alias in some), *_KINDS[one.type.name])
    made = {tuple(token.text for token in tokenize(name) if token.kind not in STOPS) for name in names}
    return tuple(sorted((phrase for phrase in made if phrase), key=len, reverse=True))


_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "email": ("email", "e-mail", "mail", "correo", "correo electrónico"),
    "phone": ("phone", "phone number", "telephone", "mobile", "teléfono", "móvil", "celular", "número de teléfono"),
    "url": ("url", "link", "website", "enlace", "web", "página"),
    "number": (),
    "money": ("amount", "price", "importe", "precio", "cantidad", "monto"),
    "text": (),
    "date": ("date", "day", "fecha", "día"),
    "time": ("time", "hour", "hora"),
    "choice": (),
    "yes_no": (),
    "person_name": ("name", "nombre", "me llamo", "i am called", "i'm called", "name's"),
    "address": ("address", "dirección", "domicilio"),
    "national_id": ("id", "dni", "nie", "documento", "cédula"),
    "file": ("file", "attachment", "archivo", "fichero", "adjunto"),
    "pattern": (),
}
"""What people call a field of a type, whatever its label is."""


def named_at(one: Field, words: _Phrase) -> Span | None:
    """Return the place at which a message names a field, or None."""
    for phrase in naming(one):
        for place in range(len(words) - len(phrase) + 1):
            if words[place : place + len(phrase)] == phrase:
                return Span(place, place + len(phrase))
    return None


def is_question(said: Words) -> bool:
    """Return True for a question: it begins as one, and ends as one or has its opening mark."""
    words = said.folded
    place = 0
    while place < len(words) and (size := size_at("beside", words, place)):
        place += size
    begins = bool(place < len(words) and size_at("question", words, place)) or bool(
        words and size_at("question", words, 0)
    )
    return "?" in said.text and (begins or "¿" in said.text)


def language_of(words: Words, current: Language) -> Language:
    """Return the language a conversation goes on in: another only for three words or more that say so clearly."""
    said = [token.text for token in words.tokens if token.kind is Kind.WORD]
    if len(said) < SWITCH_TOKENS:
        return current
    known = lexicons().known
    spanish = sum(word in known["es"] and word not in known["en"] for word in said)
    english = sum(word in known["en"] and word not in known["es"] for word in said)
    own, other = (spanish, english) if current == "es" else (english, spanish)
    if other >= _FEWEST and other > own * 2:
        return "en" if current == "es" else "es"
    return current
