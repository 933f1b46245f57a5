"""Planner of tool calls from a request, by the patterns the tools declare.

A request is cut into clauses at connectors outside quotes if the next clause opens with a tool's verb. Every clause
gives an ordered list of readings: the first is planned, the others are used if it fails.
"""

from __future__ import annotations

import contextvars
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

from phylactery_chassis.util.limits import Lanes
from pydantic import ValidationError

from phylactery_agent.rules import doubts
from phylactery_agent.rules.expressions import Expression, ExpressionSet, detect_language, expression
from phylactery_agent.rules.spelling import (
    chat_expression,
    chat_expressions,
    corrected,
    named_groups,
    spoken_names,
    unaccented,
)
from phylactery_agent.rules.wording import rewordings, without_lead, without_tail
from phylactery_agent.tools.contract import Pattern, ToolSpec
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import READ_FILE, UNDO_WRITE

MAX_REQUEST_CHARS: Final = 20_000
SHORT_CHARACTERS: Final = 1_000
"""Maximum length read inline: even adversarial text of this length takes less than a tenth of a second."""
_QUOTES: Final = {'"': '"', "'": "'", "«": "»", "“": "”", "`": "`"}
_STRONG = expression(
    r"(?i)\s*(?:;|\n|,?\s+(?:y\s+)?(?:luego|despu[eé]s|a\s+continuaci[oó]n)\s|,?\s+(?:and\s+)?(?:then|afterwards)\s)\s*"
)
_WEAK = expression(r"(?i)\s*(?:,\s+|,?\s+(?:y|and)\s+(?:tambi[eé]n\s+|also\s+)?)")
_FILE_NAME: Final = r"[\pL\pN_./-]+\.[\pL\pN]{1,8}"
_JOINT: Final = r"(?:\s*,\s*(?:(?:and|y|e)\s+)?|\s+(?:and|y|e)\s+)"
_JOINTS: Final = expression(_JOINT)
_FILES: Final = expression(rf"(?is)^(.*?\s){_FILE_NAME}(?:{_JOINT}{_FILE_NAME})+$")
_END = ".!?,;:"
_MOST_CUTS: Final = 100
"""Maximum number of places in a clause at which its verb may be repeated implicitly."""
_READ_STANDING: Final = r"(?:l[eé]e|mu[eé]stra|mostr[aá]|[aá]bre|abr[ií]|ens[eé][nñ][aá])(?:me)?lo"
_REGRET: Final = expression(r"(?i)^\s*(?:(?:(?:oops|ups|uy|perd[oó]n|sorry|wait|espera)[,.!]*|no[,.!]+)\s+)+")
"""Regret, which takes back. Without a pause, "no" denies what follows: no lo deshagas."""
_ASKS_POLITELY: Final = expression(
    r"(?i)^[¿\s]*(?:\pL+,?\s+){0,4}(?:(?:can|could|would)\s+(?:you|u)|puedes|podrias)\s.*\?[\s]*$"
)
_SPARED: Final = chat_expression(
    r"(?i)^[\s¡]*(?:(?:please|por\s+favor),?\s+)?(?:(?:do\s+not|don['’]?t)\s+(?:touch|change|do|write|delete|modify|edit)\s+anything(?:\s+else)?"
    r"|no\s+(?:toques|cambies|hagas|borres|escribas|modifiques|muevas)\s+nada(?:\s+mas)?)[\s]*[,.;:]\s*(?:(?:just|only|but|solo|solamente|pero)\s+)*"
)
"""A ban of every change before a request."""
_TELLING: Final = frozenset({"when", "to", "reminder"})
"""Arguments that sufficiently identify a clause's purpose."""
_STANDING = chat_expression(r"(?i)^" + _READ_STANDING + r"[\s.!?]*$")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One reading of one clause.

    It is reworded if the clause is read in other words than its own, which may have meant more: "review plan.txt".
    """

    tool: str
    args: dict[str, Any]
    text: str
    reworded: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The rules' reading of a request: the readings per clause, or the clause that was not understood.

    ``doubt`` is the kind of doubt about that clause, empty if none is known.
    """

    clauses: tuple[tuple[PlannedCall, ...], ...]
    unknown: str = ""
    doubt: str = ""
    left: tuple[str, ...] = ()
    """Clauses that were not understood and ask for something else than those that were."""


