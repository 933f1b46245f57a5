"""The life of a run: its statuses, and the one table of transitions. docs/effects.md describes it.

Everything here is pure. Code that writes a status takes it from this module, with the run's row locked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """Where a run stands, by the words the database keeps; the contract's RunStatus has the same names."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"


_TRANSITIONS: Final[Mapping[RunStatus, tuple[RunStatus, ...]]] = {
    RunStatus.QUEUED: (RunStatus.RUNNING, RunStatus.CANCELLED),
    RunStatus.RUNNING: (
        RunStatus.RUNNING,
        RunStatus.SUSPENDED,
        RunStatus.DONE,
        RunStatus.FAILED,
        RunStatus.CANCELLED,
        RunStatus.DEAD,
    ),
    RunStatus.SUSPENDED: (RunStatus.RUNNING, RunStatus.CANCELLED),
    RunStatus.DONE: (),
    RunStatus.FAILED: (),
    RunStatus.CANCELLED: (),
    RunStatus.DEAD: (),
}

OPENED: Final = RunStatus.QUEUED
"""The status a run is written with."""
ACTIVE: Final = tuple(status for status in RunStatus if _TRANSITIONS[status])
"""Statuses of a run that has not ended. At most one run per thread is SERVED; several may wait for a person."""
SERVED: Final = (RunStatus.QUEUED, RunStatus.RUNNING)
"""Statuses of a run that is being executed or is about to be: at most one per thread."""


class RunTransitionError(RuntimeError):
    """The table has no such transition: a fault of ours, and nothing is written."""


def advance(status: RunStatus, to: RunStatus) -> RunStatus:
    """Return the status a run has next. Raise RunTransitionError where it cannot come to it from this one."""
    if to not in _TRANSITIONS[status]:
        raise RunTransitionError(f"a run that is {status} cannot become {to}")
    return to


def before(to: RunStatus) -> tuple[RunStatus, ...]:
    """Return the statuses from which a run may come to one."""
    return tuple(status for status in RunStatus if to in _TRANSITIONS[status])
