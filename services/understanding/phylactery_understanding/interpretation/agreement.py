"""Agreement of an interpreted ask with the call's arguments, and with what the grammar read in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from phylactery_understanding.calls.comparison import Comparison
from phylactery_understanding.calls.proposal import Argument, Call, names_of, plain_values, same_name
from phylactery_understanding.calls.understanding import same_effect
from phylactery_understanding.interpretation.check import CheckedAsk
from phylactery_understanding.interpretation.conversion import OWNING
from phylactery_understanding.interpretation.model import (
    ADDING,
    MEANINGS,
    WRITING,
    InterpretedAsk,
    Mode,
    covers,
    is_covered,
)
from phylactery_understanding.interpretation.scope import KEEPING, sentence_numbers
from phylactery_understanding.interpretation.vetoes import is_yes
from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.numbers import readings, value_of
from phylactery_understanding.language.text import STOPS, Kind, Token, fold, is_file_name, tokenize
from phylactery_understanding.language.vocabulary import word_map, word_set
from phylactery_understanding.replies.answers import read_answer, says_to_do
from phylactery_understanding.requests.model import Ask, Fault, Label, Request
from phylactery_understanding.requests.parser import parse

_TIMES: Final[Mapping[str, int]] = word_map("multipliers")
_PARTS: Final = re.compile(r"[^a-z0-9]+")
_FILE: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9]+")
_GOALS: Final = frozenset({Label.OBJECT, Label.QUOTE, Label.TIME})
"""Labels of words that may name the object of an ask, or a quantity of it."""
_OTHERWISE: Final = word_set("another") | word_set("otherwise")
_ANOTHER: Final = word_set("another")
_NAMED: Final = frozenset({Kind.NUMBER, Kind.LITERAL, Kind.QUOTE})
_SMALL: Final = ("article", "goal", "link")
"""Classes of the words between a denial and what it denies: not at 5."""
_MEANING_THAT: Final = word_set("it") | word_set("these")


def unbound(ask: InterpretedAsk, call: Call) -> Fault | None:
    """Return a control argument whose value belongs to another slot, or a slot that the call does not use.

    A value in no slot at all is left to the matcher: it does not examine the words outside the slots.
    """
    used: set[int] = set()
    for argument in call.arguments:
        own = [at for at, one in enumerate(ask.slots) if one.argument == argument.name]
        for value in plain_values(argument.value):
            said = [at for at, one in enumerate(ask.slots) if _is_value(one.span.text, value)]
            mine = [at for at in said if at in own]
            used.update(mine)
            if not mine and is_computed(ask, argument, value, exists=call.exists):
                used.update(own)
            elif argument.control and said and not mine and not isinstance(value, bool):
                return Fault("value", argument.name)
        if argument.items or argument.role == "date":  # named by its kind or time
            used.update(own)
    taken = {ask.slots[at].argument for at in used}
    for at, one in enumerate(ask.slots):
        if at not in used and not (ask.quantity != 1 and one.argument in taken):
            return Fault("leftover", one.span.text)
    return None


def denied(request: Request, call: Call) -> Fault | None:
    """Return a value of the call that the words deny, be it elsewhere in them: 350, not 530; 530 no, 350.

    A text may repeat what was said with its denial: the deposit is 350, not 530.
    """
    texts = set(_denied_in(request.tokens, request.lexicon))
    numbers = {value for one in texts for value in readings(one)}
    for argument in call.arguments:
        for value in plain_values(argument.value) if texts and not argument.default else ():
            found = tokenize(str(value))
            repeated = set(_denied_in(found, request.lexicon))
            for one in found:
                meant = one.text in texts or not numbers.isdisjoint(readings(one.text))
                if meant and one.text not in repeated:
                    return Fault("value", one.raw)
    return None


def _denied_in(tokens: Sequence[Token], words: Lexicon) -> Iterator[str]:
    """Yield the names, numbers and plain words that a denial is about, behind it or right before it."""
    said = [one.text for one in tokens]
    for at in range(len(tokens)):
        contrast = words.match("contrast", said, at)
        size = max(contrast, int(words.holds("negation", said[at])))
        if not size:
            continue
        behind = at + size
        while behind < len(tokens) and tokens[behind].kind is Kind.WORD and words.holds_any(_SMALL, said[behind]):
            behind += 1
        named = behind < len(tokens) and tokens[behind].kind in _NAMED
        plain = contrast and behind < len(tokens) and tokens[behind].kind is Kind.WORD and not words.verb(said[behind])
        if named or plain:
            yield said[behind]
        ends = at + size == len(tokens) or tokens[at + size].kind in STOPS
        if ends and at and tokens[at - 1].kind in _NAMED:
            yield said[at - 1]


def is_asked_now(one: CheckedAsk, request: Request, call: Call) -> bool:
    """Return True if the newest of several messages asks for what is quoted from an earlier one.

    It contains words of the ask and no other request, or it is a request for such an effect, or a yes, with nothing
    else: it names nothing itself and changes nothing.
    """
    newest = parse(request.text[one.newest :])
    texts = [token.text for token in newest.tokens if token.kind not in STOPS]
    fitting = any(same_effect(ask, call) and not _takes_away(ask, one.ask) for ask in newest.asks)
    others = any(ask.fault is None and not same_effect(ask, call) for ask in newest.asks)
    again = any(not span.back for span in one.ask.times)  # another one, an hour before
    if not (_OTHERWISE - _ANOTHER if again else _OTHERWISE).isdisjoint(texts):
        return False
    if any(not span.back for span in one.ask.spans):
        return fitting or not others
    if one.ask.composed:
        said = {value for text in contents_of(call) for token in tokenize(text) for value in readings(token.text)}
        return fitting and all(
            not said.isdisjoint(readings(token.text)) for token in newest.tokens if token.kind is Kind.NUMBER
        )
    if says_to_do(newest.text):
        return True
    names = ("stop", "article", "please", "phatic", "universal", "polite", "greet")
    rest = [
        text
        for text in texts
        if not newest.lexicon.holds_any(names, text)
        and read_answer(text) != "yes"
        and (value_of(text) is None or text.isdigit())
        and not any(verb.meanings & call.effects for verb in newest.lexicon.verb(text))
    ]
    return (fitting or is_yes(request.tokens, one.newest)) and not rest


def _takes_away(heard: Ask, ask: InterpretedAsk) -> bool:
    """Return True if a request removes, and the ask adds: quita, quita, after one to note it down."""
    removes = heard.verb.meanings & MEANINGS[Mode.REMOVE]
    return bool(removes) and ask.mode in {Mode.ADD, Mode.CREATE} and heard.verb.meanings.isdisjoint(ADDING | WRITING)


def _of_sentence(ask: Ask, request: Request) -> list[Token]:
    """Return the words of an ask that are in the sentence of its verb."""
    sentences = dict(zip(map(id, request.tokens), sentence_numbers(request.tokens), strict=True))
    verb = sentences.get(id(ask.tokens[ask.labels.index(Label.VERB)]))
    return [one for one in ask.tokens if sentences.get(id(one)) == verb]


def is_computed(ask: InterpretedAsk, argument: Argument, value: Any, *, exists: bool) -> bool:
    """Return True if a value is computed from the words of its own slots, by a rule with a single result.

    The rules: a number times a multiplying word (15 k, double 2); a name with different spaces (login, Log in); and the
    name of a file that does not exist yet, each part of which was said: csv template for hours, hours_template.csv.
    """
    words = [one for slot in ask.slots if slot.argument == argument.name for one in tokenize(slot.span.text)]
    if not words or isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        factors = [_TIMES[one.text] for one in words if one.text in _TIMES]
        numbers = [one for one in words if one.kind is Kind.NUMBER]
        if len(factors) != 1 or len(numbers) != 1 or len(words) > 2:
            return False
        return any(one * factors[0] == Decimal(str(value)) for one in readings(numbers[0].text))
    if not isinstance(value, str):
        return False
    folded = fold(value)
    if (
        " " in folded
        and folded.replace(" ", "") == "".join(one.text for one in words)
        and folded.replace(" ", "").isalpha()
    ):
        return True
    if exists or not _FILE.fullmatch(value) or not is_file_name(value):
        return False
    stem, _, ending = folded.rpartition(".")
    named = [one for one in words if one.kind is Kind.LITERAL]
    plain = {one.text for one in words if one.kind is Kind.WORD}
    if named:  # the same name with another extension: notes.txt as html
        return len(named) == 1 and named[0].text.rpartition(".")[0] == stem and {ending} == plain
    return {one for one in _PARTS.split(folded) if one} == plain


def _is_value(said: str, value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        wanted = Decimal(str(value)).normalize()
        return any(wanted in readings(one.text.lstrip("#")) for one in tokenize(said))
    return same_name(said, str(value))


def heard_otherwise(ask: InterpretedAsk, request: Request, call: Call) -> Fault | None:
    """Return a fault if the grammar's own reading contradicts the interpretation.

    A source must not be a goal. If the grammar found a request for the effect, the interpreted ask must be at that
    request.
    """
    slots = [one.span for one in ask.slots]
    held = [*slots, *ask.times]
    if ask.composed and not any(one.role == "content" and not one.default for one in call.arguments):
        return Fault("content", "none")
    if not ask.spans and call.effects.isdisjoint(KEEPING):
        about = call.nouns & {one.stem for one in request.tokens}
        if not about or not any(same_effect(one, call) for one in request.asks):
            return Fault("unasked", "")  # it does not quote any word, and no word asks for it
    near = [one for one in request.asks if any(covers(span, token) for span in ask.spans for token in one.tokens)]
    for one in near:
        if any(covers(span, token) for span in slots for token in one.of(Label.SOURCE)):
            return Fault("source", one.form)
    heard = [
        one
        for one in request.asks
        if one.fault is None and any(covers(span, token) for span in held for token in _of_sentence(one, request))
    ]
    yielding = [one for one in request.asks if same_effect(one, call)]
    clear = [one for one in yielding if one.fault is None]
    named = any("rename" in one.verb.meanings and one.refers for one in near)  # a page of it, call it page.html
    meant = (one in near or one.refers or _points_back(one, ask) for one in yielding)
    if clear and slots and not named and not any(meant):
        return Fault("elsewhere", clear[0].form)
    if heard and not yielding:
        return Fault("effect", heard[0].form)
    if ask.composed:
        wrong = next((one for one in clear if one in near and any(one.of(Label.CONTENT, Label.QUOTE))), None)
        if wrong is not None and _means_that(wrong):
            return None
        fault = Comparison(request, wrong, call).fault() if wrong is not None else None
        return fault if fault is not None and fault.kind == "content" else None
    return None


def left_of_heard(ask: InterpretedAsk, request: Request, call: Call) -> Fault | None:
    """Return a fault if the grammar found a goal for such a call that the interpretation leaves out.

    When a target is emptied, every goal that the grammar found counts: no part of it was named.
    """
    made = [one.name for one in call.arguments if is_computed(ask, one, one.value, exists=call.exists)]
    slots = [one.span for one in ask.slots if one.argument not in made]
    contents = [one.value for one in call.arguments if one.role == "content" and isinstance(one.value, str)]
    empties = bool(contents) and not any(one.strip() for one in contents)
    for heard in request.asks:
        if heard.fault is not None or not same_effect(heard, call):
            continue
        goals = [at for at, label in enumerate(heard.labels) if label in _GOALS]
        mine = [heard.tokens[at] for at in goals if not (at and heard.tokens[at - 1].text in OWNING)]
        if ask.composed:  # draft a list for a weekend, and save it as list.md
            mine.extend(one for other in request.asks if other.previous is heard for one in other.of(*_GOALS))
        elsewhere = any(not any(covers(span, one) for one in mine) for span in slots)
        if not elsewhere and not empties:
            continue
        for at in goals:
            token = heard.tokens[at]
            led = at > 0 and heard.labels[at - 1] is Label.GOAL and heard.tokens[at - 1].text not in OWNING
            told = token.kind is not Kind.LITERAL and any(token.text in fold(text) for text in contents)
            if (led or empties) and _says_something(token, request, call) and not (told or is_covered(ask, token)):
                return Fault("elsewhere", token.raw)
    return None


def _points_back(heard: Ask, ask: InterpretedAsk) -> bool:
    """Return True if an ask has its goal in an earlier message: it names no thing by itself. Ponle otra clave."""
    return all(one.span.back for one in ask.slots) and not any(
        is_file_name(one.text) or one.text[:1] in "@#" or "@" in one.text for one in heard.of(Label.OBJECT, Label.QUOTE)
    )


def _means_that(ask: Ask) -> bool:
    """Return True if the content of an ask refers to text elsewhere: put those numbers in a.md."""
    first = next((one for one in ask.tokens[ask.labels.index(Label.VERB) + 1 :] if one.kind is not Kind.MARK), None)
    return first is not None and first.text in _MEANING_THAT


def _says_something(token: Token, request: Request, call: Call) -> bool:
    names = {stem for one in call.arguments for stem in names_of(one.name)}
    plain = request.lexicon.holds("stop", token.text) or token.stem in call.nouns or token.stem in names
    return token.kind not in STOPS and not plain


def described_name(ask: InterpretedAsk, request: Request, call: Call) -> Fault | None:
    """Return an argument whose value only describes the object: "the notes file" is not its name."""
    for argument in call.arguments:
        values = [one for one in plain_values(argument.value) if argument.control and isinstance(one, str)]
        for one in (slot for slot in ask.slots if slot.argument == argument.name):
            if not any(same_name(one.span.text, value) for value in values):
                continue
            said = [token for token in request.tokens if covers(one.span, token)]
            if len(said) > 1 and request.lexicon.holds("article", said[0].text):
                return Fault("value", argument.name)
    return None


def contents_of(call: Call) -> Iterator[str]:
    """Return the texts of a call that are content."""
    for one in call.arguments:
        if one.role == "content" and not one.control and isinstance(one.value, str):
            yield one.value
