"""Process liveness by file lock: a dead agent's runs are resumed at once, a living one's never."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_agent.runtime.dispatch import process_registry
from phylactery_agent.runtime.dispatch.claims import HeldError
from phylactery_agent.runtime.dispatch.leases import free_leases
from phylactery_agent.runtime.dispatch.process_registry import LIVES, ProcessLock

from tests.support.agent.process import AgentProcess
from tests.support.agent.stores import Stores, opened
from tests.support.agent.system import DONE, System, open_system
from tests.support.servers.postgres import brief_database

ENDS_SECONDS = 120
LEASE_SECONDS = "600"
"""Far more than any test takes: nothing here goes on because a lease ran out."""
LIVE = "import sys, signal, pathlib; from phylactery_agent.runtime.dispatch.process_registry import ProcessLock; "
LIVE += "print(ProcessLock(pathlib.Path(sys.argv[1])).holder, flush=True); signal.pause()"


def buried(folder: Path, mine: ProcessLock | None = None) -> list[str]:
    """Return who is found dead, by a process that lives on."""
    found: list[str] = []
    me = mine or ProcessLock(folder)
    me.reap_dead(found.extend)
    me.end()
    return found


def dies(one: ProcessLock) -> None:
    """Do what the kernel does at a process' end."""
    os.close(one._descriptor)


def test_a_killed_process_is_found_dead_once_and_one_that_stands_still_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", LIVE, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        holder = child.stdout.readline().strip()
        assert buried(tmp_path) == []
        child.send_signal(signal.SIGSTOP)
        assert buried(tmp_path) == []
        child.kill()
        child.wait(ENDS_SECONDS)
        assert buried(tmp_path) == [holder]
        assert buried(tmp_path) == []
    assert list((tmp_path / LIVES).iterdir()) == []


def test_one_that_ended_leaves_nothing_and_every_life_has_a_name_of_its_own(tmp_path: Path) -> None:
    first, second = ProcessLock(tmp_path), ProcessLock(tmp_path)
    assert first.holder != second.holder
    assert len(first.holder) <= 128, "the column takes no more"
    first.end()
    assert buried(tmp_path, second) == []
    assert list((tmp_path / LIVES).iterdir()) == []


def test_whom_nobody_could_free_is_found_dead_again(tmp_path: Path) -> None:
    dead = ProcessLock(tmp_path)
    dies(dead)

    def fails(_holders: Collection[str]) -> None:
        raise RuntimeError("the database is away")

    with pytest.raises(RuntimeError, match="away"):
        ProcessLock(tmp_path).reap_dead(fails)
    assert dead.holder in buried(tmp_path)


def _copied(folder: Path, one: ProcessLock) -> None:
    """Another file under the same name, as a copied folder holds it."""
    path = folder / LIVES / one._path.name
    Path(shutil.copy(path, f"{path}.copy")).replace(path)


def _elsewhere(folder: Path, _one: ProcessLock) -> None:
    """Another kernel: another machine, or this one after its next start."""
    name = folder / "boot_id"
    name.write_text("another")
    process_registry._KERNEL = name


def _nameless(folder: Path, _one: ProcessLock) -> None:
    """A kernel that says no name."""
    process_registry._KERNEL = folder / "none"


@pytest.mark.parametrize("change", [_copied, _elsewhere, _nameless])
def test_a_free_lock_proves_nothing_where_it_may_not_be_the_one_the_process_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, ProcessLock], None]
) -> None:
    monkeypatch.setattr(process_registry, "_KERNEL", process_registry._KERNEL)  # and back again
    one = ProcessLock(tmp_path)
    change(tmp_path, one)
    if change is not _copied:  # where it is, that process lives on
        dies(one)
    found = buried(tmp_path)
    assert one.holder not in found


async def test_only_what_the_dead_held_is_freed(stores: Stores) -> None:
    for thread, holder in (("t1", "dead"), ("t2", "alive")):
        await stores.accepted(f"request-{thread}", thread_id=thread)
        await stores.claimed(thread, holder=holder)
    if stores.database.dialect.is_server:
        assert await stores.named_leases("dead").take("approvals")
        assert await stores.named_leases("alive").take("erasures")
    await asyncio.to_thread(free_leases, stores.database, ["dead", "long gone"])
    claim = await stores.claimed("t1", holder="next")
    assert claim.lease.fence == 2
    with pytest.raises(HeldError):
        await stores.claimed("t2", holder="next")
    if stores.database.dialect.is_server:
        assert await stores.named_leases("next").take("approvals")
        assert not await stores.named_leases("next").take("erasures")


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def start(system: System, tmp_path: Path, postgres_url: str) -> Callable[..., AgentProcess]:
    """Start agents over one PostgreSQL database and one folder, with very long leases."""
    url = brief_database(postgres_url, "phylactery_agent")
    settings = {"AGENT_DATABASE_URL": url, "AGENT_LEASE_SECONDS": LEASE_SECONDS}
    return partial(_start, system, tmp_path / "shared", settings)


def _start(system: System, folder: Path, settings: dict[str, str], point: str = "none", **more: str) -> AgentProcess:
    return AgentProcess(system, folder, point, **settings, **more)


def stands_still(process: AgentProcess) -> bool:
    return Path(f"/proc/{process.child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def leased(start: Callable[..., AgentProcess]) -> list[Any]:
    """Return who holds which run, and how often each was claimed."""
    assert isinstance(start, partial)
    database = opened(start.args[2]["AGENT_DATABASE_URL"])
    query = sa.text("SELECT run_id, lease_owner, fence FROM agent_runs WHERE status = 'running'")
    try:
        return database.read_sync(lambda connection: list(connection.execute(query)))
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["agent.claim", "agent.7", "agent.9", "agent.10"])
async def test_what_a_killed_agent_was_serving_goes_on_as_soon_as_one_starts(
    system: System, start: Callable[..., AgentProcess], point: str
) -> None:
    killed = start(point)
    async with await killed.channel() as channel:
        ana = system.through(channel, system.person("ana"))
        lost = asyncio.create_task(ana.say("repite hola", request_id="request-1"))
        assert await asyncio.to_thread(killed.child.wait, ENDS_SECONDS) != 0
        await asyncio.gather(lost, return_exceptions=True)
    next_one = start()
    async with await next_one.channel() as channel, asyncio.timeout(ENDS_SECONDS):
        ana = system.through(channel, system.person("ana"))
        answer = await ana.say("repite hola", request_id="request-1")
        assert (answer.run.status, answer.reply.text) == (DONE, "hola")
    next_one.end()


@pytest.mark.slow
async def test_what_a_living_agent_serves_is_left_to_it_however_still_it_stands(
    system: System, start: Callable[..., AgentProcess]
) -> None:
    sleeper = start("agent.9", CRASH_SIGNAL="SIGSTOP")
    async with await sleeper.channel() as channel, asyncio.timeout(ENDS_SECONDS):
        ana = system.through(channel, system.person("ana"))
        answer = asyncio.create_task(ana.say("repite hola"))
        while not stands_still(sleeper):  # noqa: ASYNC110 - only the kernel knows
            await asyncio.sleep(0.02)
        before = leased(start)
        assert len(before) == 1
        other = start()
        async with await other.channel() as beside:
            assert (await system.through(beside, system.person("ben")).say("repite adiós", "t2")).run.status == DONE
            assert leased(start) == before
            sleeper.child.send_signal(signal.SIGCONT)
            assert (await answer).run.status == DONE
            assert leased(start) == []
        other.end()
    sleeper.end()
