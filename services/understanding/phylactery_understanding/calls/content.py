"""Comparison of a call's content with the content that was asked for.

Literal content must be present, word by word. Described content may be rephrased, but must not add or omit a number, an
address or a negation. Content that was left to the model is free, but must not add a link, an address or anything from
a text the user did not point to.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.numbers import readings, value_of
from phylactery_understanding.language.text import STEM, Kind, Token, is_file_name, tokenize
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_map, word_set
from phylactery_understanding.requests.model import ARTIFACTS, Ask, Fault, Label, Request

_NEGATIONS: Final = word_set("denials")
_MAKING: Final = frozenset({"compose", "create", "make", "draft", "summarize", "translate", "convert"})
_LONGEST: Final = 20_000
_MASK = re.compile(r"«[a-z_]+»")
"""The placeholder of a redacted secret: its kind."""
_FEW: Final = 2
_OPENING: Final = 3
_BRIEF: Final = 4
_SHORT: Final = 8
"""The length in words of a dictated text of which no word may be omitted."""
_INDIRECT: Final = word_set("indirect")
_SPOKEN: Final = word_map("contractions")
_BEARING: Final = word_set("bearing")
_OPENINGS: Final = tuple(sorted(word_set("question_openings"), key=len, reverse=True))
_PERSONS: Final = word_map("asked_persons")
_ASKED: Final = word_map("asked_verbs")
_SHORT_WORD, _PREFIX = 6, 3
_LIMITING: Final = word_set("limiting")
_LONG_NUMBER: Final = 4
"""The number of digits of a number that is not made up by chance."""
_ACCORDINGLY: Final = word_set("accordingly")
_SAID_SHARE: Final = 0.6
_OTHER_SHARE: Final = 0.35


@dataclass(frozen=True, slots=True)
class Source:
    """The texts that were read and that the user pointed to: their words and their names."""

    holds: Callable[[str], bool] = field(default=lambda _: False)
    named: Callable[[str], bool] = field(default=lambda _: False)
    some: bool = False


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The reason why contents are not what was asked for, and the tokens of the ask they correspond to."""

    fault: Fault | None
    used: frozenset[int]


def fidelity(
    ask: Ask,
    goals: Collection[int],
    values: Sequence[str],
    request: Request,
    texts: Source,
    *,
    edits: bool,
    makes: bool,
    nouns: frozenset[str] = frozenset(),
) -> Fidelity:
    """Compare a call's contents with an ask's content; ``goals`` are the tokens that other arguments used."""
    if sum(map(len, values)) > _LONGEST:
        return Fidelity(Fault("content", "length"), frozenset())
    masked = sum(len(_MASK.findall(value)) for value in values)
    called = [token for value in values for token in tokenize(_MASK.sub(" ", value)) if token.kind is not Kind.BREAK]
    called = list(_opened(called))
    allowed = _allowed(request)
    foreign = _foreign(called, allowed, texts)
    if foreign is not None:
        return Fidelity(Fault("content", foreign), frozenset())
    places = frozenset(
        at
        for at, (token, label) in enumerate(zip(ask.tokens, ask.labels, strict=True))
        if at not in goals
        and label
        in {
            Label.CONTENT,
            Label.QUOTE,
            Label.OBJECT,
            Label.FILLER,
            Label.ARTICLE,
            Label.SOURCE,
            Label.TIME,
            Label.GOAL,
            Label.REASON,
        }
    )
    quotes = [ask.tokens[at] for at in places if ask.tokens[at].kind is Kind.QUOTE]
    if quotes and not edits:
        return _quoted(quotes, values, ask, places)
    said = [ask.tokens[at] for at in sorted(places) if ask.tokens[at].kind is not Kind.QUOTE]
    if edits:
        return Fidelity(_edited(called, ask, texts), places)
    previous = ask.previous
    if makes and (_is_composed(ask, said) or (previous is not None and _is_composed(previous, previous.tokens))):
        beside = _beside_source(called, ask, goals, texts)
        return Fidelity(beside or _composed(called, request, texts), places)
    if makes and texts.some and _names_source(ask, [*said, *_accorded(ask, request)], texts):
        return Fidelity(_taken(called, ask, texts), places)
    refers = ask.refers or (ask.before and not list(ask.of(Label.CONTENT)) and not _content(said, ask.lexicon))
    if refers:
        said = [*ask.before, *(previous.tokens if previous is not None else ()), *said]
    fault = _described(said, called, values, ask, refers=bool(refers), makes=makes, nouns=nouns, masked=masked)
    return Fidelity(fault, places)


