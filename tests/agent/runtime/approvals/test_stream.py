"""Approval decisions arrive over RiskGate's stream without polling; what the stream misses is found anyway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import ApprovalInfo, GateUnavailableError
from phylactery_agent.runtime.approvals import stream as listening
from phylactery_agent.runtime.approvals.watcher import ApprovalWatcher

from tests.support.agent.bench import StandInServices
from tests.support.agent.stores import Stores
from tests.support.agent.system import DONE, Person, System

APPEND = 'añade "línea" a lista.txt'
OFTEN = 0.02


class Watching:
    """A watcher at work over one suspended run, with what it asked and whom it woke."""

    def __init__(self, stores: Stores, services: StandInServices, monkeypatch: pytest.MonkeyPatch) -> None:
        self.services, self.asked, self.looks = services, 0, 0
        self.woken = asyncio.Event()
        self.on_asked: Callable[[], None] = lambda: None
        self._real = services.get_approval
        monkeypatch.setattr(services, "get_approval", self._get)
        real = stores.runs.awaiting_approval

        async def awaiting() -> Any:
            self.looks += 1
            return await real()

        monkeypatch.setattr(stores.runs, "awaiting_approval", awaiting)
        watcher = ApprovalWatcher(
            stores.runs,
            stores.inbox,
            services,
            lambda _key: self.woken.set(),
            stores.named_leases(),
            interval_seconds=OFTEN,
        )
        self._task = asyncio.create_task(watcher.run())

    async def _get(self, approval_id: str) -> ApprovalInfo:
        answer = await self._real(approval_id)
        self.asked += 1
        self.on_asked()
        return answer

    async def until(self, check: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not check():  # noqa: ASYNC110 - what is waited for is a task of the watcher
                await asyncio.sleep(0.005)

    async def some_looks(self) -> None:
        """Wait until it has looked several times more."""
        before = self.looks
        await self.until(lambda: self.looks >= before + 10)

    async def stand(self) -> None:
        """Let the stream stand, and what waits be asked about once after that."""
        before = self.asked
        await self.services.changes.put("")
        await self.until(lambda: self.services.changes.empty() and self.asked > before)
        await self.some_looks()

    async def was_woken(self) -> None:
        async with asyncio.timeout(60):
            await self.woken.wait()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
async def watching(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watching]:
    await stores.accepted()
    await stores.end(await stores.claimed(), "suspended", approval_id="ap_1")
    one = Watching(stores, StandInServices(), monkeypatch)
    yield one
    await one.end()


async def test_while_a_stream_stands_nobody_asks_and_a_change_is_asked_about_at_once(watching: Watching) -> None:
    await watching.until(lambda: watching.asked >= 3)  # before it stands, at every look
    await watching.stand()
    asked = watching.asked
    await watching.some_looks()
    assert watching.asked == asked
    watching.services.approval_state = "APPROVED"
    await watching.some_looks()
    assert not watching.woken.is_set(), "nobody told"
    await watching.services.changes.put("ap_1")
    await watching.was_woken()
    assert watching.asked == asked + 1


async def test_what_was_decided_before_the_stream_stood_is_found(watching: Watching) -> None:
    await watching.stand()
    await watching.services.changes.put(None)
    await watching.until(lambda: watching.services.streams == 2)
    watching.services.gate_down = True
    watching.services.approval_state = "REJECTED"
    await watching.services.changes.put("")
    await watching.until(watching.services.changes.empty)
    watching.services.gate_down = False
    await watching.was_woken()
    assert watching.services.streams == 2


async def test_what_changes_while_it_is_asked_about_is_asked_about_again(watching: Watching) -> None:
    await watching.stand()

    def meanwhile() -> None:
        """Happens after RiskGate answered PENDING, and before the watcher has read that."""
        watching.on_asked = lambda: None
        watching.services.approval_state = "APPROVED"
        watching.services.changes.put_nowait("ap_1")

    watching.on_asked = meanwhile
    asked = watching.asked
    await watching.services.changes.put("ap_1")
    await watching.was_woken()
    assert watching.asked >= asked + 2  # once meanwhile, and once again


@pytest.mark.parametrize("end", [None, GateUnavailableError("gone"), ValueError("a fault of ours")], ids=repr)
async def test_where_a_stream_ends_it_is_asked_about_again_and_another_is_opened(
    watching: Watching, end: Exception | None
) -> None:
    await watching.stand()
    asked = watching.asked
    await watching.services.changes.put(end)
    await watching.until(lambda: watching.asked > asked)
    await watching.until(lambda: watching.services.streams == 2)
    await watching.stand()
    asked = watching.asked
    await watching.some_looks()
    assert watching.asked == asked


async def test_what_a_stream_never_tells_is_asked_about_all_the_same(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watching.stand()
    watching.services.approval_state = "EXPIRED"
    await watching.some_looks()
    assert not watching.woken.is_set()
    monkeypatch.setattr(listening, "ASK_ANYWAY_SECONDS", 0.0)
    await watching.was_woken()


async def test_a_user_whose_runs_wait_no_more_is_not_listened_to(watching: Watching, stores: Stores) -> None:
    await watching.stand()
    watching.services.approval_state = "APPROVED"
    await watching.services.changes.put("ap_1")
    await watching.was_woken()
    await stores.end(await stores.claimed())
    await watching.some_looks()
    await watching.services.changes.put("nobody takes this")
    await watching.some_looks()
    assert watching.services.changes.qsize() == 1


# ---- with the real RiskGate -----------------------------------------------------------------------------------------


@pytest.fixture
async def ana(system: System) -> Person:
    """Ana, at an agent that looks after approvals by itself."""
    await system.stop("agent")
    await system.start_agent(approval_poll_seconds=OFTEN)
    return system.person("ana")


async def finished(system: System, ana: Person, run_id: str) -> None:
    async with asyncio.timeout(60):
        while (await ana.run(run_id)).status != DONE:  # noqa: ASYNC110 - a run of the service
            await asyncio.sleep(OFTEN)
    await system.agent.runner.idle()
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


async def test_an_approval_decided_at_riskgate_is_heard_of(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    real = RiskGateAdapter.watch

    async def watch(self: RiskGateAdapter) -> AsyncIterator[str]:
        async for approval_id in real(self):
            heard.append(approval_id)
            yield approval_id

    monkeypatch.setattr(RiskGateAdapter, "watch", watch)
    asked = await ana.say(APPEND)
    approval_id = asked.pending_approval.approval_id
    async with asyncio.timeout(60):
        while "" not in heard:  # noqa: ASYNC110 - a task of the service
            await asyncio.sleep(OFTEN)
    assert heard == [approval_id, ""]
    await ana.approve_at_riskgate(approval_id)
    await finished(system, ana, asked.run.id)
    assert approval_id in heard[2:]


async def test_after_a_restart_of_riskgate_an_approval_is_found_whoever_is_first(system: System, ana: Person) -> None:
    asked = await ana.say(APPEND)
    await system.stop("riskgate")
    await system.come_back("riskgate")
    await ana.approve_at_riskgate(asked.pending_approval.approval_id)
    await finished(system, ana, asked.run.id)
