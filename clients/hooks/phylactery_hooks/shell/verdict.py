"""Verdict: what a command does, as one effect, and the files that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Effect(IntEnum):
    """What a command does; of several effects the highest counts."""

    READ = 1
    """Reads files of the workspace, lists them, or reads from Git."""
    WRITE = 2
    """Writes files of the workspace."""
    RUN = 3
    """Runs code of the workspace with a listed test runner, linter or build tool."""
    DELETE = 4
    """Deletes files of the workspace that are built again and that Git does not keep."""
    OUTSIDE = 5
    """Reads or writes outside the workspace."""
    UNKNOWN = 6
    """Does what is not known: an unlisted program or option, or syntax that is not read."""
    NETWORK = 7
    SECRET = 8
    """Reads, writes or prints what looks like a secret."""
    SETTINGS = 9
    """Writes settings of the host, hooks, or other files that run by themselves."""
    DESTROY = 10
    """Deletes or overwrites what cannot be brought back."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An effect, why, and the paths that are written, as seen from the workspace's root where they are inside."""

    effect: Effect
    reason: str
    writes: tuple[str, ...] = ()


def strongest(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict with the highest effect, with the paths of all.

    Words that ask for something to be deleted do not ask for code to be run: what does both is neither.
    """
    highest = max(verdicts, key=lambda one: one.effect)
    if highest.effect is Effect.DELETE and any(one.effect is Effect.RUN for one in verdicts):
        highest = Verdict(Effect.UNKNOWN, "it deletes files and runs code of the workspace")
    writes = dict.fromkeys(path for one in verdicts for path in one.writes)
    return Verdict(highest.effect, highest.reason, tuple(writes))