def read_request(text: str, tools: ToolRegistry) -> Reading:
    """Return the reading of a request; the first cut in which every clause is understood wins.

    A clause with an effect is never planned from words that are not a request or that refer to something unknown.
    """
    text = spoken_names(text[:MAX_REQUEST_CHARS])
    spared = _SPARED.match(unaccented(text))
    if spared is not None:  # "don't touch anything, just list my files": what only reads spares everything
        reading = _reading_of(text[spared.end() :], tools)
        if reading.clauses and not any(_has_effect(found[0], tools) for found in reading.clauses):
            return reading
    meant = _REGRET.sub("", text)
    if meant != text:  # "oops, undo that": an expression of regret retracts the request
        reading = _reading_of(meant, tools)
        if reading.clauses and all(found[0].tool == UNDO_WRITE.name for found in reading.clauses):
            return reading
    reading = _reading_of(text, tools)
    if reading.clauses or reading.doubt or len(text) > SHORT_CHARACTERS:
        return reading
    spelled = corrected(text)
    again = _reading_of(spelled, tools) if spelled != text else reading
    return again if again.clauses or again.doubt else reading


def _reading_of(text: str, tools: ToolRegistry) -> Reading:
    cleaned = _clean(text)
    unknown = cleaned
    tried: list[list[str]] = []
    partly: Reading | None = None
    for number, cut in enumerate((_cut(cleaned, tools, weak=True), _cut(cleaned, tools, weak=False), [cleaned])):
        if cut in tried:  # most messages are one clause however they are cut
            continue
        tried.append(cut)
        pieces = [part for clause in cut for part in _completed(clause, tools)]
        readings = [_read(_clean(piece), tools) for piece in pieces]
        if readings and all(readings):
            said = _without_mark(text, _with_courtesy(text, cleaned, readings))
            return _doubted(text, cleaned, pieces, said, tools) or _resolved(pieces, said)
        if number == 0:
            unknown = next((piece for piece, found in zip(pieces, readings, strict=True) if not found), cleaned)
            partly = _partly(text, cleaned, pieces, readings, tools)
    return partly or Reading((), unknown, doubts.doubt_of_talk(text, unknown))


def _partly(
    text: str, cleaned: str, pieces: list[str], readings: list[list[PlannedCall]], tools: ToolRegistry
) -> Reading | None:
    """Return the clauses that were understood, and those that were not, if these change nothing about the others.

    One that stands before an effect may be its condition: ask Ana, then write "hello" to a.txt.
    """
    left = [piece for piece, found in zip(pieces, readings, strict=True) if not found]
    known = [(piece, found) for piece, found in zip(pieces, readings, strict=True) if found]
    if not known or not all(map(doubts.stands_alone, left)):
        return None
    behind = itertools.dropwhile(bool, readings)
    if any(_is_weighty(call, tools) for found in behind for call in found):
        return None
    parts, said = [piece for piece, _ in known], [found for _, found in known]
    whole = _doubted(text, cleaned, parts, said, tools) or _resolved(parts, said)
    return replace(whole, left=tuple(map(_clean, left))) if whole.clauses else None


def _is_weighty(call: PlannedCall, tools: ToolRegistry) -> bool:
    contract = tools[call.tool].contract
    return contract.effect != "read" and contract.risk != "low"


def _with_courtesy(text: str, cleaned: str, readings: list[list[PlannedCall]]) -> list[list[PlannedCall]]:
    """Return the readings with the final courtesy restored if it may be the end of a dictated mail body."""
    last = readings[-1][0]
    body = last.args.get("body")
    _, _, tail = text.strip().rpartition(cleaned)
    if not isinstance(body, str) or not tail.strip(_END + " ") or not cleaned.endswith(body):
        return readings
    return [*readings[:-1], [replace(last, args={**last.args, "body": body + tail})]]


