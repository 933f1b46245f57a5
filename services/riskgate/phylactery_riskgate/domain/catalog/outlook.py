"""Preview of a bundle's decisions on a typical call of each tool, by the facts of its task.

The facts are set by hand: the preview covers the policies, not the understanding of requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.bundle.bundle import Bundle, default_bundle_folder, read_bundle
from phylactery_riskgate.domain.bundle.files import SETTINGS_FILE, TESTS_FOLDER, TOOLS_FILE, BundleFiles, read_folder
from phylactery_riskgate.domain.catalog.catalog import compile_validator
from phylactery_riskgate.domain.catalog.stakes import UNSPECIFIED
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.facts.catalog_facts import ANY
from phylactery_riskgate.domain.intent.model import FOREIGN, LISTED, NAMED, UNSHOWN, Evidence, TaskFacts
from phylactery_riskgate.domain.model import (
    Caller,
    CallSite,
    CatalogTool,
    Counters,
    Decision,
    RawCall,
    Role,
    Stakes,
    Verdict,
)
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import MAX_INTENT, known
from phylactery_riskgate.domain.policy.usage import Charge

_PLACE: Final = "the outlook"
_MAX_DEPTH, _MAX_ITEMS, _MAX_TEXT = 8, 100, 10_000
_SOMETHING: Final = "something"
_ALLOW: Final = "ALLOW"
_STAKES: Final[tuple[Stakes, ...]] = ("low", "medium", "high", UNSPECIFIED, "critical")
_TEXTS: Final = ("something", "a", "A1", "1", "abc123", "2030-01-02", "#general", "F-7", "AB", "ABC", "EUR")
"""Candidate values for a text with a pattern or a length limit."""
_FORMS: Final[dict[str, str]] = {
    "email": "ana@example.com",
    "uri": "https://example.com/",
    "date": "2030-01-02",
    "date-time": "2030-01-02T09:00:00Z",
    "time": "09:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_SAID: Final[dict[Role, str]] = {"principal": "ana@example.com", "url": "https://example.com/", "date": "2030-01-02"}


class Situation(StrEnum):
    """Task facts to preview a call under."""

    ASKED = "asked"
    LISTED = "listed"
    UNASKED = "unasked"
    FOREIGN = "foreign"


MEANINGS: Final[Mapping[Situation, str]] = {
    Situation.ASKED: "the user asked for it in these words and wrote every value",
    Situation.LISTED: "the user asked for it, and one value came from a list or a registry",
    Situation.UNASKED: "the user wrote every value and did not ask for it",
    Situation.FOREIGN: "the user asked for it, and one value was only in a text that nobody pointed to",
}
_FACTS: Final[Mapping[Situation, tuple[int, int]]] = {
    Situation.ASKED: (MAX_INTENT, NAMED),
    Situation.LISTED: (MAX_INTENT, LISTED),
    Situation.UNASKED: (0, NAMED),
    Situation.FOREIGN: (MAX_INTENT, FOREIGN),
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """One tool's typical request, and the decision on its call in each situation.

    ``decisions`` is empty if no call that fits the tool's schema could be generated. ``stakes`` are those of the call,
    and ``serious`` says what is serious about the tool: irreversible, spends, destroys, guards, or whom it reaches.
    """

    tool: str
    request: str
    arguments: Mapping[str, Any]
    decisions: Mapping[Situation, str]
    stakes: Stakes
    serious: tuple[str, ...]

    @property
    def unasked(self) -> tuple[Situation, ...]:
        """Return the situations in which the call would run without a question."""
        return tuple(one for one, decision in self.decisions.items() if decision == _ALLOW)


def runs_unasked(expected: Iterable[Outlook], tools: Mapping[str, CatalogTool]) -> tuple[Outlook, ...]:
    """Return the calls that change something and would run without a question, what can do most harm first."""
    found = [one for one in expected if tools[one.tool].effect != "read" and one.unasked]
    return tuple(sorted(found, key=lambda one: (_weight(one), _STAKES.index(one.stakes)), reverse=True))


def _weight(one: Outlook) -> int:
    """Return how serious a tool is; what cannot be undone or spends outweighs everything else."""
    return len(one.serious) + 10 * len({"irreversible", "spends", "destroys"} & {*one.serious})


def _serious(tool: CatalogTool) -> Iterator[str]:
    if tool.effect == "irreversible":
        yield "irreversible"
    yield from (name for name in ("spends", "destroys", "guards") if getattr(tool, name))
    if tool.reach in {"people", "public"}:
        yield f"reaches {tool.reach}" if tool.reach == "people" else "public"


def outlooks(bundle: Bundle) -> tuple[Outlook, ...]:
    """Return the outlook of every tool, in catalog order."""
    engine = DecisionEngine(bundle)
    return tuple(_outlook(engine, tool) for tool in bundle.tools.values())


def packaged_bundle(tools_yaml: str) -> Bundle:
    """Return the packaged bundle with another catalog, for a tools.yaml without a bundle.

    Raises:
        BundleError: the catalog cannot be used.
    """
    packaged = read_folder(default_bundle_folder())
    texts = {name: text for name, text in packaged.texts.items() if not name.startswith(f"{TESTS_FOLDER}/")}
    assert SETTINGS_FILE in texts, "the packaged bundle has settings"
    return read_bundle(BundleFiles({**texts, TOOLS_FILE: tools_yaml}, packaged.hash))


def request_of(tool: CatalogTool) -> str:
    """Return the first example, or the first phrase with its gaps shown as "…"; empty if there is neither."""
    asks = tool.asks
    phrases = (*asks.phrases_en, *asks.phrases_es)
    spoken = [*asks.examples_en, *asks.examples_es, *(one for one in phrases if ANY in one), *phrases]
    return " ".join("…" if word == ANY else word for word in spoken[0].split()) if spoken else ""


def _outlook(engine: DecisionEngine, tool: CatalogTool) -> Outlook:
    arguments = next(_calls(tool), None)
    verdicts = {} if arguments is None else {one: _verdict(engine, tool, arguments, one) for one in Situation}
    stakes = next((one.stakes for one in verdicts.values()), UNSPECIFIED)
    decisions = {one: _decided(verdict) for one, verdict in verdicts.items()}
    return Outlook(tool.name, request_of(tool), arguments or {}, decisions, stakes, tuple(_serious(tool)))


def _verdict(engine: DecisionEngine, tool: CatalogTool, arguments: dict[str, Any], situation: Situation) -> Verdict:
    call = RawCall(tool.name, "outlook", arguments_struct=arguments)
    caller, site = Caller("somebody", "nobody", tool.level), CallSite("outlook", "outlook")
    facts = known(_facts(tool, arguments, situation))
    return engine.decide(call, caller, site, usage=_nothing_counted, task=facts)


def _decided(verdict: Verdict) -> str:
    if verdict.decision is Decision.AUTH_REQUIRED:
        return f"ASK {verdict.approval_class}"
    return _ALLOW if verdict.decision is Decision.ALLOW else "BLOCK"


def _nothing_counted(tool: CatalogTool, charge: Charge) -> dict[str, Counters]:
    return {budget.name: Counters(0, 0, 0, len(charge.recipients)) for budget in tool.budgets}


def _facts(tool: CatalogTool, arguments: Mapping[str, Any], situation: Situation) -> TaskFacts:
    """Return the facts of a situation; its different origin is that of the first control argument."""
    intent, worst = _FACTS[situation]
    controls = dict.fromkeys(pointers.parse(one)[0] for one in tool.controls)
    present = [name for name in controls if name in arguments] or list(arguments)
    evidence = [
        Evidence(pointers.pointer((name,)), worst if name in present[:1] else NAMED, _PLACE) for name in arguments
    ]
    evidence.sort(key=lambda one: (-one.origin, one.path))
    told = worst if present else NAMED
    return replace(UNSHOWN, shown=True, intent=intent, worst=told, foreign=told == FOREIGN, arguments=tuple(evidence))


def _calls(tool: CatalogTool) -> Iterator[dict[str, Any]]:
    """Return calls that fit the tool's schema: required and control arguments, or else all arguments it accepts."""
    fits = compile_validator(tool.schema)
    needed = {*tool.schema.get("required", ()), *(pointers.parse(one)[0] for one in tool.controls)}
    for names in (needed, {*tool.schema.get("required", ())}, {*tool.schema.get("properties", {})}):
        made = _object({**tool.schema, "required": sorted(names)}, tool, ())
        if isinstance(made, dict) and fits.is_valid(made):
            yield made


