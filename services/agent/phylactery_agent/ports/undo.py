"""The tools' interface to what ran without much at stake and can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

ReversalResult = Literal["UNDONE", "LEFT", "FAILED"]
"""LEFT is for a reason that is no fault of the tool, FAILED means that its earlier state could not be restored."""


@dataclass(frozen=True, slots=True)
class DoneEffect:
    """An effect of low stakes that happened: its tool, its key, and the id of what it made, if the tool named one.

    result is what an undo that was begun has come to with it; None if that is still to be done.
    """

    tool: str
    effect_key: str
    execution_id: str
    object_id: str = ""
    result: ReversalResult | None = None
    code: str = ""
    reversible: bool = True
    """False if its tool keeps no earlier state."""


class Undoing(Protocol):
    """The effects of low stakes of one thread. Raises LeaseLostError, and Unavailable if the store fails."""

    async def target(self) -> str:
        """Return a hash of the effects that an undo would take back now, or an empty string if there are none.

        They are those of the thread's last turn that had any. An undo is proposed with it, and takes back nothing else.
        """
        ...

    async def take(self, target: str, *, key: str) -> Sequence[DoneEffect]:
        """Claim the effects of a target for the undo of this key, newest first; the same key returns the same ones.

        Return nothing if the effects are other ones by now.
        """
        ...

    async def taken(self, *, key: str) -> Sequence[DoneEffect]:
        """Return what the undo of this key has claimed, newest first."""
        ...

    async def note_undone(self, effect_key: str, *, key: str) -> None:
        """Note that the undo of this key took back one effect without claiming it: no later undo means that one."""
        ...

    async def name_object(self, key: str, object_id: str) -> None:
        """Note what the effect of this key has made, before its result is known; only if it can be taken back."""
        ...

    async def settle(self, effect: DoneEffect, result: ReversalResult, code: str = "") -> None:
        """Commit what became of one claimed effect."""
        ...
