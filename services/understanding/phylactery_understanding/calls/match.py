"""An ask and a call, and what is known of their correspondence while they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from phylactery_understanding.calls.proposal import Call, Found, Item
from phylactery_understanding.requests.model import Ask, Request

_KEEPING: Final = frozenset(
    {"edit", "change", "update", "replace", "set", "remove", "delete", "strike", "raise", "lower", "fix"}
)
MODE_FLAGS: Final = frozenset({"append"})


@dataclass(slots=True)
class Match:
    """An ask and a call, and what is known so far of their correspondence.

    ``used`` are the positions of the ask's tokens that some argument corresponds to, ``answered`` those that a content
    does. ``found`` are the listed objects that the ask describes, and ``item`` is the first that an argument names.
    """

    request: Request
    ask: Ask
    call: Call
    used: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    item: Item | None = None
    found: list[Found] = field(default_factory=list)

    @property
    def items(self) -> Sequence[Item]:
        """Return the listed objects that the ask describes."""
        return [one.item for one in self.found]

    @property
    def makes(self) -> bool:
        """Return True if the tool takes a generated content, as a file or a message does; not a memory or reminder."""
        return not self.call.effects & {"remember", "remind"}

    @property
    def edits(self) -> bool:
        """Return True if a text that was read is changed; new words that are added to its end are no change of it."""
        adds = not self.ask.refers and any(one.name in MODE_FLAGS and one.value for one in self.call.arguments)
        return self.call.read and not adds and bool(self.ask.verb.meanings & _KEEPING)

    @property
    def meant(self) -> Sequence[Item]:
        """Return the listed objects that are meant."""
        return self.items if self.item is None else [*self.items, self.item]

    def holds(self, value: Any) -> bool:
        """Return True if a value is a whole field of a listed object that is meant."""
        return any(one.holds(value) for one in self.meant)

    def is_key(self, value: float) -> bool:
        """Return True if a number only identifies one of the intended objects."""
        norm = format(Decimal(str(value)).normalize(), "f")
        return any(norm in one.keys for one in self.meant)
