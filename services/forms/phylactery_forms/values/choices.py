"""Choices among named options, and yes or no."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from phylactery_understanding.replies.answers import read_answer

from phylactery_forms.values.message import Message, alternatives, filler, fold, groups
from phylactery_forms.values.model import Choice, ChoiceOptions, Context, Found, Language, Options, Problem

_ORDINALS: Final = {word: int(place) for place, some in groups("option_ordinals").items() for word in some}
_ORDINAL: Final = re.compile(rf"(?<![\w]){alternatives(_ORDINALS)}(?![\w])")
_NUMBER: Final = re.compile(
    r"(?<![\w.,])(?:#|n[.º°]?\s?|no\.\s?)?(\d{1,3})(?:[.ºª°)]|st|nd|rd|th|er|ro|do|ra|da|to|ta)?(?![\w]|[.,]\d)"
)
_LETTER: Final = re.compile(r"(?:^|(?:option|opcion|letra|letter|la|the)\s+)([a-z])(?:[.)]|$)")
_WORD: Final = re.compile(r"[^\W_]+")
_TYPO_LENGTH: Final = 4
_SIMILAR: Final = 0.82
_MOST_WORDS: Final = 40


def find_choice(options: Options, message: Message, _: Context) -> list[Found] | Problem:
    """Return the options that a message names: by label, synonym or id, by number or place, or with a small slip."""
    assert isinstance(options, ChoiceOptions)
    named = _without_negated(message, _longest(list(_named(options.choices, message))))
    found = _placed(named, message)
    if not found or not any(one.whole for one in found):
        numbered = [one for one in _numbered(options.choices, message) if not found or one.whole]
        found = [*found, *numbered] if not any(one.whole for one in numbered) else [*numbered, *found]
    if not found:
        found = list(_similar(options.choices, message)) or list(_partly(options.choices, message))
    values = {one.value for one in found}
    if len(values) > 1 and len(named) > 1:
        return Problem("several_options") if not any(one.whole for one in found) else found
    return found or _tried(options.choices, message)


def _tried(choices: Sequence[Choice], message: Message) -> list[Found] | Problem:
    """Return the problem of a number outside the list, or nothing."""
    match = _NUMBER.fullmatch(message.plain.strip())
    return Problem("not_an_option", {"options": str(len(choices))}) if match else []


def _named(choices: Sequence[Choice], message: Message) -> Iterator[tuple[Choice, int, int]]:
    for choice in choices:
        for name in {fold(one) for one in choice.names()}:
            if name:
                expression = re.escape(name).replace(r"\ ", r"\s+")
                before = r"(?<![^\W_])" if name[0].isalnum() else ""
                after = r"(?:e?s)?(?![^\W_])" if name[-1].isalpha() else r"(?![^\W_])" if name[-1].isdigit() else ""
                for match in re.finditer(before + expression + after, message.plain):
                    yield choice, *match.span()


def _longest(spans: Sequence[tuple[Choice, int, int]]) -> list[tuple[Choice, int, int]]:
    """Return the spans that lie in no longer one of another option."""
    kept = list[tuple[Choice, int, int]]()
    for choice, start, end in sorted(spans, key=lambda one: (one[1] - one[2], one[1])):
        inside = any(start >= low and end <= high and other != choice for other, low, high in kept)
        if not inside and not any(other == choice for other, _, _ in kept):
            kept.append((choice, start, end))
    return sorted(kept, key=lambda one: one[1])


def _without_negated(message: Message, spans: Sequence[tuple[Choice, int, int]]) -> list[tuple[Choice, int, int]]:
    """Return the options that are not refused: not the red one, la roja no, en vez de."""
    kept = [one for one in spans if not _NEGATED.search(message.plain[: one[1]])]
    return kept if kept or not spans else list(spans[:0])


_NEGATED: Final = re.compile(
    r"(?:^|[\s,;.(])(?:no\s+(?:quiero\s+)?(?:el|la|los|las)|not|instead of|rather than|en vez de|en lugar de"
    r"|don'?t want)"
    r"\s+(?:the\s+|an?\s+|el\s+|la\s+|los\s+|las\s+)?$"
)


def _placed(spans: Sequence[tuple[Choice, int, int]], message: Message) -> list[Found]:
    words = filler("choice")
    if len(spans) == 1:
        choice, start, end = spans[0]
        own = frozenset(word for name in choice.names() for word in _WORD.findall(fold(name)))
        return [message.found(choice.id, start, end, words | own)]
    return [message.found(choice.id, start, end, words) for choice, start, end in spans]


def _numbered(choices: Sequence[Choice], message: Message) -> Iterator[Found]:
    """Yield the options that a message names by their place."""
    words = filler("choice")
    for match in _ORDINAL.finditer(message.plain):
        place = _ORDINALS[" ".join(match[0].split())]
        place = len(choices) if place < 0 else place
        if 0 < place <= len(choices):
            yield message.found(choices[place - 1].id, *match.span(), words)
    for match in _NUMBER.finditer(message.plain):
        place = int(match[1])
        if 0 < place <= len(choices):
            yield message.found(choices[place - 1].id, *match.span(), words)
    letter = _LETTER.fullmatch(message.plain.strip())
    if letter is not None and ord(letter[1]) - ord("a") < len(choices):
        choice = choices[ord(letter[1]) - ord("a")]
        yield message.found(choice.id, 0, len(message.text), words)


def _partly(choices: Sequence[Choice], message: Message) -> Iterator[Found]:
    """Yield the one option of whose name a message says a part, and nothing else: a visit, of a first visit."""
    spoken = filler("choice")
    spans = [one.span() for one in _WORD.finditer(message.plain)]
    said = {message.plain[start:end] for start, end in spans} - spoken
    if not said or any(len(one) < _TYPO_LENGTH for one in said) or "?" in message.plain:
        return
    fitting = [choice for choice in choices if any(said <= {*_WORD.findall(fold(name))} for name in choice.names())]
    if len(fitting) == 1:
        yield message.found(fitting[0].id, spans[0][0], spans[-1][1], spoken)


def _similar(choices: Sequence[Choice], message: Message) -> Iterator[Found]:
    """Yield the one option whose name is written with a small slip."""
    spans = [one.span() for one in _WORD.finditer(message.plain)][:_MOST_WORDS]
    best = dict[str, tuple[float, int, int]]()
    for choice in choices:
        for name in {fold(one) for one in choice.names()}:
            size = len(name.split())
            if len(name) < _TYPO_LENGTH or not name.replace(" ", "").isalpha():
                continue
            for at in range(len(spans) - size + 1):
                start, end = spans[at][0], spans[at + size - 1][1]
                near = _similarity(name, message.plain[start:end])
                if near > best.get(choice.id, (0.0, 0, 0))[0]:
                    best[choice.id] = near, start, end
    ranked = sorted(((near, name, start, end) for name, (near, start, end) in best.items()), reverse=True)
    clear = len(ranked) == 1 or (len(ranked) > 1 and ranked[0][0] - ranked[1][0] > 0.1)
    if ranked and clear and ranked[0][0] >= _SIMILAR:
        _, name, start, end = ranked[0]
        yield message.found(name, start, end, filler("choice"))


def _similarity(name: str, said: str) -> float:
    if abs(len(name) - len(said)) > 2 or name[0] != said[0]:
        return 0.0
    return SequenceMatcher(None, name, said, autojunk=False).ratio()


def check_choice(options: Options, value: str, context: Context) -> str | Problem:
    """Return the id of an option, given as id, label, synonym or number."""
    assert isinstance(options, ChoiceOptions)
    if any(value == one.id for one in options.choices):
        return value
    from phylactery_forms.values.message import MAX_CHARACTERS, read_message

    if len(value) <= MAX_CHARACTERS:
        found = find_choice(options, read_message(value), context)
        if isinstance(found, list) and found and found[0].whole:
            return found[0].value
    return Problem("not_an_option", {"options": str(len(options.choices))})


def show_choice(options: Options, value: str, language: Language) -> str:
    """Return the label of an option."""
    assert isinstance(options, ChoiceOptions)
    return next((one.label(language) for one in options.choices if one.id == value), value)


# ---- yes or no ---------------------------------------------------------------

_ANSWERS: Final = {word: str(key) for key, some in groups("yes_no").items() for word in some}
_ANSWER: Final = re.compile(rf"(?<![^\W_]){alternatives(_ANSWERS)}(?![^\W_])")
_LEADING: Final = re.compile(rf"^[^\w?¿]*(?P<word>{alternatives(_ANSWERS)})(?=\s*[,.;!]|[^\w?¿]*$)")


def find_yes_no(_: Options, message: Message, __: Context) -> list[Found] | Problem:
    """Return yes or no where a message is clearly one of them, alone or before a comma and more."""
    answer = read_answer(message.text)
    if answer != "unclear":
        return [Found(answer, *message.span(0, len(message.text)), whole=True)]
    if re.search(r"[?¿]", message.plain):
        return []
    said = [(one.start(), one.end(), _ANSWERS[" ".join(one[0].split())]) for one in _ANSWER.finditer(message.plain)]
    values = {value for _, _, value in said}
    rest = _WORD.findall(_ANSWER.sub(" ", message.plain))
    if len(values) == 1 and all(one in filler("yes_no") for one in rest):
        return [Found(values.pop(), *message.span(0, len(message.text)), whole=True)]
    match = _LEADING.match(message.plain)
    if match is None:
        return []
    if len(values) > 1:
        return Problem("unclear_answer")
    return [message.found(_ANSWERS[" ".join(match["word"].split())], *match.span("word"), filler("yes_no"))]


def check_yes_no(_: Options, value: str, __: Context) -> str | Problem:
    """Return "yes" or "no"."""
    answer = value if value in {"yes", "no"} else read_answer(value)
    return answer if answer in {"yes", "no"} else Problem("not_yes_or_no")


def show_yes_no(value: str, language: Language) -> str:
    """Return the answer in a language."""
    return {"es": {"yes": "sí", "no": "no"}, "en": {"yes": "yes", "no": "no"}}[language].get(value, value)
