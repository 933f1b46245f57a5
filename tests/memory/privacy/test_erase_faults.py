"""An erasure between any two queries of a read: the result is complete, or not found."""

from __future__ import annotations

from contextlib import contextmanager

import grpc
import pytest
from grpc import aio
from phylactery.memory.v1 import user_memory_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_memory.privacy.store import remove_all

from tests.support.databases.erasures import files_with
from tests.support.databases.statements import watched

TEXT = "".join(f"línea {number} 🜛\r\n" for number in range(2_000))
LONG = "".join(f"{'aguja' * (number % 9_000 == 7)} {number} " + "x" * 2_000 + "\n" for number in range(3_000))
"""Fetched in several goes by a search."""
ANA = Principal("ana", "acme", frozenset())
BY_ITSELF = ("SELECT 1", "SELECT outputs.pointer \nFROM outputs \nWHERE outputs.expire_us <=")


@contextmanager
def erased_at(memory, number):
    """Remove everything of ana right before the number-th query, and say whether there were as many."""
    seen, happened = [0], []

    def look(connection, statement, _values) -> None:
        if (
            connection.get_execution_options().get("phylactery_write")
            or not statement.startswith("SELECT")
            or statement.startswith(BY_ITSELF)
            or "NOT (EXISTS" in statement
        ):
            return
        seen[0] += 1
        if seen[0] == number:
            happened.append(memory.database.write_sync(lambda c: remove_all(c, ANA, "era_1")))

    with watched(memory.database.engine, look):
        yield happened


async def fill(user, text):
    await user.say("m1", "Mi perro se llama Coco")
    await user.say("m2", "¿Y el gato?")
    await user.write("Mi perro se llama Coco", keep=True)
    await user.write("Mi perro es azul", keep=True)
    return (await user.store(text)).output.pointer


async def call_or_refusal(call, user, pointer):
    try:
        return await call(user, pointer)
    except aio.AioRpcError as error:
        return error.code()


async def get(user, pointer):
    return [await user.get(pointer)]


async def read(user, pointer):
    return [(await user.read(pointer, 20_000, 9_000)).text]


async def read_lines(user, pointer):
    return [(await user.read_lines(pointer, 1_500, 50)).text]


async def rehydrate(user, pointer):
    return [(await user.rehydrate(pointer)).text]


async def search(user, pointer):
    """Go on where an answer ends: a search on a busy machine stops early."""
    lines, offset, total = [], 0, 1
    while offset < total:
        answer = await user.grep(pointer, "aguja", context_lines=1, offset=offset)
        lines += [match.line.number for match in answer.matches]
        offset, total = answer.next_offset, answer.total_chars
    return [lines]


async def list_outputs(user, _pointer):
    return [[output.pointer for output in (await user.list_outputs()).outputs]]


async def find(user, _pointer):
    request = user_memory_pb2.SearchMemoriesRequest(query="perro")
    return [[hit.memory.text for hit in (await user.memory.SearchMemories(request, metadata=user.metadata)).matches]]


async def messages(user, _pointer):
    return [[message.message_id for message in (await user.list("t1")).messages]]


async def context(user, _pointer):
    answer = await user.context(query="perro azul Coco gato")
    return [[message.message_id for message in answer.messages], [hit.memory.text for hit in answer.memories]]


async def export(user, _pointer):
    records = await user.export()
    assert records[-1]["type"] == "end"
    kinds = {"message": "content", "memory": "text", "output": "pointer"}
    layers = [[record[field] for record in records if record["type"] == kind] for kind, field in kinds.items()]
    assert TEXT.startswith("".join(record["text"] for record in records if record["type"] == "output_text"))
    return layers


@pytest.mark.parametrize(
    "call", [get, read, read_lines, rehydrate, search, list_outputs, find, messages, context, export]
)
async def test_an_erasure_between_any_two_queries_of_a_read_leaves_each_layer_whole_or_gone(kept, call):
    ana, happened, number = kept.user("ana", "acme"), [True], 0
    while happened:
        number += 1
        pointer = await fill(ana, LONG if call is search else TEXT)
        whole = await call(ana, pointer)
        with erased_at(kept, number) as happened:
            answer = await call_or_refusal(call, ana, pointer)
        if answer is grpc.StatusCode.NOT_FOUND:
            assert happened
            continue
        gone = [[]] * len(whole)
        assert all(part in (all_of_it, nothing) for part, all_of_it, nothing in zip(answer, whole, gone, strict=True))
        assert happened or answer == whole
    assert number > 2


async def test_after_an_erasure_no_file_holds_a_stem_an_id_or_a_name_of_it(memory):
    """An index keeps words by their stems, and rows name threads, runs and tools: these are words of the user too."""
    words = ("zarzuel", "hilo-secreto", "vuelta-secreta", "herramienta-secreta", "mensaje-secreto", "ana-maria")
    ana, ben = memory.user("ana-maria", "acme"), memory.user("ben", "acme")
    for user in (ana, ben):
        origin = await user.say("mensaje-secreto", "Me llamo Zarzuela", thread="hilo-secreto")
        await user.write("Me llamo Zarzuela", lineage=[origin], thread_id="hilo-secreto", sequence=1)
        await user.write("Las zarzuelas del abuelo", keep=True)
        await user.store(TEXT, thread_id="hilo-secreto", run_id="vuelta-secreta", tool_name="herramienta-secreta")
    folder = memory.path.parent
    for word in words:
        assert files_with(folder, word), word
    await ben.erase()
    await ana.erase()
    for word in words:
        assert not files_with(folder, word), word