def stated(values: Sequence[str], said: Sequence[Token], words: Lexicon) -> bool:
    """Return True if contents say nothing beyond what was stated."""
    called = [one for value in values for one in tokenize(value) if one.kind not in {Kind.MARK, Kind.BREAK}]
    stems = {one.stem for one in said}
    fresh = [one for one in called if one.stem not in stems and not _is_plain(one.text, words)]
    digits = {one.text for one in said}
    if any(one.raw[:1].isupper() and one is not called[0] for one in fresh):
        return False  # another name
    if any(any(char.isdigit() for char in one.text) and one.text not in digits for one in called):
        return False
    return len(fresh) <= len(called) // 4 and _denials(said) % 2 == _denials(called) % 2


def _accorded(ask: Ask, request: Request) -> list[Token]:
    """Return the text to be read before, if the ask is for what follows from it: read it and act accordingly."""
    if not any(one.text in _ACCORDINGLY for one in ask.of(Label.OBJECT)):
        return []
    earlier = list(itertools.takewhile(lambda one: one is not ask, request.asks))
    read = [one for one in earlier if one.fault is None and one.verb.meanings == {"read"}]
    return [token for one in read for token in one.of(Label.OBJECT, Label.QUOTE)] if len(read) == len(earlier) else []


def _names_source(ask: Ask, said: Sequence[Token], texts: Source) -> bool:
    """Return True if the ask itself names a source of its content that was read: a file, a page."""
    return any(
        (one.kind is Kind.LITERAL or (one.kind is Kind.QUOTE and is_file_name(one.text))) and texts.named(one.text)
        for one in [*said, *ask.of(Label.SOURCE, Label.CONTENT, Label.OBJECT)]
    )


def _beside_source(called: Sequence[Token], ask: Ask, goals: Collection[int], texts: Source) -> Fault | None:
    """Check content made from a named text, such as a summary: it was read, and half of the words occur in it."""
    named = [
        one
        for at, one in enumerate(ask.tokens)
        if one.kind is Kind.LITERAL and at not in goals and is_file_name(one.text) and ask.labels[at] is not Label.GOAL
    ]
    if not named:
        return None
    if not any(texts.named(one.text) for one in named):
        return Fault("content", "unread")
    said = {one.stem for one in ask.tokens}
    words = [one for one in called if one.kind is not Kind.MARK and not _is_plain(one.text, ask.lexicon)]
    own = [one for one in words if not texts.holds(one.text) and one.stem not in said]
    return Fault("content", "more") if len(own) > len(words) // 2 else None


def _taken(called: Sequence[Token], ask: Ask, texts: Source) -> Fault | None:
    """Check content taken from a named text: nearly all words occur in it, or in the ask."""
    said = {one.stem for one in ask.tokens}
    words = [one for one in called if one.kind is not Kind.MARK]
    fresh = [
        one
        for one in words
        if not texts.holds(one.text) and one.stem not in said and not _is_plain(one.text, ask.lexicon)
    ]
    if any(any(char.isdigit() for char in one.text) for one in fresh):
        return Fault("content", "number")
    return Fault("content", "more") if len(fresh) > _of_source(words, fresh, 3) else None