def _object(schema: Mapping[str, Any], tool: CatalogTool, place: tuple[str, ...]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    needed = [name for name in properties if name in schema.get("required", ())]
    return {name: _value(properties[name], tool, (*place, name)) for name in needed}


def _value(schema: Any, tool: CatalogTool, place: tuple[str, ...]) -> Any:
    """Return a value for a property: one that the schema names, or a plain one of its type."""
    form, kind, _ = one_form(schema)
    for one in (schema, form):
        if isinstance(one, dict) and "default" in one:
            return one["default"]
    named = [form["const"]] if "const" in form else form.get("enum") or form.get("examples")
    if named:
        return named[0]
    if kind == "object":
        return _object(form, tool, place) if len(place) < _MAX_DEPTH else {}
    if kind == "array":
        count = min(max(1, form.get("minItems", 0)), _MAX_ITEMS) if len(place) < _MAX_DEPTH else 0
        return [_value(form.get("items", {}), tool, place) for _ in range(count)]
    if kind in {"integer", "number"}:
        bounds = [form[one] for one in ("minimum", "maximum", "multipleOf") if one in form]
        return _fitting(form, (1, *bounds, *(form.get("exclusiveMinimum", 0) + step for step in (1, 0.5)), 0, 10))
    return True if kind == "boolean" else _text(form, tool, place)


def _fitting(form: Mapping[str, Any], values: Iterable[Any]) -> Any:
    """Return the first candidate that fits a schema, or the first one if none does."""
    fits, tried = compile_validator(form), tuple(values)
    return next((one for one in tried if fits.is_valid(one)), tried[0])


def _text(form: Mapping[str, Any], tool: CatalogTool, place: tuple[str, ...]) -> str:
    text = pointers.pointer(place)
    if text in tool.paths:
        said = "notes.txt"
    else:
        said = _FORMS.get(str(form.get("format")), "") or _SAID.get(tool.roles.get(text, "content"), _SOMETHING)
    padded = said.ljust(min(form.get("minLength", 0), _MAX_TEXT), "a")[: form.get("maxLength")]
    found: str = _fitting({**form, "type": "string"}, (said, padded, *_TEXTS))
    return found
