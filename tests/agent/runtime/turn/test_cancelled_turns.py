"""A turn with an effect is cancelled at each of its awaits: it is resumed, and the effect happens once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from phylactery_agent.runtime.storage.records import Claim

from tests.support.agent.stores import ANA
from tests.support.agent.system import DONE, System, open_system
from tests.support.databases.invariants import at_rest, broken
from tests.support.processes.cancelling import Cut

Serve = Callable[[Claim], Coroutine[Any, Any, None]]

_FEWEST = 30
"""A turn with an effect has more awaits than that: its writes, and what it asks memory and RiskGate."""
_LIMIT_SECONDS = 60


class CutOnce:
    """Serves claims; the first one is cancelled at its await of that number."""

    def __init__(self, serve: Serve, cut: Cut) -> None:
        self._serve, self.cut, self.ended = serve, cut, asyncio.Event()
        self._served = 0

    async def __call__(self, claim: Claim) -> None:
        self._served += 1
        if self._served > 1:
            await self._serve(claim)
            return
        try:
            await self.cut.run(self._serve(claim))
        finally:
            self.ended.set()


async def cut_at(system: System, serve: Serve, at: int, *, late: bool) -> bool:
    """Ask for a line in a turn that is cancelled there; say whether the turn had so many awaits."""
    runner, thread, line = system.agent.runner, f"t{at}", f"línea-{at};"
    serving = CutOnce(serve, Cut(at, late=late))
    runner._serve = serving

    def written() -> int:
        path = system.sandbox / "lista.txt"
        return path.read_text().count(line) if path.exists() else 0

    answer = asyncio.create_task(system.person("ana").say(f'añade "{line}" a lista.txt', thread))
    async with asyncio.timeout(_LIMIT_SECONDS):
        await serving.ended.wait()
        await runner.idle()
        assert written() <= 1
        runner.wake(ANA.thread_key(thread))
        assert (await answer).run.status == DONE, f"cancelled at {at}"
        assert written() == 1, f"cancelled at {at}"
        url = f"sqlite:///{system.folder / 'agent' / 'agent.db'}"
        while not at_rest(url):  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.02)
    assert broken(url) == [], f"cancelled at {at}"
    return serving.cut.fired


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["while it waits", "once it has happened"])
@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
async def test_a_turn_that_is_cancelled_at_an_await_goes_on_and_its_effect_happens_once(
    tmp_path: Path, stride: int, late: bool
) -> None:
    async with open_system(tmp_path) as system:
        serve, at = cast("Serve", system.agent.runner._serve), 1
        while await cut_at(system, serve, at, late=late):
            at += stride
        assert at > _FEWEST