def _without_mark(text: str, readings: list[list[PlannedCall]]) -> list[list[PlannedCall]]:
    """Return the readings without the question mark of "can you" at the end of what a reminder says."""
    args = readings[-1][0].args
    if "when" not in args or not str(args.get("text", "")).endswith("?") or not _ASKS_POLITELY.match(unaccented(text)):
        return readings
    said = str(args["text"]).rstrip("? ")
    return [*readings[:-1], [replace(readings[-1][0], args={**args, "text": said})]] if said else readings


def _doubted(
    text: str, cleaned: str, pieces: list[str], readings: list[list[PlannedCall]], tools: ToolRegistry
) -> Reading | None:
    """Return the clause with an effect that is not a request after all, or None if there is none."""
    effects = [(piece, found[0]) for piece, found in zip(pieces, readings, strict=True) if _has_effect(found[0], tools)]
    # "can you" before the first clause applies to all clauses.
    lead = text[: max(text.find(cleaned), 0)]
    for piece, call in effects:
        # A pattern without arguments is the tool's own literal wording: undo that
        kind = doubts.doubt_of_clause(lead + _without_opening(piece, tools)) if call.args else ""
        kind = kind or doubts.doubt_of_content(call.args, piece)
        if kind:
            return Reading((), _clean(piece), kind)
    plain = text
    for piece, found in zip(pieces, readings, strict=True):
        plain = plain.replace(piece, _without_opening(piece, tools) if found[0].args else "")
    kind = doubts.doubt_of_message(plain) if effects else ""
    return Reading((), cleaned, kind) if kind else None


def _read(clause: str, tools: ToolRegistry) -> list[PlannedCall]:
    """Return the readings of a clause; léelo is read as lee eso."""
    if _STANDING.match(unaccented(clause)):
        return [replace(call, text=clause) for call in _readings("lee eso", tools)[:1]]
    return _readings(clause, tools) or _reworded(clause, tools)


def _reworded(clause: str, tools: ToolRegistry) -> list[PlannedCall]:
    """Return the reading of a clause in the patterns' words, if it names its file, its time or its recipient."""
    for wording in rewordings(clause.rstrip(_END), detect_language(clause, "es")):
        call = next(iter(_readings(wording, tools)), None)
        if call is not None and (
            _TELLING & call.args.keys() or not call.args or doubts.is_file(str(call.args.get("path", "")))
        ):
            return [replace(call, text=clause, reworded=True)]
    return []


def _has_effect(call: PlannedCall, tools: ToolRegistry) -> bool:
    return tools[call.tool].contract.effect != "read"


def _without_opening(piece: str, tools: ToolRegistry) -> str:
    """Return a clause without its opening words, if these are a tool's own and contain a negation: no olvides."""
    clause = without_lead(piece)
    opening = _verbs(_offered(tools)).match(unaccented(clause))
    return clause[opening.end() :] if opening is not None and doubts.forbids(clause[: opening.end()]) else piece


def _resolved(pieces: list[str], readings: list[list[PlannedCall]]) -> Reading:
    """Return the readings with words that refer to a file replaced by the message's only file."""
    standing = [
        isinstance(path := found[0].args.get("path"), str)
        and path.lower() in doubts.STANDING | doubts.OTHER
        and (_STANDING.match(unaccented(found[0].text)) is not None or path in _without_quotes(found[0].text))
        for found in readings
    ]
    named = {found[0].args.get("path") for found, stands in zip(readings, standing, strict=True) if not stands}
    files = [path for path in named if isinstance(path, str) and path]
    clauses: list[tuple[PlannedCall, ...]] = []
    for piece, found, stands in zip(pieces, readings, standing, strict=True):
        if stands and (len(files) != 1 or found[0].args["path"].lower() in doubts.OTHER):
            return Reading((), _clean(piece), doubts.WHICH_FILE)
        meant = [replace(found[0], args={**found[0].args, "path": files[0]})] if stands else found
        clauses.append((*meant, *_with_extension(meant[0])))
    return Reading(tuple(clauses))


