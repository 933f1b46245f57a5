"""Damaged data, a full disk and a failing start."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import sqlite3
from pathlib import Path

import grpc
import pytest
from grpc import aio
from phylactery.memory.v1 import memory_pb2, output_pb2
from phylactery_chassis.auth.identity import Principal, Role, bind_principal
from phylactery_memory.api.outputs import OutputServicer

from tests.support.databases.power import Disk
from tests.support.processes import commands

LONG = "línea larga 🜛\r\n" * 8_000


def say(message_id: str, content: str = "hola") -> memory_pb2.Message:
    return memory_pb2.Message(message_id=message_id, role=memory_pb2.ROLE_USER, content=content)


def sabotage(path: Path, statement: str, *values: object) -> int:
    """Change the file behind the service's back and return how many rows it hit."""
    with sqlite3.connect(path) as connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    return changed


async def test_a_flipped_byte_anywhere_is_data_loss_for_its_range_alone(memory, ana, refused):
    pointer = (await ana.store(LONG)).output.pointer
    with sqlite3.connect(memory.path) as connection:
        first_char, chars, body = connection.execute(
            "SELECT first_char, chars, body FROM output_chunks ORDER BY first_char LIMIT 1 OFFSET 1"
        ).fetchone()
    connection.close()
    for at in (0, len(body) // 2, len(body) - 1):
        broken = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        assert sabotage(memory.path, "UPDATE output_chunks SET body = ? WHERE first_char = ?", broken, first_char) == 1
        for offset in (first_char, first_char + chars - 1, first_char - 5):
            refusal = await refused(ana.read(pointer, offset, 10))
            assert (refusal.code, refusal.reason) == (grpc.StatusCode.DATA_LOSS, "OUTPUT_CORRUPT")
            assert refusal.metadata == {"pointer": pointer}
    assert (await ana.read(pointer, 0, 100)).text == LONG[:100]
    sabotage(memory.path, "UPDATE output_chunks SET body = ? WHERE first_char = ?", body, first_char)
    assert await ana.read_all(pointer) == LONG


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM output_chunks WHERE first_char > 0",
        "DELETE FROM output_chunks WHERE first_char = 0",
        "DELETE FROM output_chunks",
        "UPDATE output_chunks SET digest = zeroblob(32)",
        "UPDATE output_chunks SET breaks = breaks + 1",
        "UPDATE output_chunks SET first_break = first_break + 1",
        "UPDATE output_chunks SET line_start = line_start + 1",
        "UPDATE output_chunks SET chars = chars - 1",
        "UPDATE outputs SET sha256 = replace(sha256, substr(sha256, 1, 1), 'x')",
        "UPDATE outputs SET seal = NULL",
        "UPDATE outputs SET key_id = ''",
        "UPDATE outputs SET key_id = '', seal = NULL",
        "UPDATE outputs SET tool_name = 'another'",
        "UPDATE outputs SET expire_us = expire_us + 1",
        "UPDATE user_keys SET wrapped = cast(substr(wrapped, 1, 40) || x'00' || substr(wrapped, 42) AS blob)",
        "UPDATE user_keys SET key_id = 'key_another'",
        "DELETE FROM user_keys",
        "UPDATE output_chunks SET body = substr(body, 1, length(body) - 1)",
        "UPDATE output_chunks SET first_char = first_char + 1",
        "UPDATE output_chunks SET body = (SELECT o.body FROM output_chunks o WHERE o.first_char = 0) WHERE first_char",
        "UPDATE outputs SET size_chars = size_chars + 7",
        "UPDATE output_chunks SET body = x'ff'",
    ],
)
async def test_missing_swapped_or_shortened_chunks_are_data_loss(memory, ana, refused, statement):
    pointer = (await ana.store(LONG)).output.pointer
    assert sabotage(memory.path, statement) > 0
    refusal = await refused(ana.read_all(pointer))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.DATA_LOSS, "OUTPUT_CORRUPT")


async def test_a_chunk_of_another_output_in_its_place_is_data_loss(memory, ana, refused):
    mine = (await ana.store(LONG)).output.pointer
    theirs = (await ana.store(LONG, tool_call_id="c2")).output.pointer
    sabotage(
        memory.path,
        "UPDATE output_chunks SET (body, digest) = "
        "(SELECT body, digest FROM output_chunks o WHERE o.pointer = ? AND o.first_char = output_chunks.first_char) "
        "WHERE pointer = ?",
        theirs,
        mine,
    )
    assert (await refused(ana.read(mine))).reason == "OUTPUT_CORRUPT"
    assert await ana.read_all(theirs) == LONG


