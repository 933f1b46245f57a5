"""Inspect: scans texts for a caller, off the event loop if they are long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.inspection import Finding, Wanted, inspect, redact
from phylactery_chassis.util.limits import Places, TextWork

from phylactery_riskgate.tasks.requests import OptionsInput

SMALL_CHARACTERS = 64
"""A scan up to this length costs less than the call itself, even for adversarial text, so it needs no thread.

A longer one takes up to 10 ms per 1,024 characters, and a caller may have hundreds of calls at once.
"""
_COST_OF_A_TEXT = 16
"""What each text of a batch counts at least, in characters."""
_OF_CALLER, _OF_ALL = 32, 256
"""Maximum number of queued requests with a longer text than QUEUED_CHARACTERS, per caller and in total."""
QUEUED_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class Inspected:
    """The findings of one text; redacted is empty if not requested."""

    findings: tuple[Finding, ...]
    redacted: str = field(default="", repr=False)


class Inspecting:
    """The Inspect use case; stores nothing."""

    def __init__(self, threads: TextWork) -> None:
        """``threads`` run the scans."""
        self._threads = threads
        self._places = Places("inspections", total=_OF_ALL, each=_OF_CALLER)

    async def inspect(self, who: Principal, texts: Sequence[str], options: OptionsInput) -> list[Inspected]:
        """Return the findings of each text, in order; callers take turns.

        Raise PermissionDenied ROLE_REQUIRED without role caller, and ResourceExhausted TOO_MANY_CALLS if many of the
        caller's requests are queued already.
        """
        who.require(Role.CALLER)

        def look() -> list[Inspected]:
            return [_inspected(text, options.wanted, want_redacted=options.want_redacted) for text in texts]

        size = sum(max(len(text), _COST_OF_A_TEXT) for text in texts)
        if size <= SMALL_CHARACTERS:
            return look()
        caller = who.tenant, who.subject
        if size <= QUEUED_CHARACTERS:
            return await self._threads.run(caller, size, look)
        give_back = self._places.take(caller)
        try:
            return await self._threads.run(caller, size, look)
        finally:
            give_back()


def _inspected(text: str, wanted: Wanted, *, want_redacted: bool) -> Inspected:
    found = inspect(text, wanted)
    return Inspected(found, redact(text, wanted, found) if want_redacted else "")
