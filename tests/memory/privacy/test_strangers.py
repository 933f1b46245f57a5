"""Another user's data is indistinguishable from missing data: same response, same queries, same outcome."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio
from grpc_status import rpc_status
from phylactery.memory.v1 import user_memory_pb2

from tests.support.databases.statements import watched

LONG = "línea larga 🜛\r\n" * 8_000
NOBODYS_POINTER, NOBODYS_MEMORY = "out_" + "a" * 26, "mem_" + "a" * 26
BY_ITSELF = (
    "BEGIN",
    "COMMIT",
    "SAVEPOINT",
    "RELEASE",
    "ROLLBACK",
    "SELECT 1",
    "SELECT outputs.pointer \nFROM outputs \nWHERE outputs.expire_us <=",
    "SELECT master_keys.master_id \nFROM master_keys",
)
"""How begins what nobody asked for.

The words of a transaction, a probe of health, the removal of what has expired, and what new keys there are.
"""
IN_PASSING = ("NOT (EXISTS", "(user_keys.master_id IN")
"""What stands in the removal of what belongs to nobody, and in the search for keys to be wrapped anew."""


@contextmanager
def queries(memory):
    """Gather what is asked of the database, with how long each value is."""
    asked: list[tuple[str, list[int]]] = []

    def note(_connection, statement, values) -> None:
        values = values.values() if isinstance(values, dict) else values
        if not statement.startswith(BY_ITSELF) and not any(one in statement for one in IN_PASSING):
            asked.append((statement, [len(str(value)) for value in values]))

    with watched(memory.database.engine, note):
        yield asked


async def told(memory, call, user, name):
    """Return all there is to learn from a call: its answer without the id, and what was asked of the database."""
    with queries(memory) as asked:
        try:
            answer = str(await call(user, name))
        except aio.AioRpcError as error:
            answer = f"{error.code()} {error.details()} {rpc_status.from_call(error)}"
    return re.sub(name, "ID", answer), sorted(asked)  # some are asked at once


def forget(user, memory_id):
    request = user_memory_pb2.ForgetMemoryRequest(memory_id=memory_id)
    return user.memory.ForgetMemory(request, metadata=user.metadata)


def update(user, memory_id):
    request = user_memory_pb2.UpdateMemoryRequest(memory_id=memory_id, etag="r1", importance=1)
    request.update_mask.paths.append("importance")
    return user.memory.UpdateMemory(request, metadata=user.metadata)


def from_output(pointer):
    return [user_memory_pb2.Lineage(pointer=pointer)]


OUTPUT_CALLS = {
    "get": lambda user, pointer: user.get(pointer),
    "read": lambda user, pointer: user.read(pointer, 5_000, 100),
    "read lines": lambda user, pointer: user.read_lines(pointer, 2_000, 3),
    "search": lambda user, pointer: user.grep(pointer, "larga", offset=70_000),
    "rehydrate": lambda user, pointer: user.rehydrate(pointer),
    "delete": lambda user, pointer: user.delete(pointer),
    "remember": lambda user, pointer: user.write("Mi perro es azul", keep=True, lineage=from_output(pointer)),
    "set": lambda user, pointer: user.set(ui__theme="dark", lineage=from_output(pointer)),
}
MEMORY_CALLS = {
    "forget": forget,
    "update": update,
    "supersede": lambda user, memory_id: user.write("Mi perro es rojo", keep=True, supersedes=memory_id),
}


@pytest.mark.parametrize("call", OUTPUT_CALLS.values(), ids=OUTPUT_CALLS)
async def test_a_pointer_of_another_user_or_tenant_takes_the_same_queries_as_one_that_never_was(kept, call):
    ana, ben, twin = kept.user("ana", "acme"), kept.user("ben", "acme"), kept.user("ana", "umbrella")
    theirs = [
        (await ben.store(LONG)).output.pointer,
        (await twin.store(LONG)).output.pointer,
        (await ben.store(LONG, run_id="r2", do_not_store=True)).output.pointer,
        (await ben.store(LONG, run_id="r3", ttl=Duration(seconds=60))).output.pointer,
    ]
    mine = (await ana.store(LONG)).output.pointer
    await ana.write("Mi perro se llama Coco", keep=True)
    nobodys, asked = await told(kept, call, ana, NOBODYS_POINTER)
    assert asked, "the database was asked"
    for pointer in theirs:
        assert await told(kept, call, ana, pointer) == (nobodys, asked)
    kept.clock.advance(61)
    assert await told(kept, call, ana, theirs[-1]) == (nobodys, asked)
    assert (await told(kept, call, ana, mine))[0] != nobodys


@pytest.mark.parametrize("call", MEMORY_CALLS.values(), ids=MEMORY_CALLS)
async def test_a_memory_of_another_user_or_tenant_takes_the_same_queries_as_one_that_never_was(kept, call):
    ana, *others = kept.user("ana", "acme"), kept.user("ben", "acme"), kept.user("ana", "umbrella")
    theirs = [(await other.write("Mi gato se llama Tinto", keep=True)).memory.memory_id for other in others]
    mine = (await ana.write("Mi perro se llama Coco", keep=True)).memory.memory_id
    nobodys, asked = await told(kept, call, ana, NOBODYS_MEMORY)
    assert asked, "the database was asked"
    for memory_id in theirs:
        assert await told(kept, call, ana, memory_id) == (nobodys, asked)
    assert (await told(kept, call, ana, mine))[0] != nobodys


async def test_a_thread_of_another_user_or_tenant_takes_the_same_queries_as_one_that_never_was(kept):
    ana, *others = kept.user("ana", "acme"), kept.user("ben", "acme"), kept.user("ana", "umbrella")
    for other in others:
        await other.say("m1", "hola", thread="theirs")
    for call in (lambda user, thread: user.list(thread), lambda user, thread: user.context(thread_id=thread)):
        nobodys = await told(kept, call, ana, "nobody")
        assert await told(kept, call, ana, "theirs") == nobodys
