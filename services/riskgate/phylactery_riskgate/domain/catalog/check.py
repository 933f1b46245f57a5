"""Catalog completeness check: what tool entries leave unspecified, and the approvals each gap will cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from phylactery_riskgate.domain.catalog.drafting.phrases import heard, written
from phylactery_riskgate.domain.catalog.drafting.vocabulary import GOALS
from phylactery_riskgate.domain.documents import Document
from phylactery_riskgate.domain.intent.understood import is_heard
from phylactery_riskgate.domain.model import CatalogTool

LANGUAGES = {"en": "English", "es": "Spanish"}
_SHOWN = 80
"""The maximum number of characters quoted from an example or a list."""


_TELLING = 3
"""The number of consecutive small words that are meaningful after all."""


class Gap(StrEnum):
    """The kinds of gap in a catalog entry; the names are stable."""

    NO_PHRASES = "NO_PHRASES"
    NO_EXAMPLES = "NO_EXAMPLES"
    NO_ROLE = "NO_ROLE"
    NO_OUTPUT = "NO_OUTPUT"
    REGISTRY_WITHOUT_KIND = "REGISTRY_WITHOUT_KIND"
    PHRASE_TOO_BROAD = "PHRASE_TOO_BROAD"
    EXAMPLE_UNHEARD = "EXAMPLE_UNHEARD"
    SAME_WORDS = "SAME_WORDS"


@dataclass(frozen=True, slots=True)
class Missing:
    """One gap in a tool's entry: its place in tools.yaml, its kind and its cost."""

    gap: Gap
    tool: str
    line: int
    message: str
    cost: str


@dataclass(frozen=True, slots=True)
class Said:
    """How much one tool's entry specifies; ``roles`` is over its controls."""

    tool: str
    effect: str
    phrases: Mapping[str, int]
    examples: Mapping[str, int]
    controls: int
    roles: int
    outputs: int


def said(tool: CatalogTool) -> Said:
    """Count what an entry specifies."""
    return Said(
        tool.name,
        "none" if tool.effectless else tool.effect,
        {language: len(_phrases(tool, language)) for language in LANGUAGES},
        {language: len(_examples(tool, language)) for language in LANGUAGES},
        len(tool.controls),
        sum(_has_role(tool, control) for control in tool.controls),
        len(tool.outputs),
    )


def missing(tools: Mapping[str, CatalogTool], document: Document) -> tuple[Missing, ...]:
    """Return the gaps of a catalog, tool by tool; ``document`` is the tools.yaml it was read from."""
    found: list[Missing] = []
    places = {entry["name"]: index for index, entry in enumerate(document.data["tools"])}
    for tool in tools.values():
        for gap, place, message, cost in (*_asking(tool), *_reading(tool)):
            line = document.line(("tools", places.get(tool.name, 0), *place))
            found.append(Missing(gap, tool.name, line, message, cost))
    for name, gap, place, message, cost in _shared(tools.values()):
        found.append(Missing(gap, name, document.line(("tools", places.get(name, 0), *place)), message, cost))
    return tuple(sorted(found, key=lambda one: places.get(one.tool, 0)))


_Place = tuple[str | int, ...]
_Found = tuple[Gap, _Place, str, str]


def _phrases(tool: CatalogTool, language: str) -> tuple[str, ...]:
    return tool.asks.phrases_en if language == "en" else tool.asks.phrases_es


def _examples(tool: CatalogTool, language: str) -> tuple[str, ...]:
    return tool.asks.examples_en if language == "en" else tool.asks.examples_es


def _asking(tool: CatalogTool) -> Iterator[_Found]:
    """Return the gaps that prevent recognizing a request for the tool; nobody asks for a tool for forms alone."""
    if tool.forms_only:
        return
    for language, name in LANGUAGES.items():
        phrases, examples = _phrases(tool, language), _examples(tool, language)
        if not phrases:
            yield Gap.NO_PHRASES, ("asks", "phrases"), f"no phrases in {name}", _unasked_cost(tool, name)
        for index, phrase in enumerate(phrases):
            if not heard(phrase) and len(written(phrase)) < _TELLING:
                place = ("asks", "phrases", language, index)
                cost = "it matches many other requests, which then count as requests for this tool"
                yield Gap.PHRASE_TOO_BROAD, place, f"{phrase!r} consists only of function words", cost
        if not examples:
            cost = f"no example tests its phrases in {name}"
            yield Gap.NO_EXAMPLES, ("asks", "examples"), f"no examples in {name}", cost
        for index, example in enumerate(examples):
            if phrases and not is_heard(tool, example):
                place = ("asks", "examples", language, index)
                message = f"no phrase of it is in its own example {_short(example)!r}"
                yield Gap.EXAMPLE_UNHEARD, place, message, "such a request is not understood and asks"


def _unasked_cost(tool: CatalogTool, name: str) -> str:
    if tool.effect == "read":
        return f"requests in {name} are not recognized; a policy that requires a request for reads blocks it"
    return f"requests in {name} are not understood: its calls ask"


def _reading(tool: CatalogTool) -> Iterator[_Found]:
    """Return the gaps that prevent tracing where a value comes from."""
    for index, control in enumerate(tool.controls):
        if not _has_role(tool, control):
            cost = "it counts as an object: a recipient, an amount or a link is not weighed as one"
            yield Gap.NO_ROLE, ("controls", index), f"the control {control} has no role", cost
    if not tool.outputs:
        cost = "its whole result counts as free text: calls that use it ask or are blocked"
        yield Gap.NO_OUTPUT, ("output",), "no kinds of output fields", cost
        return
    for index, text in enumerate(tool.registry):
        if all(text != place for place, _ in tool.outputs):
            cost = "it is trusted as a whole, and its kind is unknown"
            yield Gap.REGISTRY_WITHOUT_KIND, ("registry", index), f"the registry {text} has no kind in output", cost


def _has_role(tool: CatalogTool, control: str) -> bool:
    """Return True if a control, or everything it covers, has a role."""
    return any(
        control == role or control.startswith(f"{role}/") or role.startswith(f"{control}/") for role in tool.roles
    )


def _shared(tools: Iterable[CatalogTool]) -> Iterator[tuple[str, Gap, _Place, str, str]]:
    """Return phrases claimed by two tools, where a request for one would also permit the other."""
    claimed: dict[tuple[str, ...], CatalogTool] = {}
    for tool in tools:
        for language in LANGUAGES:
            for index, phrase in enumerate(_phrases(tool, language)):
                first = claimed.setdefault(written(phrase), tool)
                if first.name == tool.name or first.effect == tool.effect == "read" or phrase in GOALS:
                    continue
                place = ("asks", "phrases", language, index)
                cost = f"a request for {first.name} is also read as one for {tool.name}, and vice versa"
                yield tool.name, Gap.SAME_WORDS, place, f"{phrase!r} is a phrase of {first.name} too", cost


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
