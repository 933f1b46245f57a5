"""Memory's disk is full while a tool returns more than a context holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent.system import DONE, open_system
from tests.support.agent.threads import watched
from tests.support.databases.power import Disk


async def test_where_memorys_disk_is_full_the_original_stays_inline_and_later_ones_are_evicted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk("below-memory")
    monkeypatch.setenv("MEMORY_DATABASE_URL", f"sqlite+power:///{tmp_path / 'memory.db'}?disk={disk.name}")
    async with open_system(tmp_path) as system:
        ana, file = system.person("ana"), system.sandbox / "grande.txt"
        noise = "".join(f"{number * 2_654_435_761 % 10**9:09d}\n" for number in range(1_500))
        file.write_text(noise)
        statuses = []
        disk.room = 0  # the log's old room goes first
        while "success" not in statuses:
            assert len(statuses) < 20
            answer = await ana.say("lee grande.txt")
            assert (answer.run.status, answer.run.reason) == (DONE, "ANSWERED")
            [record] = answer.run.tool_calls
            statuses.append(record.status)
        assert record.size_chars == len(noise)
        assert not record.pointer
        assert noise[:5_000] in answer.reply.text
        disk.room = None
        [record] = (await ana.say("lee grande.txt")).run.tool_calls
        assert record.status == "evicted"
        part = await ana.say(f"lee la salida {record.pointer} desde 10000 hasta 10020")
        assert noise[10_000:10_019] in part.reply.text
        said = [text for role, text in await ana.transcript() if role == "user"]
        assert len(said) == len(statuses) + 2, "what was said while the disk was full was not lost"


async def test_where_memory_keeps_no_more_of_a_thread_the_thread_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MAX_THREAD_MESSAGES", "3")
    async with open_system(tmp_path) as system:
        ana = system.person("ana")
        for text in ("hola", "gracias", "hola", "adiós"):
            assert (await ana.say(text)).run.status == DONE
            assert await system.agent.delivery.flush_all()
        last = (await ana.thread()).last_sequence
        async with watched(ana) as watch:
            events = await watch.until(last)
        assert [event.sequence for event in events] == list(range(1, last + 1))
        [told] = [event for event in events if event.HasField("notice")]
        second = [event.run_id for event in events if event.HasField("run_started")][1]
        assert (told.notice.reason, told.run_id) == ("TRANSCRIPT_FULL", second)
        assert len(await ana.transcript()) <= 3
        assert (await ana.say("hola", "t2")).run.status == DONE
        await system.agent.delivery.flush_all()
        assert len(await ana.transcript("t2")) == 2
