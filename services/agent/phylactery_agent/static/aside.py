"""Reading a long text by the rules takes as long as a hundred short ones: it is read in a thread, callers by turns."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar

from phylactery_chassis.util.limits import Lanes

SHORT_CHARACTERS: Final = 1_000
"""Up to here a text is read in less than a tenth of a second, also one that was made to be slow."""

_threads: Final = Lanes(1, "reading")

T = TypeVar("T")


async def read_aside(who: Hashable, text: str, work: Callable[[], T]) -> T:
    """Return what ``work`` makes of a text of somebody; a long one holds up nobody else."""
    if len(text) <= SHORT_CHARACTERS:
        return work()
    return await _threads.run(who, partial(contextvars.copy_context().run, work))
