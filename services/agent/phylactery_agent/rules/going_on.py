"""An answer to what waits that goes on with one more request: "Yes. What time is it?" (ADR 54)."""

from __future__ import annotations

from typing import Final

from phylactery_understanding.language.text import is_file_name
from phylactery_understanding.replies.answers import plain_words, read_answer

from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.plain_replies import asks_time
from phylactery_agent.rules.planner import PlannedCall, read_request
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import LIST_DIR, LIST_REMINDERS, READ_FILE, SEARCH_FILES

_LONGEST: Final = 300
_LONGEST_ANSWER: Final = 40
_END: Final = expression(r"[.!;\n]+\s+|,\s+")
_OPENERS: Final = frozenset(
    {"ok", "okay", "okey", "k", "kk", "vale", "venga", "claro", "dale", "sure", "bueno", "bien", "fine"}
)
"""Words that also open another topic: beside a request they are no clear yes."""
_LISTS: Final = frozenset({LIST_DIR.name, LIST_REMINDERS.name})


def split_answer(text: str, tools: ToolRegistry) -> tuple[str, str] | None:
    """Return a clear answer and the one simple request after it, or None for any other text.

    The request can be no correction of what waits: it asks for the time or for a list, or, in a sentence of its own
    after a yes, to search or to read a file by its whole name.
    """
    if len(text) > _LONGEST:
        return None
    end = next(_END.finditer(text), None)
    if end is None or end.start() > _LONGEST_ANSWER:
        return None
    answer, rest = text[: end.start()].strip(), text[end.end() :].strip()
    said = read_answer(answer)
    if said == "unclear" or not rest:
        return None
    if said == "yes" and plain_words(answer)[0] in _OPENERS:
        return None
    own_sentence = not end.group().startswith(",")
    return (answer, rest) if _is_simple(rest, tools, reads=said == "yes" and own_sentence) else None


def _is_simple(request: str, tools: ToolRegistry, *, reads: bool) -> bool:
    """Return True if a request only asks for the time or a list or, with ``reads``, reads or searches."""
    if asks_time(request):
        return True
    reading = read_request(request, tools)
    if reading.doubt or len(reading.clauses) != 1:
        return False
    call = reading.clauses[0][0]
    return call.tool in _LISTS or (reads and _only_reads(call))


def _only_reads(call: PlannedCall) -> bool:
    if call.tool == READ_FILE.name:
        return is_file_name(str(call.args["path"]))
    return call.tool == SEARCH_FILES.name