def _with_extension(call: PlannedCall) -> Iterator[PlannedCall]:
    """Yield the call that reads list1.txt where list1 was asked for; it is used if there is no list1."""
    path = call.args.get("path", "")
    if call.tool == READ_FILE.name and path.replace("_", "").replace("-", "").isalnum():
        yield replace(call, args={**call.args, "path": f"{path}.txt"})


def _completed(clause: str, tools: ToolRegistry) -> list[str]:
    """Split a clause that states its verb once: write one to one.txt and two to two.txt."""
    cleaned = _clean(clause)
    opening = _verbs(_offered(tools)).match(unaccented(cleaned))
    if opening is None:
        return [clause]
    if several := _for_each_file(cleaned.rstrip(_END), tools):
        return several
    masked = _without_quotes(cleaned)
    parts: list[str] = []
    tool, verb, begin = "", "", 0
    cuts = [(found.start(), found.end()) for found in _WEAK.finditer(masked) if _names_file(cleaned, found.start())]
    for start, end in [*cuts[:_MOST_CUTS], (len(cleaned),) * 2]:
        part = verb + cleaned[begin:start]
        read = _readings(part, tools)
        if not read or (tool and read[0].tool != tool) or not doubts.is_file(str(read[0].args.get("path", ""))):
            continue
        tool, verb = read[0].tool, cleaned[: opening.end()]
        parts.append(part)
        begin = end
    return parts if len(parts) > 1 and begin == len(cleaned) else [clause]


def _for_each_file(clause: str, tools: ToolRegistry) -> list[str]:
    """Return a clause once for each of the files that it ends with: write "a" to a.txt, b.txt and c.txt."""
    found = _FILES.match(_without_quotes(clause))
    if found is None:
        return []
    head, names = clause[: found.span(1)[1]], _JOINTS.sub(" ", clause[found.span(1)[1] :]).split()
    parts = [head + name for name in names]
    reads = [_readings(part, tools) for part in parts]
    whole = all(read and read[0].args.get("path") == name for read, name in zip(reads, names, strict=True))
    return parts if whole and len({read[0].tool for read in reads}) == 1 else []


def _names_file(text: str, end: int) -> bool:
    """Return True if the word before a position names a file or ends a quoted name."""
    word = text[text.rfind(" ", 0, end) + 1 : end]
    return word[-1:] in _QUOTES.values() or doubts.is_file(word)


def _offered(tools: ToolRegistry) -> tuple[tuple[str, ...], ...]:
    """Return the verbs of each offered tool."""
    return tuple(spec.verbs for spec in tools.offered())


def off_tool(clause: str, tools: ToolRegistry) -> str | None:
    """Return the switched-off tool that would understand a clause, or None if there is none."""
    variant = clause.rstrip(_END)
    return next((call.tool for spec in tools.disabled() for call in _calls((spec,), variant, clause)), None)


def _clean(text: str) -> str:
    return without_tail(without_lead(text.strip())).strip()


def _cut(text: str, tools: ToolRegistry, *, weak: bool) -> list[str]:
    """Cut at strong connectors outside quotes, and at weak ones if requested, if a tool's verb follows."""
    masked = _without_quotes(text)
    connectors = [_STRONG, _WEAK] if weak else [_STRONG]
    spans = sorted((found.start(), found.end()) for connector in connectors for found in connector.finditer(masked))
    verbs = _verbs(_offered(tools))
    pieces: list[str] = []
    begin = 0
    for start, end in spans:
        if start <= begin or not verbs.match(unaccented(without_lead(text[end:]))):
            continue
        pieces.append(text[begin:start])
        begin = end
    return [*pieces, text[begin:]]


@lru_cache(maxsize=8)
def _verbs(verbs: tuple[tuple[str, ...], ...]) -> Expression:
    alternatives = [verb for of_tool in verbs for verb in of_tool]
    return chat_expression(r"(?i)^(?:" + "|".join(alternatives) + r")(?:\s|:)|^" + _READ_STANDING + r"[\s.!?]*$")


