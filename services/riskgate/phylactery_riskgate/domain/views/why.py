"""Why a person is asked about a call and what a yes does: sentences for the card, from the facts of its decision.

It is the one place that says so. The sentences name what the person wrote and what the call holds, and nothing
internal: no class, no policy id, no name of a fact. What they quote is made visible, what is sensitive is not quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from phylactery_chassis.inspection import Category
from phylactery_chassis.util.messages import read_messages
from phylactery_understanding.language.text import fold, tokenize

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.catalog.executed import is_executed
from phylactery_riskgate.domain.facts.inspected import findings_in
from phylactery_riskgate.domain.intent.facts import is_covered, role_of
from phylactery_riskgate.domain.intent.model import CLEAR, LISTED, NAMED, POINTED, Evidence, TaskFacts
from phylactery_riskgate.domain.intent.origin.origins import IDLE, OTHER_SPELLING
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Mark
from phylactery_riskgate.domain.policy.usage import amount_of, amount_text, currency_of
from phylactery_riskgate.domain.views.visible import make_visible

MAX_LINES: Final = 8
_MAX_VALUE: Final = 80
_MAX_TITLE: Final = 200
_MAX_NAMED: Final = 2
"""The number of values that are said not to be the person's."""
_MAX_REACHED: Final = 3
_SHORTEST_NAME: Final = 3
_ENGLISH: Final = read_messages("phylactery_riskgate.i18n", "en")
_SPANISH: Final = read_messages("phylactery_riskgate.i18n", "es")
_SURE: Final = frozenset({"negation", "exclusion", "condition", "question", "hypothetical", "past", "future", "value"})
"""Doubts that are said of the words that are quoted. Of others the words are quoted, and not what was taken them for:
"make sure" is no joke, whatever it was weighed as."""
_UNQUOTED: Final = _SURE | {"unasked", "used-up", "pasted", "length", "mode", "time", "content", "leftover", "trailing"}
"""Doubts that make sense without the words."""
_STRICT: Final = frozenset({"principal", "object", "amount", "url", "secret"})
_CARD: Final = "card"
PACKAGED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("write.ask-self", "write.asked-ask-self", "write.ask-peer", "write.masked", "write.cut-short"), ""
    ),
    **dict.fromkeys(("stakes.ask-self", "stakes.own-ask-self"), ""),
    **dict.fromkeys(("submission.self", "submission.ask-self"), "form"),
    "submission.ask-peer": "form_other",
    **dict.fromkeys(("target.from-text", "url.from-text"), "address"),
    **dict.fromkeys(("critical.ask-dual", "critical.dual"), "two"),
    "interpreter.ask-self": "reader",
}
"""Policies of the packaged bundles that can ask, and the sentence each adds to what the facts say. The titles of others
are the operator's own words to people, and are said as they are."""


class Line(NamedTuple):
    """A sentence of a card in both languages, with a stable code."""

    code: str
    message: str
    message_es: str


def why_asked(
    tool: CatalogTool,
    bound: BoundCall,
    told: TaskFacts,
    policies: Sequence[tuple[str, str, str]],
    *,
    own_words: bool,
) -> tuple[Line, ...]:
    """Return why a call is asked about, then what a yes does that cannot be told from its arguments.

    ``policies`` are those that require the approval, as id, title and Spanish title. With ``own_words`` the words of
    the request are quoted: nobody but the requester reads them.
    """
    reasons = dict.fromkeys((*_of_policies(policies), *_of_task(tool, bound, told, own_words=own_words)))
    effects = dict.fromkeys((*_of_content(tool, bound), *_of_effect(tool, bound)))
    return (*reasons, *effects)[:MAX_LINES] or (_line("always"),)


def _line(code: str, **values: str) -> Line:
    return Line(code.upper(), _ENGLISH(f"why_{code}", **values), _SPANISH(f"why_{code}", **values))


def _of_policies(policies: Sequence[tuple[str, str, str]]) -> Iterator[Line]:
    for name, title, title_es in policies:
        if name not in PACKAGED:
            if title:
                yield Line("POLICY", _sentence(title), _sentence(title_es or title))
        elif PACKAGED[name]:
            yield _line(PACKAGED[name])


def _sentence(title: str) -> str:
    text = make_visible(title, _MAX_TITLE).text
    return text if text[-1:] in ".!?…" else f"{text}."


def _of_task(tool: CatalogTool, bound: BoundCall, told: TaskFacts, *, own_words: bool) -> Iterator[Line]:
    if not told.shown:
        return
    if told.masked:
        yield Line("MASKED", _ENGLISH("reason_VALUE_MASKED"), _SPANISH("reason_VALUE_MASKED"))
    if told.cut_short:
        yield Line("CUT_SHORT", _ENGLISH("reason_READ_IN_PART"), _SPANISH("reason_READ_IN_PART"))
    strange = list(_strange(tool, bound, told))
    is_argument = told.missing[1] in tool.schema.get("properties", {})  # its name, not a word of the person's
    yield from _doubt(told, own_words=own_words and not is_argument, explained=bool(strange))
    yield from strange
    if told.signals:
        yield _line("dictated")


def _doubt(told: TaskFacts, *, own_words: bool, explained: bool) -> Iterator[Line]:
    """Yield why the words do not clearly ask for the call, with the words that are not clear."""
    if told.intent >= CLEAR:
        return
    kind = told.missing[0]
    said = _quoted(told) if own_words else ""
    if said and kind in _SURE:
        yield _both("UNCLEAR", "why_quoted", f"doubt_{kind}", words=said)
    elif said:
        yield _line("unclear", words=said)
    elif kind == "value" and explained:  # which one it is, is said
        return
    else:
        known = kind if kind in _UNQUOTED and f"doubt_{kind}" in _ENGLISH else "any"
        yield Line("UNCLEAR", _ENGLISH(f"doubt_{known}"), _SPANISH(f"doubt_{known}"))


