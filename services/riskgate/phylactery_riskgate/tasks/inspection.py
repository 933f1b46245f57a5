"""Inspect: scans texts for a caller, off the event loop if they are long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.inspection import Finding, Wanted, inspect, redact
from phylactery_chassis.util.limits import Lanes, Places

from phylactery_riskgate.tasks.requests import OptionsInput

SMALL_CHARACTERS = 1024
"""A scan up to this length takes a few milliseconds, even for adversarial text, which is ten times slower."""
LONG_CHARACTERS = 64 * 1024
"""Length from which a text is long: its scan takes up to 0.1 s per as many characters.

Long texts share one thread and the others another, so a short one never waits for a long one. All of them share the
interpreter with the decisions.
"""
_OF_CALLER, _OF_ALL = 32, 256
"""Maximum number of queued requests, per caller and in total."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """The findings of one text; redacted is empty if not requested."""

    findings: tuple[Finding, ...]
    redacted: str = field(default="", repr=False)


class Inspecting:
    """The Inspect use case; stores nothing."""

    def __init__(self) -> None:
        self._short, self._long = Lanes(1, "inspect"), Lanes(1, "inspect-long")
        self._places = Places("inspections", total=_OF_ALL, each=_OF_CALLER)

    async def inspect(self, who: Principal, texts: Sequence[str], options: OptionsInput) -> list[Inspected]:
        """Return the findings of each text, in order; callers take turns.

        Raise PermissionDenied ROLE_REQUIRED without role caller, and ResourceExhausted TOO_MANY_CALLS if many of the
        caller's requests are queued already.
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