def _without_quotes(text: str) -> str:
    """Return a text of the same length with quoted parts as underscores; an unclosed quote quotes nothing."""
    out: list[str] = []
    index = 0
    while index < len(text):
        # An apostrophe inside a word (don't) does not open a quote.
        opens = text[index] in _QUOTES and not (index and text[index - 1].isalnum())
        close = text.find(_QUOTES[text[index]], index + 1) if opens else -1
        if close > index:
            out.append("_" * (close + 1 - index))
            index = close + 1
        else:
            out.append(text[index])
            index += 1
    return "".join(out)


def _readings(clause: str, tools: ToolRegistry) -> list[PlannedCall]:
    """Return the possible meanings of a clause, best first: without the final punctuation, then as typed.

    Only reads have a second reading: a write must not go to a file whose name was guessed.
    """
    found: list[PlannedCall] = []
    for variant in dict.fromkeys((clause.rstrip(_END), clause)):
        call = next(_calls(tools.offered(), variant, clause), None)
        if call is None or any(call.args == known.args for known in found):
            continue
        if not found or not _has_effect(call, tools):
            found.append(call)
    return found


def _calls(specs: Sequence[ToolSpec], variant: str, clause: str) -> Iterator[PlannedCall]:
    every = [(spec, pattern) for spec in specs for pattern in spec.patterns]
    together = _together(tuple(pattern.expression for _, pattern in every))
    in_clause = together.matches(unaccented(clause))
    in_variant = in_clause if variant == clause else together.matches(unaccented(variant))
    for place, (spec, pattern) in enumerate(every):
        # Free text keeps its own end mark: "echo hello!" yields "hello!".
        text, matching = (clause, in_clause) if _ends_free(pattern) else (variant, in_variant)
        if place not in matching:
            continue
        said = named_groups(_compiled(pattern.expression), text)
        args = None if said is None else _arguments(spec, pattern, said)
        if args is not None:
            yield PlannedCall(spec.name, args, text)


def _ends_free(pattern: Pattern) -> bool:
    return pattern.expression.endswith(".+)")


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Expression:
    return chat_expression(_whole(pattern))


@lru_cache(maxsize=64)
def _together(patterns: tuple[str, ...]) -> ExpressionSet:
    return chat_expressions([_whole(pattern) for pattern in patterns])


def _whole(pattern: str) -> str:
    return r"(?is)^(?:" + pattern + r")$"


def _arguments(spec: ToolSpec, pattern: Pattern, groups: dict[str, str | None]) -> dict[str, Any] | None:
    """Return the arguments, or None if they do not fit the tool."""
    properties = spec.schema["properties"]
    args: dict[str, Any] = dict(pattern.fixed)
    for name, raw in groups.items():
        if raw is None or name == "until":
            continue
        args[name] = int(raw) if properties[name].get("type") == "integer" else _unquote(raw)
    until = groups.get("until")
    if until is not None:
        args.setdefault("offset", 0)
        # One answer holds no more than this; its first line states the range it covers.
        args["limit"] = min(int(until) - args["offset"], properties["limit"]["maximum"])
    if isinstance(args.get("path"), str):
        args["path"] = args["path"].removeprefix("./")
    try:
        spec.args_model.model_validate(args)
    except ValidationError:
        return None
    return args if pattern.meant is None else pattern.meant(args)


def _unquote(raw: str) -> str:
    text = raw.strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
        return text[1:-1]
    return text


_threads: Final = Lanes(1, "reading")
"""One thread for the process, however many graphs it runs: it bounds the processor time that long texts can take."""

T = TypeVar("T")


async def read_aside(lane: Hashable, text: str, work: Callable[[], T]) -> T:
    """Return ``work``'s result for a user's text; a long one waits only for others of its lane."""
    if len(text) <= SHORT_CHARACTERS:
        return work()
    return await _threads.run(lane, partial(contextvars.copy_context().run, work))