async def test_one_broken_output_is_named_and_hides_no_other(memory, ana):
    pointers = [(await ana.store(LONG, tool_call_id=f"c{number}")).output.pointer for number in range(5)]
    record, text = pointers[3], pointers[1]
    assert sabotage(memory.path, "UPDATE outputs SET tool_name = 'another' WHERE pointer = ?", record) == 1
    last = "(SELECT max(first_char) FROM output_chunks WHERE pointer = ?)"
    statement = f"UPDATE output_chunks SET body = x'ff' WHERE pointer = ? AND first_char = {last}"
    assert sabotage(memory.path, statement, text, text) == 1
    listed, broken, token = [], [], ""
    while True:
        page = await ana.list_outputs(page_size=1, page_token=token)
        listed += [output.pointer for output in page.outputs]
        broken += page.broken_pointers
        token = page.next_page_token
        if not token:
            break
    assert (set(listed), broken) == (set(pointers) - {record}, [record])
    assert list((await ana.list_outputs()).broken_pointers) == [record]
    exported = await ana.export()
    assert [one["pointer"] for one in exported if one["type"] == "output_broken"] == [text, record]
    whole = {
        pointer: "".join(
            one["text"] for one in exported if (one["type"], one.get("pointer")) == ("output_text", pointer)
        )
        for pointer in pointers
    }
    assert [whole[pointer] == LONG for pointer in pointers] == [True, False, True, False, True]
    assert LONG.startswith(whole[text])
    assert (whole[text] != "", whole[record]) == (True, "")
    assert exported[-1]["records"] == {
        "output": 4,
        "output_broken": 2,
        "output_text": exported[-1]["records"]["output_text"],
    }


async def test_a_full_disk_is_resource_exhausted_changes_nothing_and_passes(memory, ana, refused):
    noise = base64.b64encode(random.Random(1).randbytes(200_000))  # which no compression makes small
    kept = (await ana.store(LONG)).output.pointer
    await ana.append("t1", say("m1"))

    make_room = memory.fill_disk()
    for number in range(3):
        refusal = await refused(ana.store(noise, tool_call_id=f"full{number}"))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")
    refusal = await refused(ana.append("t1", *(say(f"f{i}", "x" * 5_000) for i in range(50))))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")
    assert await ana.read_all(kept) == LONG
    assert memory.count("outputs") == 1
    assert len((await ana.list("t1")).messages) == 1
    make_room()
    assert (await ana.store(noise, tool_call_id="full0")).output.evicted
    assert (await ana.append("t1", say("m2"))).last_sequence == 2


async def test_a_closed_database_is_unavailable_not_internal(memory, ana, refused):
    pointer = (await ana.store(LONG)).output.pointer
    memory.database.close()
    for call in (ana.store(LONG, tool_call_id="c2"), ana.append("t1", say("m1"))):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    refusal = await refused(ana.get(pointer))
    assert refusal.code is grpc.StatusCode.UNAVAILABLE


class _GoneContext:
    """A call whose client is gone: it takes no metadata any more."""

    async def send_initial_metadata(self, _metadata: object) -> None:
        raise aio.UsageError


async def test_a_stream_that_ends_because_the_client_is_gone_is_no_whole_output(memory, ana):
    async def requests():
        yield ana.spec()
        yield output_pb2.StoreOutputRequest(chunk=LONG.encode())

    servicer = OutputServicer(memory.outputs)
    with bind_principal(Principal("ana", "acme", frozenset({Role.CALLER}))), pytest.raises(asyncio.CancelledError):
        await servicer.StoreOutput(requests(), _GoneContext())
    assert memory.count("outputs") == 0


def start_memory(folder: Path, *, port: str) -> commands.Finished:
    """Start a memory of its own process that does not come to serve."""
    settings = {"MEMORY_PORT": port, "MEMORY_DATA_DIR": str(folder)}
    return commands.run("phylactery_memory", environment={**os.environ, **settings})


@pytest.mark.slow
async def test_a_wrong_setting_is_one_sentence_and_exit_code_two(tmp_path):
    done = await asyncio.to_thread(start_memory, tmp_path, port="nope")
    said = done.stderr
    assert done.returncode == 2
    assert said.startswith("memory: MEMORY_PORT: ")
    assert said.count("\n") == 1


@pytest.mark.slow
async def test_a_database_of_a_newer_program_is_named_and_not_touched(tmp_path):
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("CREATE TABLE phylactery_memory_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO phylactery_memory_version VALUES ('9999')")
    connection.close()
    done = await asyncio.to_thread(start_memory, tmp_path, port="0")
    assert done.returncode == 2
    assert "newer" in done.stderr


async def test_after_a_failed_sync_every_write_is_refused_reads_go_on_and_the_next_start_serves(
    make_memory, refused, tmp_path
):
    disk = Disk("below-the-service")
    url, folder = f"sqlite+power:///{tmp_path / 'memory.db'}?disk={disk.name}", tmp_path / "data"
    memory = await make_memory(database_url=url, data_dir=folder)
    ana = memory.user()
    pointer = (await ana.store(LONG)).output.pointer
    await ana.append("t1", say("m1"))
    disk.fail_syncs = True
    assert (await refused(ana.append("t1", say("m2")))).reason == "STORE_UNAVAILABLE"
    disk.fail_syncs = False
    for call in (
        ana.store(LONG, run_id="r2"),
        ana.append("t1", say("m3")),
        ana.write("Mi perro se llama Coco", keep=True),
        ana.delete(pointer),
        ana.erase(),
    ):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert "restart the service" in refusal.message
    assert not await memory.database.probe()
    assert await ana.read_all(pointer) == LONG
    assert "m1" in [message.message_id for message in (await ana.list("t1")).messages]
    await memory.channel.close()
    await memory.server.stop()
    again = await make_memory(database_url=url, data_dir=folder)
    assert (await again.user().append("t1", say("m4"))).appended == 1
    assert (await again.user().write("Mi perro se llama Coco", keep=True)).created
