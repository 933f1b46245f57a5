"""Taking back what ran without much at stake: every effect of the thread's last turn that had any, newest first.

Claim the effects durably → restore each once, under the undo's own key → look whether it is restored → commit what
became of it. A process that dies in between goes on where it stopped; what was restored is not restored again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.ports import DoneEffect, ReversalResult, Undoing
from phylactery_agent.tools.contract import Implementation, Invocation, Reconciled, ToolFailedError

UNDO_FAILED: Final = "UNDO_FAILED"
_FAULTS: Final = frozenset({UNDO_FAILED, "UNDO_LOST"})
"""Codes of a tool that was to keep what it replaced, and did not."""
_log = get_logger("undo")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one effect, as it is told: its tool, what it was done to, and why it stays."""

    tool: str
    result: ReversalResult
    name: str = ""
    removed: bool = False
    code: str = ""
    more: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


async def take_back(invocation: Invocation, implementations: Mapping[str, Implementation]) -> str:
    """Take back what the undo was proposed for, and return what was restored and what remains.

    Raises:
        ToolFailedError: UNDO_OTHER if something else was done since; the first reason if nothing could be restored.
    """
    undoing = _of(invocation)
    effects = await undoing.take(invocation.content_hash, key=invocation.effect_key)
    if not effects:
        raise ToolFailedError("UNDO_OTHER", "something else was done or taken back in between")
    outcomes = []
    for effect in effects:
        outcome = await _one(invocation, effect, implementations.get(effect.tool))
        if effect.result is None:
            await undoing.settle(effect, outcome.result, outcome.code)
        outcomes.append(outcome)
    if not any(one.result == "UNDONE" for one in outcomes):
        first = next((one for one in outcomes if one.result == "FAILED"), outcomes[0])
        raise ToolFailedError(first.code, "nothing could be taken back")
    return _told(outcomes)


async def how_far(invocation: Invocation) -> Reconciled | None:
    """Return how far the undo of a key has come; None if it never claimed an effect."""
    undoing = _of(invocation)
    effects = await undoing.taken(key=invocation.effect_key)
    if not effects:
        return None
    if any(effect.result is None for effect in effects):
        return Reconciled("begun")
    outcomes = [_Outcome(one.tool, one.result or "LEFT", code=one.code) for one in effects]
    return Reconciled("done" if any(one.result == "UNDONE" for one in outcomes) else "not_done", _told(outcomes))


async def _one(invocation: Invocation, effect: DoneEffect, implementation: Implementation | None) -> _Outcome:
    """Restore what one effect replaced. What was settled before is only told again."""
    if effect.result is not None:
        return _Outcome(effect.tool, effect.result, code=effect.code)
    if implementation is None or implementation.restore is None or implementation.is_restored is None:
        return _Outcome(effect.tool, "LEFT", code="NOT_REVERSIBLE")
    try:
        restored = await implementation.restore(invocation, effect)
        reach("agent.undo.restored")
        there = await implementation.is_restored(invocation, effect, restored)
    except ToolFailedError as error:
        result: ReversalResult = "FAILED" if error.code in _FAULTS else "LEFT"
        if result == "FAILED":
            _log.error("an effect cannot be taken back", tool=effect.tool, error_code=error.code)
        return _Outcome(effect.tool, result, code=error.code)
    except Exception as error:  # noqa: BLE001 - any other fault of a tool is one of its undo, and stops no other
        _log.error("an effect cannot be taken back", tool=effect.tool, error=type(error).__name__)
        return _Outcome(effect.tool, "FAILED", code=UNDO_FAILED)
    if not there:  # whatever the tool says
        _log.error("an effect was not taken back", tool=effect.tool)
        return _Outcome(effect.tool, "FAILED", restored.name, code=UNDO_FAILED)
    return _Outcome(effect.tool, "UNDONE", restored.name, restored.removed, more=restored.more, missed=restored.missed)


def _told(outcomes: Sequence[_Outcome]) -> str:
    undone = [_view(one) for one in outcomes if one.result == "UNDONE"]
    left = [_view(one) for one in outcomes if one.result != "UNDONE"]
    return json.dumps({"undone": undone, "left": left}, ensure_ascii=False)


def _view(one: _Outcome) -> dict[str, Any]:
    said = {"tool": one.tool, "name": one.name, "removed": one.removed, "code": one.code}
    said |= {"more": list(one.more), "missed": list(one.missed)}
    return {name: value for name, value in said.items() if value or name == "tool"}


def _of(invocation: Invocation) -> Undoing:
    assert invocation.undoing is not None, "without it there is nothing an undo is proposed for"
    return invocation.undoing


def part_of(invocation: Invocation, effect: DoneEffect) -> Invocation:
    """Return the invocation under the key of the part of an undo that takes back one effect."""
    return replace(invocation, effect_key=part_key(invocation.effect_key, effect.effect_key))


def part_key(undo_key: str, effect_key: str) -> str:
    """Return the key under which an undo takes back one effect."""
    return f"{undo_key}:{effect_key}"