def _of_source(words: Sequence[Token], fresh: Sequence[Token], share: int) -> int:
    """Return how many words of a content may be in no source: a few, and fewer than those that are."""
    return min(max(_FEW, len(words) // share), max((len(words) - len(fresh)) // 2, 1))


def _quoted(quotes: Sequence[Token], values: Sequence[str], ask: Ask, places: frozenset[int]) -> Fidelity:
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
            if one.kind not in {Kind.MARK, Kind.BREAK}
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
    if any(not _is_plain(word, ask.lexicon) and word[:STEM] not in around for value in rest for word in value):
        return Fidelity(Fault("content", "quote"), frozenset())
    return Fidelity(None, places)


def is_written_so(quote: str, value: str) -> bool:
    """Return True if a content has a quotation letter for letter; its lines may begin and end a sentence."""
    if _MASK.search(value):
        return True
    wanted, lines = quote.strip(), [value.strip(), *map(str.strip, value.splitlines())]
    same = {wanted, wanted + ".", wanted[:1].upper() + wanted[1:], wanted[:1].upper() + wanted[1:] + "."}
    return any(one in same for one in lines)


def _says(called: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return True if a content is the quotation; secrets may be replaced by their kind: «aws_key»."""
    if list(called) == list(wanted):
        return True
    masked = [at for at, word in enumerate(called) if _MASK.fullmatch(word)]
    if len(masked) != 1:
        return False
    before, behind = list(called[: masked[0]]), list(called[masked[0] + 1 :])
    middle = len(wanted) - len(before) - len(behind)
    return middle > 0 and list(wanted[: len(before)]) == before and list(wanted[len(before) + middle :]) == behind


def _joined(wanted: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> bool:
    whole = [word for one in wanted for word in one]
    return any(list(one) == whole for one in found)


def _opened(tokens: Sequence[Token]) -> Iterator[Token]:
    """Return the words of a content, including quotations."""
    for token in tokens:
        if token.kind is Kind.QUOTE:
            yield from (one for one in tokenize(token.raw) if one.kind is not Kind.BREAK)
        else:
            yield token


def _allowed(request: Request) -> frozenset[str]:
    found: set[str] = set()
    for token in request.tokens:
        found.add(token.text)
        if token.kind is Kind.QUOTE:
            found.update(one.text for one in tokenize(token.raw))
    return frozenset(found)


def _foreign(called: Sequence[Token], allowed: frozenset[str], texts: Source) -> str | None:
    """Return a link or address of a content that is neither in the user's words nor in a text they pointed to."""
    for token in called:
        if token.kind is Kind.LITERAL and (
            "@" in token.text[1:] or "://" in token.text or token.text.startswith("www.") or _is_host(token.text)
        ):
            if token.text not in allowed and not texts.holds(token.text):
                return "address"
    return None


def _is_host(text: str) -> bool:
    parts = text.split("/", maxsplit=1)[0].split(".")
    return (
        len(parts) > 1
        and len(parts[-1]) >= 2
        and parts[-1].isalpha()
        and all(part.replace("-", "").isalnum() for part in parts)
        and (
            parts[-1]
            in {
                "com",
                "org",
                "net",
                "io",
                "example",
                "info",
                "biz",
                "ru",
                "cn",
                "co",
                "dev",
                "app",
                "me",
                "xyz",
                "top",
                "site",
                "online",
                "link",
            }
        )
    )


def _is_composed(ask: Ask, said: Sequence[Token]) -> bool:
    meanings = ask.verb.meanings
    if ask.verbatim:
        return False
    # A dictated text may begin with what it is: containing the packing list; its own words say nothing about it.
    dictated = {id(one) for one in list(ask.of(Label.CONTENT))[_OPENING:]}
    artifact = ask.form in ARTIFACTS or any(one.text in ARTIFACTS for one in said if id(one) not in dictated)
    return artifact and bool(meanings & (_MAKING | {"write", "add", "put", "send", "record"}))


def _composed(called: Sequence[Token], request: Request, texts: Source) -> Fault | None:
    """Check generated content: long numbers are from the user, or from a text they pointed to."""
    allowed = {one.text for one in request.tokens}
    for token in called:
        digits = sum(one.isdigit() for one in token.text)
        if digits > _LONG_NUMBER and token.text not in allowed and not texts.holds(token.text):
            return Fault("content", "number")
    return None


def free_content(values: Sequence[str], request: Request, texts: Source) -> Fault | None:
    """Return what generated content takes from a text the user did not point to, or None."""
    if sum(map(len, values)) > _LONGEST:
        return Fault("content", "length")
    called = list(_opened([token for value in values for token in tokenize(value) if token.kind is not Kind.BREAK]))
    foreign = _foreign(called, _allowed(request), texts)
    return Fault("content", foreign) if foreign is not None else _composed(called, request, texts)


def _edited(called: Sequence[Token], ask: Ask, texts: Source) -> Fault | None:
    """Check an edit of a text that was read: its words are in the text, or in the request."""
    meant = [*ask.tokens, *(ask.before if ask.refers else ())]
    said = {one.stem for one in meant} | {
        word[:STEM] for one in meant if one.kind is Kind.QUOTE for word in one.text.split()
    }
    words = [one for one in called if one.kind is not Kind.MARK]
    if not words:
        return Fault("content", "empty")
    fresh = [
        one
        for one in words
        if not texts.holds(one.text) and one.stem not in said and not _is_plain(one.text, ask.lexicon)
    ]
    return Fault("content", "edit") if len(fresh) > _of_source(words, fresh, 5) else None


def _content(tokens: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return the content words."""
    times = read_times(tokens).places if tokens else frozenset()
    return [
        one
        for at, one in enumerate(tokens)
        if at not in times
        and one.kind is not Kind.MARK
        and not words.holds("stop", one.text)
        and one.kind is not Kind.BREAK
    ]


def _is_plain(word: str, words: Lexicon) -> bool:
    return words.holds("stop", word) or words.holds("phatic", word) or words.holds("please", word)


def _described(  # noqa: C901 - one case for each deviation
    said: Sequence[Token],
    called: Sequence[Token],
    contents: Sequence[str],
    ask: Ask,
    *,
    refers: bool,
    makes: bool,
    nouns: frozenset[str],
    masked: int,
) -> Fault | None:
    """Compare described content: the same numbers, the same negations, nearly the same words."""
    timely = {id(ask.tokens[at]) for at in ask.times.places}
    wanted = [one for one in _content(said, ask.lexicon) if id(one) not in timely]
    found = [one for one in called if one.kind is not Kind.MARK]
    previous = ask.previous.tokens if ask.previous is not None else ()
    everything = {one.text.lstrip("#") for one in [*ask.tokens, *ask.before, *previous]}
    stems = {one[:STEM] for one in everything}
    numbers = {one for word in everything for one in readings(word)}
    for one in found:
        values = readings(one.text)
        if values and one.text[:1].isdigit() and not values & numbers and not _told_by_time(one, ask):
            return Fault("content", "number")
    inner = {id(one) for one in ask.of(Label.CONTENT)}
    mentioned = {one for word in (token.text for token in found) for one in readings(word)}
    for one in wanted:
        values = readings(one.text)
        if (
            values
            and one.text[:1].isdigit()
            and not values & mentioned
            and one.kind is Kind.NUMBER
            and not refers
            and id(one) in inner
        ):
            return Fault("content", "number")
    if _denials(said) != _denials(found) and abs(_denials(said) - _denials(found)) % 2:
        return Fault("content", "negation")
    fresh = [
        one
        for one in found
        if one.kind is not Kind.NUMBER
        and (one.text.lstrip("#") not in everything if one.kind is Kind.LITERAL else one.stem not in stems)
        and not _is_plain(one.text, ask.lexicon)
        and value_of(one.text) is None
    ]
    told = [one for one in found if not _is_plain(one.text, ask.lexicon)]
    fresh = [one for one in fresh if not _is_addressed(one, ask)]
    if inquires(ask):
        fresh = [one for one in fresh if not ask.lexicon.holds("inquiry", one.text)]
    dictated = not refers and bool(inner)
    brief = makes and len(told) <= _BRIEF
    if not makes:
        begins = {word[:_PREFIX] for word in everything if _is_short(word)}
        fresh = [one for one in fresh if not (_is_short(one.text) and one.text[:_PREFIX] in begins)]
    if len(fresh) > (0 if dictated or brief else _few(told)):
        return Fault("content", "more")
    if any(
        one.kind is Kind.LITERAL and any(char.isdigit() for char in one.text) and one.text.lstrip("#") not in everything
        for one in fresh
    ):
        return Fault("content", "more")
    have = {one.stem for one in found}
    plain = [
        one
        for one in wanted
        if not _is_plain(one.text, ask.lexicon) and one.kind is Kind.WORD and one.stem not in nouns
    ]
    if dictated:
        plain = [one for one in plain if id(one) in inner]
    missing = [one for one in plain if one.stem not in have]
    if not makes:
        begins = {one.text[:_PREFIX] for one in found if _is_short(one.text)}
        missing = [one for one in missing if not (_is_short(one.text) and one.text[:_PREFIX] in begins)]
    if dictated and makes and not (_asks_the_same(ask, contents) if inquires(ask) else _turns(said, found, ask)):
        return Fault("content", "other")
    if dictated and (_limits(said) != _limits(found) or (len(plain) <= _SHORT and not _in_order(plain, told))):
        return Fault("content", "other")
    if refers:
        return None if len(missing) < len(plain) else Fault("content", "other")
    if len(missing) - masked > max(
        0 if (dictated and len(plain) <= _SHORT) or (makes and len(plain) <= _BRIEF) else 1,
        int(len(plain) * (1 - _SAID_SHARE)),
    ):
        return Fault("content", "less")
    if plain and len(missing) == len(plain):
        return Fault("content", "other")
    named = {one.stem for one in told} <= {ask.tokens[ask.labels.index(Label.VERB)].stem}
    if named and not makes:
        return None  # wake me at ten to seven: wake up
    return Fault("content", "unsaid") if told and not wanted else None


def _asks_the_same(ask: Ask, values: Sequence[str]) -> bool:
    """Return True if a question is put to the person it is about: whether she has it, do you have it.

    Text around the question, such as a subject, must not mention another person.
    """
    meant = _PERSONS | _ASKED
    wanted = [meant[part] for one in ask.of(Label.CONTENT) for part in one.text.split("'") if part in meant]
    asked = False
    for value in values:
        found = tokenize(value)
        texts = " ".join(_SPOKEN.get(part, part) for one in found for part in one.text.split("'"))
        for opening in _OPENINGS:
            texts = texts.replace(opening, " ")
        have = [_ASKED.get(one, one) for one in texts.split() if one in _ASKED or one in _PERSONS.values()]
        if any(one.text in {"?", "whether", "know", "saber"} for one in found):
            if asked or have != wanted:
                return False
            asked = True
        elif not set(have) <= set(wanted):
            return False
    return asked


def inquires(ask: Ask) -> bool:
    """Return True if a question is to be put to a person, in the writer's own words: ask Mina if she has them."""
    asked = {one.text for one in (*ask.of(Label.FILLER), *itertools.islice(ask.of(Label.CONTENT), 1))}
    return "ask" in ask.verb.meanings or not _INDIRECT.isdisjoint(asked)


def _few(told: Sequence[Token]) -> int:
    """Return how many words of a content may be the writer's own."""
    return max(_FEW if len(told) > _FEW + 2 else 1, int(len(told) * _OTHER_SHARE))


def _is_short(word: str) -> bool:
    """Return True if a word is so short that three letters identify its forms: bajar, baje, in a reminder."""
    return word.isalpha() and len(word) <= _SHORT_WORD


def _is_addressed(token: Token, ask: Ask) -> bool:
    """Return True if a word is the name that an address of the ask begins with: Hi Leo."""
    names = (one.text.lstrip("@") for one in ask.tokens if one.kind is Kind.LITERAL and "@" in one.text)
    return any(name.startswith(token.text) for name in names)


def _limits(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the small words of a text that limit how much of it holds, and when."""
    return frozenset(one.text for one in tokens if one.text in _LIMITING)


def _turns(said: Sequence[Token], found: Sequence[Token], ask: Ask) -> bool:
    """Return True if persons, directions and certainty are as dictated: not I pay you for you pay me, out for in."""
    inner = {id(one) for one in ask.of(Label.CONTENT)}
    wanted, have = _bearing([one for one in said if id(one) in inner]), _bearing(found)
    return any(have[at : at + len(wanted)] == wanted for at in range(len(have) - len(wanted) + 1))


def _bearing(tokens: Sequence[Token]) -> list[str]:
    """Return the small words of a text that can reverse its meaning, in order."""
    parts = (part for one in tokens for part in one.text.split("'"))
    return [_SPOKEN.get(one, one) for one in parts if _SPOKEN.get(one, one) in _BEARING]


def _in_order(said: Sequence[Token], told: Sequence[Token]) -> bool:
    """Return True if the words of a content are in the order in which they were said: who owes whom."""
    places = iter(one.stem for one in told)
    have = {one.stem for one in told}
    return all(one.stem in places for one in said if one.stem in have)


def _told_by_time(token: Token, ask: Ask) -> bool:
    """Return True if a number of a content is an hour in another notation: las 5, 17:00."""
    hours = {feature[1] for feature in ask.times.features if feature[0] in {"hour", "date"}}
    parts = token.text.replace(".", ":").split(":")
    return parts[0].isdigit() and (
        int(parts[0]) in hours or (int(parts[0]) + 12) in hours or (int(parts[0]) - 12) in hours
    )


def _denials(tokens: Sequence[Token]) -> int:
    return sum(one.text in _NEGATIONS for one in tokens)
