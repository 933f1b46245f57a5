"""Inspect: looks at texts for a caller, away from the event loop where they are long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from phylactery_chassis.identity import Principal, Role

from phylactery_riskgate.domain.inspection import Finding, Wanted, inspect, redact
from phylactery_riskgate.requests.inspection import OptionsInput

SMALL_CHARACTERS = 1024
"""Up to here a look takes a few milliseconds also where the text was made to be slow, which costs ten times as much."""
_AT_ONCE = 2
"""So many long texts are looked at together: they share the interpreter with everybody's decisions."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was found in one text; redacted is empty where it was not asked for."""

    findings: tuple[Finding, ...]
    redacted: str = field(default="", repr=False)


class Inspecting:
    """The use case; see the module. It keeps nothing."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspect")

    async def inspect(self, who: Principal, texts: Sequence[str], options: OptionsInput) -> list[Inspected]:
        """Answers what is in each text, in their order. Raises PermissionDenied ROLE_REQUIRED without role caller."""
        who.require(Role.CALLER)

        def look() -> list[Inspected]:
            return [_inspected(text, options.wanted, want_redacted=options.want_redacted) for text in texts]

        if sum(map(len, texts)) <= SMALL_CHARACTERS:
            return look()
        return await asyncio.get_running_loop().run_in_executor(self._threads, look)


def _inspected(text: str, wanted: Wanted, *, want_redacted: bool) -> Inspected:
    return Inspected(inspect(text, wanted), redact(text, wanted) if want_redacted else "")
