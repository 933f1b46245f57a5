"""Inspect: looks at texts for a caller, away from the event loop where they are long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.inspection import Finding, Wanted, inspect, redact
from phylactery_chassis.util.limits import Lanes, Places

from phylactery_riskgate.tasks.requests import OptionsInput

SMALL_CHARACTERS = 1024
"""Up to here a look takes a few milliseconds also where the text was made to be slow, which costs ten times as much."""
LONG_CHARACTERS = 64 * 1024
"""From here on a look takes up to a tenth of a second for each as many. Long texts have one thread, the others another:
a short one waits for no long one, and all of them share the interpreter with everybody's decisions."""
_OF_CALLER, _OF_ALL = 32, 256
"""So many requests are held until their turn."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was found in one text; redacted is empty where it was not asked for."""

    findings: tuple[Finding, ...]
    redacted: str = field(default="", repr=False)


class Inspecting:
    """The use case; see the module. It keeps nothing."""

    def __init__(self) -> None:
        self._short, self._long = Lanes(1, "inspect"), Lanes(1, "inspect-long")
        self._places = Places("inspections", total=_OF_ALL, each=_OF_CALLER)

    async def inspect(self, who: Principal, texts: Sequence[str], options: OptionsInput) -> list[Inspected]:
        """Return what is in each text, in their order; callers take turns.

        Raise PermissionDenied ROLE_REQUIRED without role caller, and ResourceExhausted TOO_MANY_CALLS where many of
        the caller's requests wait already.
        """
        who.require(Role.CALLER)

        def look() -> list[Inspected]:
            return [_inspected(text, options.wanted, want_redacted=options.want_redacted) for text in texts]

        size = sum(map(len, texts))
        if size <= SMALL_CHARACTERS:
            return look()
        caller = who.tenant, who.subject
        give_back = self._places.take(caller)
        try:
            return await (self._short if size < LONG_CHARACTERS else self._long).run(caller, look)
        finally:
            give_back()


def _inspected(text: str, wanted: Wanted, *, want_redacted: bool) -> Inspected:
    found = inspect(text, wanted)
    return Inspected(found, redact(text, wanted, found) if want_redacted else "")
