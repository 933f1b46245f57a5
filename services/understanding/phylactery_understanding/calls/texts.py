"""Texts of a call: whether they are dictated so, and whether they replace a text or are added to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_understanding.calls.content.fidelity import fidelity
from phylactery_understanding.calls.content.quotation import is_written_so
from phylactery_understanding.calls.match import MODE_FLAGS, Match
from phylactery_understanding.calls.proposal import Argument, names_of, plain_values
from phylactery_understanding.calls.undictated import undictated
from phylactery_understanding.language.lexicon import Verb
from phylactery_understanding.language.text import Kind, fold, is_disguised, is_file_name, tokenize
from phylactery_understanding.language.times import read_times, same_hour, times_of
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.dictation import said_beside
from phylactery_understanding.requests.model import Fault, Label

_APPENDING: Final = frozenset({"add", "append"})
_CHANGING: Final = frozenset({"edit", "change", "update"})
_MAKING: Final = frozenset({"put", "record", "write", "create", "make"})
_EMPTYING: Final = word_set("emptying")
_MORE: Final = word_set("more")
_LINES: Final = word_set("lines")
_BESIDES: Final = word_set("besides")
_PARTS: Final = word_set("text_parts")
_WITHIN: Final = word_set("changed_within")
_SMALL: Final = frozenset({Label.VERB, Label.ARTICLE, Label.FILLER})


def mode_fault(match: Match) -> Fault | None:
    """Return a fault if a text replaces another although words were to be added, or the reverse.

    A file that is there and was not read in the task is replaced only where the words say so of the whole of it.
    """
    meanings = match.ask.verb.meanings
    flag = next((one for one in match.call.arguments if one.name in MODE_FLAGS), None)
    if flag is None:
        return None
    if match.ask.previous is not None:
        meanings = meanings | (match.ask.previous.verb.meanings & {"edit", "clear"})
    texts = [one.value for one in match.call.arguments if one.role == "content" and isinstance(one.value, str)]
    more = _asks_for_more(match)
    emptied = all(not one.strip() for one in texts)
    if flag.value and emptied:
        return Fault("content", "empty")
    if not flag.value:
        if emptied and match.ask.form not in _EMPTYING and "clear" not in meanings:
            return Fault("mode", "empty")
        if emptied:
            some = any(one.text in _LINES | _PARTS for one in match.ask.tokens)
            return Fault("mode", "part") if some else None
        adds = meanings & _APPENDING and not meanings & {"write", "compose"}
        makes = meanings & {"create", "make"}
        adds = adds or (more and not makes) or _comes_besides(match)
        if adds and not (match.edits and match.call.keeps):
            return Fault("mode", "append")
        if (match.call.exists or _presumes_file(match.ask.verb)) and not _may_replace(match, meanings, texts):
            return Fault("mode", "replace")
    elif "replace" in meanings or not (more or meanings & (_APPENDING | {"put", "record", "write", "create"})):
        return Fault("mode", "add")
    return None


def _asks_for_more(match: Match) -> bool:
    """Return True if the text is one of several: one more line, three more options."""
    texts = [one.text for one in match.ask.tokens]
    return any(one in _MORE and not _LINES.isdisjoint(texts[at + 1 : at + 3]) for at, one in enumerate(texts))


def _comes_besides(match: Match) -> bool:
    """Return True if the text comes in addition to what is there: put eggs in shopping.txt too.

    In front of the verb, or with several files, such a word is about another request or file.
    """
    ask = match.ask
    if sum(is_file_name(one.text) for one in ask.tokens) > 1:
        return False
    verb = next((at for at, label in enumerate(ask.labels) if label is Label.VERB), -1)
    said = f" {' '.join(one.text for one in ask.tokens[verb + 1 :] if one.kind is not Kind.QUOTE)} "
    return any(f" {one} " in said for one in _BESIDES)


def _presumes_file(verb: Verb) -> bool:
    """Return True if a verb is for something that is there: replace, update; not put, which makes a file as well.

    An interpretation, which has no verb of a language, calls a file that it makes replaced.
    """
    changes = verb.meanings & _CHANGING and not verb.meanings & _MAKING
    return bool(verb.language) and bool(changes or "replace" in verb.meanings)


def _may_replace(match: Match, meanings: frozenset[str], texts: Sequence[str]) -> bool:
    """Return True if the words are for a change of what was read, or for a text in the place of a whole file."""
    if not meanings & {"replace", "clear", *_CHANGING}:
        return False
    if match.call.read:
        return match.call.keeps or "replace" in meanings or not meanings & _APPENDING
    return _replaces_all(match, meanings, texts)


def _replaces_all(match: Match, meanings: frozenset[str], texts: Sequence[str]) -> bool:
    """Return True if the words say that a text takes the place of a whole file: replace a.txt with it.

    Named behind the text, the file is where it is to go: in "replace eggs in a.txt" the eggs are what is replaced.
    """
    ask = match.ask
    if not meanings & {"replace", "clear"} or _is_about_lines(match):
        return False
    targets = [fold(str(one.value)) for one in match.call.arguments if one.control]
    places = (at for at, one in enumerate(ask.tokens) if any(_names(one.text, target) for target in targets))
    place = 0 if ask.refers else next(places, len(ask.tokens))
    before = list(zip(ask.tokens[:place], ask.labels, strict=False))
    words = {word.text for one in texts for word in tokenize(one)} | {fold(one.strip()) for one in texts}
    if any(one.text in _PARTS or (one.text in words and label not in _SMALL) for one, label in before):
        return False
    within = bool(before) and before[-1][0].text in _WITHIN
    return not within or [label for _, label in before[:-1]][-1:] not in ([], [Label.VERB])


def _names(text: str, path: str) -> bool:
    return text == path or path.endswith(f"/{text}")


def _is_about_lines(match: Match) -> bool:
    """Return True if lines of a text are named: the first line of it."""
    return any(one.text in _LINES for one in match.ask.tokens)


def dictated_otherwise(match: Match, argument: Argument) -> Fault | None:
    """Return how a text differs from a dictated one, before the words are compared."""
    if any(is_disguised(str(one)) for one in plain_values(argument.value)):
        return Fault("content", "disguise")
    if _misquotes(match, argument):
        return Fault("content", "quote")
    text = "\n".join(map(str, plain_values(argument.value)))
    if "remind" not in match.call.effects and text.strip() and (unsaid := undictated(match, text)):
        return Fault("content", unsaid)
    return Fault("content", "beside") if match.makes and _holds_more(match, argument) else None


def _misquotes(match: Match, argument: Argument) -> bool:
    """Return True if a text is one of the quotations with different case, accents or punctuation."""
    values = {_letters(str(one)): str(one) for one in plain_values(argument.value)}
    found = [(one.raw, values.get(_letters(one.raw))) for one in match.ask.tokens if one.kind is Kind.QUOTE]
    return any(value is not None and not is_written_so(quote, value) for quote, value in found)


def _holds_more(match: Match, argument: Argument) -> bool:
    """Return True if a text has words of the ask that are outside the dictated text."""
    ask = match.ask
    if ask.verbatim:
        return False
    quoted = {one.text for one in ask.tokens if one.kind is Kind.QUOTE}
    said = f" {' '.join(one.text for one in ask.tokens)} "
    texts = [str(one) for one in plain_values(argument.value) if fold(str(one).strip()) not in quoted]
    found = [said_beside(tokenize(one), ask.lexicon) for one in texts]
    return any(one and f" {one} " in said for one in found)


def contents_fault(match: Match, texts: Sequence[Argument]) -> Fault | None:
    """Return how the texts of a call differ from what was to be written or said."""
    values = [str(value) for one in texts for value in plain_values(one.value)]
    if not any(one.strip() for one in values):
        return None
    if "remind" in match.call.effects and (time := other_time(match, values)):
        return Fault("content", time)
    result = fidelity(
        match.ask,
        match.used,
        values,
        match.request,
        match.call.texts,
        edits=match.edits,
        makes=match.makes,
        nouns=match.call.nouns | {stem for one in match.call.arguments for stem in names_of(one.name)},
    )
    match.answered |= result.used
    return result.fault


def other_time(match: Match, values: Sequence[str]) -> str:
    """Return a day or an hour of a reminder's text that was not said; read on another day, tomorrow is wrong."""
    words = [inner for one in match.request.tokens for inner in tokenize(one.raw)]
    said = {one.text for one in words}
    hours = [one for one in read_times(words).features if one[0] == "hour"]
    for one in (token for value in values for token in tokenize(value) if token.text not in said):
        for feature in times_of(one.raw).features:
            if feature[0] == "day" or (feature[0] == "hour" and not any(same_hour(of, feature) for of in hours)):
                return one.raw
    return ""


def _letters(text: str) -> str:
    return "".join(one for one in fold(text) if one.isalnum())
