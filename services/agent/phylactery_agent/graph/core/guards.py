"""Loop guards for every graph: pure functions over a run's calls and their results.

A guard never decides what comes next. It returns a verdict with a stable reason, and the node that owns the plan acts
on it. The guards' input is kept in the graph's state, so a crash does not reset them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

import rfc8785

MAX_SUPERSTEPS: Final = 25
"""Maximum number of nodes one turn may run."""
MAX_TOOL_CALLS: Final = 12
"""Maximum number of calls one run may propose."""
HINT_AT: Final = 2
"""Number of identical calls with identical results that triggers a hint."""
LOOP_AT: Final = 3
"""Number of identical calls with identical results that counts as a loop."""
ALTERNATING: Final = 6
"""Number of calls over which two alternating calls count as a loop."""
CALLS_KEPT: Final = MAX_TOOL_CALLS * 2
"""Number of records a state keeps: a run cannot make more calls, so none is dropped before the run ends."""

REPEATED_CALL: Final = "REPEATED_CALL"
ALTERNATING_CALLS: Final = "ALTERNATING_CALLS"
STEP_LIMIT: Final = "STEP_LIMIT"
TOOL_CALL_LIMIT: Final = "TOOL_CALL_LIMIT"
LOOPS: Final = frozenset({REPEATED_CALL, ALTERNATING_CALLS})


class CallRecord(TypedDict):
    """A completed call: hashes of the call and of its result, without any value."""

    tool: str
    call: str
    result: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A guard's verdict: continue, continue with a hint to the planner, or stop.

    reason is a stable word, empty for ok.
    """

    kind: Literal["ok", "hint", "loop"]
    reason: str = ""


OK: Final = Verdict("ok")


def call_record(tool: str, args: dict[str, Any], result: str) -> CallRecord:
    """Return the record of a call; result is its output, or the stable code of its error.

    Arguments without an RFC 8785 form, which a model may propose, are identified by their Python repr, which only this
    guard reads.
    """
    try:
        canonical = rfc8785.dumps(args)
    except (rfc8785.CanonicalizationError, RecursionError):
        canonical = repr(args).encode("utf-8", "surrogatepass")
    called = hashlib.sha256(tool.encode() + b"\x1f" + canonical).hexdigest()
    return CallRecord(
        tool=tool, call=called, result=hashlib.sha256(result.encode("utf-8", "surrogatepass")).hexdigest()
    )


def with_call(calls: Sequence[CallRecord], record: CallRecord) -> list[CallRecord]:
    """Return the bounded list with one more record, the newest last."""
    return [*calls, record][-CALLS_KEPT:]


def judge(calls: Sequence[CallRecord]) -> Verdict:
    """Judge the newest call by the calls before it.

    The same tool, arguments and result give a hint the second time and count as a loop the third time, regardless of
    the calls in between. Two calls that alternate three times are also a loop, whatever their results. Repeating a call
    is not a loop as long as its result changes, because the caller may be polling.
    """
    if not calls:
        return OK
    newest = calls[-1]
    times = sum(record == newest for record in calls)
    if times >= LOOP_AT:
        return Verdict("loop", REPEATED_CALL)
    if _take_turns(calls[-ALTERNATING:]):
        return Verdict("loop", ALTERNATING_CALLS)
    return Verdict("hint", REPEATED_CALL) if times >= HINT_AT else OK


def _take_turns(last: Sequence[CallRecord]) -> bool:
    """Return True if the records are A-B-A-B-A-B of two different calls."""
    if len(last) < ALTERNATING or last[0]["call"] == last[1]["call"]:
        return False
    return all(record["call"] == last[place % 2]["call"] for place, record in enumerate(last))


def budget_spent(*, supersteps: int, tool_calls: int, needed: int) -> str:
    """Return why no new work may begin, or an empty string if there is room.

    Needed is the number of supersteps required.
    """
    if tool_calls >= MAX_TOOL_CALLS:
        return TOOL_CALL_LIMIT
    return STEP_LIMIT if supersteps + needed > MAX_SUPERSTEPS else ""
