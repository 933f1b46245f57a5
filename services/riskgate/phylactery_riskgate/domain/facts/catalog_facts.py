"""The facts part of a catalog entry: the roles of arguments, request phrases, and the kind of each output.

It is data for task facts and not part of the tool's contract: changing it does not change the tool's version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.model import Asks, OutputKind, Role

MAX_PHRASES, MAX_PHRASE = 200, 120
"""The number of phrases per language, and the length of one in characters."""
MAX_EXAMPLES, MAX_EXAMPLE = 50, 500
MAX_OUTPUTS = 200
MAX_ROLES = 100
ANY = "*"
"""In a phrase, * matches a few words; in an output's pointer, any item or property."""

_ONE_VALUE = frozenset({"amount", "date", "secret", "url"})
"""Roles whose evidence is the value itself, so they apply only to a value or a list of values."""

OutputPointer = Annotated[str, Field(max_length=pointers.MAX_POINTER, pattern=r"^(?:/|$)")]
Phrases = Annotated[list[Annotated[str, Field(max_length=MAX_PHRASE)]], Field(max_length=MAX_PHRASES)]
Examples = Annotated[list[Annotated[str, Field(max_length=MAX_EXAMPLE)]], Field(max_length=MAX_EXAMPLES)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PhrasesEntry(_Strict):
    """Phrases by language."""

    en: Phrases = []
    es: Phrases = []


class ExamplesEntry(_Strict):
    """Example requests by language."""

    en: Examples = []
    es: Examples = []


class AsksEntry(_Strict):
    """How users ask for what a tool does."""

    phrases: PhrasesEntry = PhrasesEntry()
    examples: ExamplesEntry = ExamplesEntry()


class FactsEntry(_Strict):
    """The part of a tool's entry from which task facts are computed; every field is optional."""

    roles: Annotated[dict[str, Role], Field(max_length=MAX_ROLES)] = {}
    asks: AsksEntry = AsksEntry()
    output: Annotated[dict[OutputPointer, OutputKind], Field(max_length=MAX_OUTPUTS)] = {}
    registry: Annotated[list[OutputPointer], Field(max_length=MAX_OUTPUTS)] = []


Fault = tuple[tuple[str | int, ...], str]
"""The place below the entry, and the fault."""


def faults(entry: FactsEntry, schema_of: Callable[[str], Mapping[str, Any] | None]) -> Iterator[Fault]:
    """Return the faults of an entry; ``schema_of`` returns an argument's schema, or None.

    Raises:
        ValueError: a pointer is not a valid JSON Pointer.
    """
    for text, role in entry.roles.items():
        fault = _role_fault(text, role, schema_of)
        if fault:
            yield ("roles", text), fault
    yield from _asks_faults(entry.asks)
    for text in entry.output:
        fault = _pointer_fault(text)
        if fault:
            yield ("output", text), fault
    for index, text in enumerate(entry.registry):
        fault = _pointer_fault(text)
        if not fault and entry.output.get(text) == "free":
            fault = f"{text} is free text, which anyone may have written, so it cannot be a registry"
        if not fault and text in entry.registry[:index]:
            fault = f"repeats {text}"
        if fault:
            yield ("registry", index), fault


def asks_of(entry: AsksEntry) -> Asks:
    """Return how users ask, with whitespace normalized."""
    return Asks(
        phrases_en=_plain(entry.phrases.en),
        phrases_es=_plain(entry.phrases.es),
        examples_en=_plain(entry.examples.en),
        examples_es=_plain(entry.examples.es),
    )


def _plain(texts: list[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in texts)


def _role_fault(text: str, role: Role, schema_of: Callable[[str], Mapping[str, Any] | None]) -> str:
    try:
        part = schema_of(text) if text else None
    except ValueError as error:
        return str(error)
    if part is None:
        return f"{text or 'an empty pointer'} leads to no property of the schema"
    form, name, _ = one_form(part)
    if name == "array":
        form, name, _ = one_form(form.get("items"))
    unfit = {"boolean", "object", *(("integer", "number") if role == "url" else ())}
    return f"{text} is of type {name} and can be no {role}" if role in _ONE_VALUE and name in unfit else ""


def _asks_faults(asks: AsksEntry) -> Iterator[Fault]:
    for kind, languages in (("phrases", asks.phrases), ("examples", asks.examples)):
        for language, texts in (("en", languages.en), ("es", languages.es)):
            for index, text in enumerate(texts):
                fault = _text_fault(text, phrase=kind == "phrases")
                if fault:
                    yield ("asks", kind, language, index), fault


def _text_fault(text: str, *, phrase: bool) -> str:
    words = text.split()
    if not all(char.isprintable() for char in " ".join(words)):
        return "contains invisible characters"
    if not any(char.isalnum() for char in text):
        return "holds no word" + (", so it would be found in everything" if phrase else "")
    if phrase and any(ANY in word and word != ANY for word in words):
        return f"{ANY} stands alone between words"
    return ""


def _pointer_fault(text: str) -> str:
    try:
        tokens = pointers.parse(text)
    except ValueError as error:
        return str(error)
    if any(ANY in token and token != ANY for token in tokens):
        return f"{ANY} stands alone between slashes"
    return ""
