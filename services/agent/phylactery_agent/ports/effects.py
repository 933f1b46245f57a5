"""The life of an effect: the states of its row in the ledger, and the one table of transitions. See docs/effects.md.

Everything here is pure. The ledger writes what this module allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class EffectState(StrEnum):
    """Where a row of the ledger stands, by the words the database keeps."""

    PROPOSED = "proposed"
    DENIED = "denied"
    STARTED = "started"
    FINISHED = "finished"
    IN_DOUBT = "in_doubt"


class EffectEvent(StrEnum):
    """What can happen to one."""

    PROPOSE = "propose"
    DENY = "deny"
    START = "start"
    FINISH = "finish"
    DOUBT = "doubt"
    EVICT = "evict"
    """Memory has taken the output over."""
    RESOLVE = "resolve"
    """A person says what became of it."""
    VOID = "void"
    """RiskGate says that its execution was never redeemed."""


_TRANSITIONS: Final[Mapping[EffectEvent, tuple[tuple[EffectState | None, ...], EffectState]]] = {
    EffectEvent.PROPOSE: ((None,), EffectState.PROPOSED),
    EffectEvent.DENY: ((EffectState.PROPOSED, EffectState.DENIED), EffectState.DENIED),
    EffectEvent.START: ((EffectState.PROPOSED,), EffectState.STARTED),
    EffectEvent.FINISH: ((EffectState.STARTED,), EffectState.FINISHED),
    EffectEvent.DOUBT: ((EffectState.STARTED,), EffectState.IN_DOUBT),
    EffectEvent.EVICT: ((EffectState.FINISHED,), EffectState.FINISHED),
    EffectEvent.RESOLVE: ((EffectState.IN_DOUBT,), EffectState.FINISHED),
    EffectEvent.VOID: ((EffectState.IN_DOUBT, EffectState.FINISHED), EffectState.DENIED),
}
"""From which states an event is allowed, None where there is no row yet, and the state after it."""


class IllegalTransitionError(RuntimeError):
    """The ledger was asked for a step its row does not allow: a fault of ours, and nothing was written."""


def advance(state: EffectState | None, event: EffectEvent, *, of: str = "an effect") -> EffectState:
    """Return the state after the event, state being None where there is no row. Raise IllegalTransitionError."""
    allowed, to = _TRANSITIONS[event]
    if state not in allowed:
        raise IllegalTransitionError(f"{of} is {state or 'missing'}; it cannot {event}")
    return to


def before(event: EffectEvent) -> tuple[EffectState, ...]:
    """Return the states of a row in which the event is allowed."""
    return tuple(state for state in _TRANSITIONS[event][0] if state is not None)


def after(event: EffectEvent) -> EffectState:
    """Return the state every row has after the event."""
    return _TRANSITIONS[event][1]