def _both(code: str, key: str, sentence: str, **values: str) -> Line:
    return Line(
        code,
        _ENGLISH(key, sentence=_ENGLISH(sentence), **values),
        _SPANISH(key, sentence=_SPANISH(sentence), **values),
    )


def _quoted(told: TaskFacts) -> str:
    """Return the words that are not clear as the person wrote them; empty if what is kept is no words of theirs."""
    wanted = [token.text for token in tokenize(told.missing[1])]
    words = [fold(one) for one in told.intent_words]
    places = range(len(words) - len(wanted) + 1 if wanted else 0)
    place = next((at for at in places if words[at : at + len(wanted)] == wanted), None)
    return "" if place is None else _text(" ".join(told.intent_words[place : place + len(wanted)]))


def _strange(tool: CatalogTool, bound: BoundCall, told: TaskFacts) -> Iterator[Line]:
    """Yield the values that decide where the effect goes and that the person did not write, the strangest first."""
    strange = [
        one
        for one in told.arguments
        if one.origin > NAMED
        and one.place not in IDLE
        and role_of(tool, one.path) in _STRICT
        and (is_covered(one.path, tool.controls) or tool.effect == "read")
    ]
    for one in strange[:_MAX_NAMED]:
        values = _values(tool, bound, [one.path])
        if values:
            yield _line(_strangeness(tool, one, told, values), value=_listed(values))


def _strangeness(tool: CatalogTool, one: Evidence, told: TaskFacts, values: Sequence[str]) -> str:
    if one.place == OTHER_SPELLING:
        return "spelled"
    if one.origin == LISTED:
        return "listed"
    if one.origin == POINTED:
        return "pointed"
    if role_of(tool, one.path) != "principal":
        return "unsaid"
    said = {fold(word) for word in told.intent_words if len(word) >= _SHORTEST_NAME}
    named = any(not said.isdisjoint(fold(value).replace("@", " ").replace(".", " ").split()) for value in values)
    return "unsaid" if named else "whom"


def _of_content(tool: CatalogTool, bound: BoundCall) -> Iterator[Line]:
    if tool.effect == "read":
        return
    kinds = [one.kind for name, value in bound.arguments.items() for one in findings_in(name, value)]
    if any(str(kind) == _CARD for kind in kinds):
        yield _line("card")
    if any(kind.category is Category.SECRET for kind in kinds):
        yield _line("secret")


def _of_effect(tool: CatalogTool, bound: BoundCall) -> Iterator[Line]:
    """Yield what the effect costs, whom it reaches, and what it does that cannot be taken back."""
    if tool.effect == "read":
        return
    if tool.spends or tool.amount:
        yield _spending(tool, bound)
    if tool.reach == "people" and (whom := _values(tool, bound, _reaching(tool))):
        yield _line("arrives", whom=_listed(whom))
    if tool.reach == "public":
        yield _line("public")
    if tool.destroys:
        yield _line("destroys")
    if tool.guards:
        yield _line("guards")
    if any(is_executed(name) for name in _values(tool, bound, tool.paths)):
        yield _line("executed")
    if tool.effect == "irreversible" or tool.undo == "none":
        yield _line("final")


def _spending(tool: CatalogTool, bound: BoundCall) -> Line:
    amount, currency = amount_of(tool, bound), currency_of(tool, bound)
    if amount is None or currency is None or any(is_covered(tool.amount, (one,)) for one in tool.sensitive):
        return _line("spends_unknown")
    english = f"{amount_text(amount)} {make_visible(currency, _MAX_VALUE).text}".strip()
    spanish = english.replace(".", ",") if Decimal(amount) % 10_000 else english
    return Line("SPENDS", _ENGLISH("why_spends", amount=english), _SPANISH("why_spends", amount=spanish))


def _reaching(tool: CatalogTool) -> Sequence[str]:
    """Return the arguments that say whom a call reaches."""
    return tool.recipients or tuple(path for path, role in tool.roles.items() if role == "principal")


def _values(tool: CatalogTool, bound: BoundCall, paths: Sequence[str]) -> list[str]:
    """Return the texts and numbers at some places of a call, visible, without those that are sensitive."""
    found: dict[str, None] = {}
    for path in paths:
        hidden = any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in tool.sensitive)
        waiting = [] if hidden else [pointers.value_at(bound.arguments, path)]
        while waiting:
            one = waiting.pop(0)
            if isinstance(one, list | dict):
                waiting[:0] = one if isinstance(one, list) else one.values()
            elif isinstance(one, str | int | float) and not isinstance(one, bool):
                found[_text(one)] = None
            if len(found) > _MAX_VALUE:
                break
    return list(found)


def _text(value: Any) -> str:
    """Return a value on one line with nothing in it that could deceive, or end the quotation it stands in."""
    shown = make_visible(str(value), _MAX_VALUE)
    plain = shown.text if Mark.CUT in shown.marks else shown.text.strip()
    return plain.replace("“", '"').replace("”", '"').replace("«", '"').replace("»", '"')


def _listed(values: Sequence[str]) -> str:
    more = len(values) - _MAX_REACHED
    return ", ".join(values[:_MAX_REACHED]) + (f", … (+{more})" if more > 0 else "")
