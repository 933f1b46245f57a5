"""A message made to be slow to parse does not block others: the rules run outside the event loop."""

from __future__ import annotations

import itertools
import time
from asyncio import events
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent.system import open_system
from tests.support.effort import attempts_within

SLOW = {
    "sentences": "a. ",
    "lines": "- uno\n",
    "requests": "borra el archivo notas.txt y luego ",
    "quotes": '"a ',
    "marks": "«",
    "colons": "uno: ",
}
MOST_SECONDS = 0.2
"""Of CPU, in one go of the event loop; each of these texts took one second or more."""


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU time of every go of the event loop, whatever else the machine does."""
    taken: list[float] = []
    run = events.Handle._run

    def timed(handle: Any) -> None:
        began = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - began)

    monkeypatch.setattr(events.Handle, "_run", timed)
    return taken


@pytest.mark.timing
@pytest.mark.parametrize("graph", ["secured", "react"])
@pytest.mark.parametrize("unit", SLOW.values(), ids=SLOW.keys())
async def test_a_message_of_the_longest_size_never_holds_the_loop(
    tmp_path: Path, turns: list[float], unit: str, graph: str
) -> None:
    async with open_system(tmp_path, graph=graph) as system:
        ana, ben = system.person("ana"), system.person("ben")
        await ana.say("hola", "t-first")
        threads = itertools.count()
        # A collection of garbage that other tests left falls into one try, not into all of them
        for attempt in attempts_within(MOST_SECONDS):
            turns.clear()
            answer = await ana.say((unit * 20_000)[:20_000], f"t-long-{next(threads)}")
            assert answer.reply.text
            attempt.seconds = max(turns)
        assert (await ben.say("hola", "t-ben")).reply.text
