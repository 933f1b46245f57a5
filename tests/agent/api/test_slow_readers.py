"""Clients that open a stream and do not read it: the agent buffers little, serves others, and loses nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from phylactery.agent.v1 import chat_pb2
from phylactery_agent.runtime.storage.events import append_event
from sqlalchemy.engine import Connection

from tests.support.agent.process import AgentProcess
from tests.support.agent.stores import ANA, T1, Stores
from tests.support.agent.system import DONE, Person, open_system

EVENTS, CHARACTERS = 1_500, 48_000
"""What a thread holds: about 70 MiB."""
CLIENTS, MOST_GROWN_KIB = 12, 64 * 1024
OLD, LONG = "request-long", "t-long"


@dataclass
class Served:
    """A real agent process, and whoever talks to it."""

    process: AgentProcess
    folder: Path
    ana: Person

    def memory_kib(self, name: str = "VmRSS") -> int:
        """Return the memory of the process, as Linux counts it: now, or VmHWM, the most since its reset."""
        lines = Path(f"/proc/{self.process.child.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))

    def forget_peak(self) -> None:
        Path(f"/proc/{self.process.child.pid}/clear_refs").write_text("5")

    async def client(self, stack: AsyncExitStack) -> Person:
        """Return the same person through a connection of its own."""
        channel = await self.process.channel()
        return self.ana._system.through(await stack.enter_async_context(channel), self.ana)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with open_system(tmp_path) as system:
        folder = tmp_path / "process"
        process = AgentProcess(system, folder)
        async with await process.channel() as channel:
            yield Served(process, folder, system.through(channel, system.person("ana")))
        process.end()


async def long_thread(served: Served) -> Sequence[int]:
    """Say something, and have its turn told by very many long events; return the sequences of the thread."""
    assert (await served.ana.say("hola", LONG, request_id=OLD)).run.status == DONE
    with closing(sqlite3.connect(served.folder / "agent.db", timeout=60)) as database, database:
        [row] = database.execute(
            "SELECT thread_key, thread_id, sequence, run_id, turn_id, created_us FROM agent_events"
            " WHERE kind = 'run_finished'"
        ).fetchall()
        thread_key, thread_id, end, run_id, turn_id, created_us = row
        database.execute("UPDATE agent_events SET sequence = ? WHERE sequence = ?", (end + EVENTS, end))
        told = json.dumps({"message_id": "m1", "offset": 0, "text": "x" * CHARACTERS})
        database.executemany(
            "INSERT INTO agent_events (thread_key, thread_id, sequence, run_id, turn_id, once, kind, payload,"
            " created_us) VALUES (?, ?, ?, ?, ?, ?, 'message_delta', ?, ?)",
            [(thread_key, thread_id, end + n, run_id, turn_id, f"n{n}", told, created_us) for n in range(EVENTS)],
        )
        database.execute("UPDATE agent_threads SET last_sequence = ?", (end + EVENTS,))
    return range(1, end + EVENTS + 1)


async def stalled(person: Person) -> list[Any]:
    """Open a watch and a turn's stream, and wait until the agent sends; nothing is read of either."""
    watch = chat_pb2.WatchThreadRequest(thread_id=LONG)
    again = chat_pb2.StreamMessageRequest(request_id=OLD, thread_id=LONG, text="hola")
    calls = [
        person.chat.WatchThread(watch, metadata=person.metadata, timeout=600),
        person.chat.StreamMessage(again, metadata=person.metadata, timeout=600),
    ]
    for call in calls:
        await call.initial_metadata()
    return calls


@pytest.mark.slow
async def test_readers_that_stand_still_cost_little_and_hold_up_nobody(served: Served) -> None:
    sequences = await long_thread(served)
    for turn in range(3):
        await served.ana.say("repite hola", f"t-warm-{turn}")
    served.forget_peak()
    before = served.memory_kib()
    async with AsyncExitStack() as stack:
        calls = [await stalled(await served.client(stack)) for _ in range(CLIENTS)]
        for turn in range(10):  # others are served meanwhile, and so is the thread nobody reads
            assert (await served.ana.say("repite hola", f"t-{turn}")).run.status == DONE
        assert (await served.ana.say("repite adiós", LONG)).run.status == DONE
        assert served.memory_kib("VmHWM") - before < MOST_GROWN_KIB
        told = [response.event.sequence async for response in calls[0][1]]
        assert told == list(sequences), "whoever reads after all is told everything of the turn"
        watch, last = calls[1][0], (await served.ana.thread(LONG)).last_sequence
        seen = []
        while not seen or seen[-1] < last:
            seen.append((await watch.read()).event.sequence)
        assert seen == list(range(1, last + 1))
        for one in calls:
            for call in one:
                call.cancel()
    assert (await served.ana.say("repite hola")).run.status == DONE


async def test_long_events_are_read_few_at_a_time_and_one_at_least(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await stores.end(claim)
    sizes = [10, 40_000, 20_000, 200_000, 10, 10]

    def tell(connection: Connection) -> None:
        for place, size in enumerate(sizes):
            append_event(connection, claim.lease, "message_delta", {"text": "x" * size}, once=f"n{place}", now_us=1)

    first = (await stores.threads.get(ANA, "t1")).last_sequence
    await stores.database.write(tell)
    pages, after = [], first
    while (tail := await stores.log.of_thread(T1, after=after)) is not None and tail.events:
        of_turn = await stores.log.of_turn(claim.lease.turn_id, after=after)
        assert of_turn == tail.events
        pages.append([len(event.payload["text"]) for event in tail.events])
        after = tail.events[-1].sequence
    assert pages == [[10, 40_000, 20_000], [200_000], [10, 10]]
