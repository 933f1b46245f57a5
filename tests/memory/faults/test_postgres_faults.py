"""PostgreSQL stops in the middle of the service's writes, and returns: nothing partial, nothing lost."""

from __future__ import annotations

import asyncio
import itertools
import random

import grpc
import psycopg
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.memory.v1 import user_memory_pb2
from phylactery_memory.tables import metadata

from tests.support.servers import postgres

UNKNOWN = "outcome is unknown"
LONG = "línea larga 🜛\r\n" * 8_000


@pytest.fixture(scope="module")
def cluster():
    """A cluster for these tests alone, which others would miss while it is down."""
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    with postgres.running() as one:
        yield one


@pytest.fixture
async def down(cluster, make_memory, monkeypatch):
    """A memory service on that cluster, and what takes the cluster down at a statement."""
    url = postgres.create_database(cluster.url, f"m{random.getrandbits(64):x}")
    memory = await make_memory(database_url=url)
    return memory, Fall(cluster, memory.database.engine, monkeypatch)


class Fall:
    """Restarts the cluster once, right after a statement, before a commit, or after one whose answer is lost.

    A commit of nothing, such as health tries every second, is none of these.
    """

    def __init__(self, cluster, engine, monkeypatch) -> None:
        self.cluster, self.at, self.mode, self.fell = cluster, "", "immediate", 0
        self._wrote = set()
        for name in ("execute", "executemany"):
            monkeypatch.setattr(psycopg.Cursor, name, self._watched(getattr(psycopg.Cursor, name)))
        sa.event.listen(engine, "commit", self._commit)

    def _watched(self, execute):
        """Every statement comes by here, those that go past SQLAlchemy too."""

        def run(cursor, statement, *rest, **options):
            done = execute(cursor, statement, *rest, **options)
            self._after(cursor.connection, str(statement))
            return done

        return run

    def _after(self, raw, statement) -> None:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            self._wrote.add(raw)
        if self.at and statement.startswith(self.at):
            self._restart()

    def _commit(self, connection) -> None:
        raw = connection.connection.dbapi_connection
        if raw not in self._wrote:
            return
        self._wrote.discard(raw)
        if self.at == "COMMIT":
            self._restart()
        elif self.at == "LOST":
            raw.commit = lambda: self._lose(raw)

    def _lose(self, raw) -> None:
        type(raw).commit(raw)
        self._restart()
        raw.execute("SELECT 'who answers?'")

    def _restart(self) -> None:
        """Take the cluster down and up again; it stands in the way of the transaction meanwhile."""
        self.at = ""
        self.cluster.stop(self.mode)
        self.cluster.start()
        self.fell += 1


def rows(memory) -> dict[str, int]:
    return {table: memory.count(table) for table in metadata.tables}


async def store(user):
    return (await user.store(LONG)).output.pointer


async def append(user):
    return await user.say("m1", "Me llamo Zoe")


async def write(user):
    return (await user.write("Mi perro se llama Coco", keep=True)).memory.memory_id


async def set_field(user):
    """Need the message m0."""
    said = user_memory_pb2.MessageRef(thread_id="t1", message_id="m0")
    return (await user.set(ui__theme="dark", lineage=[user_memory_pb2.Lineage(message=said)])).etag


async def erase(user):
    return (await user.erase()).erasure_id


CALLS = [
    (store, "INSERT INTO user_keys"),
    (store, "INSERT INTO outputs"),
    (store, "INSERT INTO output_chunks"),
    (append, "INSERT INTO threads"),
    (append, "INSERT INTO messages_v2"),
    (write, "INSERT INTO user_memory"),
    (write, "INSERT INTO memory_postings"),
    (set_field, "INSERT INTO memory_profile"),
    (erase, "DELETE FROM user_keys"),
    (erase, "INSERT INTO erasures"),
    *((call, "COMMIT") for call in (store, append, write, set_field, erase)),
]


@pytest.mark.slow
async def test_a_transaction_the_server_dies_in_leaves_nothing_and_is_done_when_it_is_asked_again(down, refused):
    memory, fall = down
    for number, (call, at) in enumerate(CALLS):
        user = memory.user(f"u{number}")
        if call is set_field:
            await user.say("m0", "dark")
        elif call is erase:
            await asyncio.gather(store(user), append(user), write(user))
        before = rows(memory)
        fall.at, fall.mode = at, ("immediate", "fast")[number % 2]
        refusal = await refused(call(user))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"), at
        assert at != "COMMIT" or UNKNOWN in refusal.message, at
        assert fall.fell == number + 1
        between = rows(memory)
        if call is store:  # the user's key is a transaction of its own
            before["user_keys"] = between["user_keys"] = 0
        assert between == before, at
        assert await call(user)
        assert rows(memory) != between
        assert await memory.database.probe()
    assert await memory.user("u2").read_all((await memory.user("u2").list_outputs()).outputs[0].pointer) == LONG


@pytest.mark.slow
@pytest.mark.parametrize("call", [store, append, write, set_field, erase])
async def test_what_was_kept_though_nobody_heard_of_it_is_kept_once_when_it_is_asked_again(down, refused, call):
    memory, fall = down
    user = memory.user()
    await user.say("m0", "dark")
    await user.store(LONG, run_id="another")  # so that the key is there
    fall.at = "LOST"
    refusal = await refused(call(user))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    assert UNKNOWN in refusal.message
    assert fall.fell == 1
    kept = rows(memory)
    assert await call(user)
    assert rows(memory) == kept


@pytest.mark.slow
async def test_restarts_under_many_writers_lose_nothing_acknowledged_and_refuse_only_for_now(down):
    memory, fall = down
    kept, refusals, enough, modes = [], [], asyncio.Event(), ("immediate", "fast", "immediate")

    async def repeat(name: str) -> None:
        user = memory.user(name)
        for number in itertools.count():
            if fall.fell == len(modes) and number > 20:
                return
            text = f"memoria {name} {number} perro azul"
            try:
                await user.say(f"m{number}", text)
                kept.append((user, number, text, await user.write(text, keep=True)))
            except aio.AioRpcError as error:
                refusals.append(error.code())
            if number % 8 == 7:
                enough.set()

    async def fell() -> None:
        for mode in modes:
            enough.clear()
            await enough.wait()
            fall.mode = mode
            await asyncio.to_thread(fall._restart)

    await asyncio.gather(fell(), *(repeat(f"u{number}") for number in range(4)))
    assert set(refusals) <= {grpc.StatusCode.UNAVAILABLE}
    for user, number, text, written in kept:
        assert written.memory.text == text
        assert any(m.message_id == f"m{number}" for m in (await user.list("t1", page_size=500)).messages)
    held = memory.database.read_sync(lambda c: set(c.scalars(sa.text("SELECT text FROM user_memory"))))
    assert {bytes(text).decode() for text in held} >= {text for _, _, text, _ in kept}
