"""Following the logs: every entry once and in order, through disconnects, replicas and restarts, until the drain."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable

import grpc
import pytest
from phylactery.riskgate.v1 import audit_pb2
from phylactery_riskgate.audit import reader as tails_module

READ = ("read_file", '{"path":"a.txt"}')


class Follower:
    """Reads a tail, keeps what came, and where it could go on."""

    def __init__(self, person, **options) -> None:
        self.person, self.options = person, options
        self.entries: list[audit_pb2.AuditEntry] = []
        self.positions: dict[str, int] = {}
        self.call = None

    async def open(self) -> Follower:
        positions = [audit_pb2.LogPosition(log=log, next_index=at) for log, at in self.positions.items()]
        request = audit_pb2.TailEntriesRequest(positions=positions, **self.options)
        self.call = self.person.audit.TailEntries(request, metadata=self.person.metadata)
        await self.read()
        assert self.positions
        return self

    async def read(self) -> bool:
        """Read one message; return whether there was one."""
        message = await asyncio.wait_for(self.call.read(), 60)
        if message is grpc.aio.EOF:
            return False
        if message.HasField("entry"):
            self.entries.append(message.entry)
            self.positions[message.entry.log] = message.entry.index + 1
        else:
            self.positions.update({one.log: one.next_index for one in message.positions})
        return True

    async def until(self, count: int) -> list[audit_pb2.AuditEntry]:
        while len(self.entries) < count:
            assert await self.read()
        return self.entries


async def settled(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody signals that a stream was cleaned up
            await asyncio.sleep(0.01)


def places(entries) -> list[tuple[str, int]]:
    return [(entry.log, entry.index) for entry in entries]


async def test_a_tail_sends_what_comes_from_now_on_and_only_the_tenants_own(gate, call):
    ana, zoe = gate.person("ana"), gate.person("zoe")
    await ana.evaluate(call(*READ, "before"))
    follower = await Follower(gate.person("aldo")).open()
    assert follower.positions == {"riskgate": 1}
    for number in range(5):
        await zoe.evaluate(call(*READ, f"z{number}"))
        await ana.evaluate(call(*READ, f"a{number}"))
    entries = await follower.until(5)
    assert places(entries) == [("riskgate", index) for index in (2, 4, 6, 8, 10)]
    assert {json.loads(entry.record_json)["tenant"] for entry in entries} == {"acme"}


async def test_a_filtered_tail_from_the_beginning_tells_how_far_it_is_where_nothing_fits(gate, call, monkeypatch):
    monkeypatch.setattr(tails_module, "_QUIET", 4)
    monkeypatch.setattr(tails_module, "_CHUNK", 2)
    for number in range(9):
        await gate.person("zoe").evaluate(call(*READ, f"z{number}"))
    await gate.person("ben").evaluate(call(*READ, "b"))
    wanted = audit_pb2.EntryFilter(subject="ben", kind="decision")
    follower = Follower(gate.person("aldo"), filter=wanted, from_beginning=True)
    await follower.open()
    assert follower.positions == {"riskgate": 0}
    assert await follower.read()
    assert 4 <= follower.positions["riskgate"] < 10
    assert follower.entries == []
    assert places(await follower.until(1)) == [("riskgate", 9)]


async def test_a_follower_that_hangs_up_again_and_again_gets_every_entry_once(gate, call):
    ana = gate.person("ana")
    follower = await Follower(gate.person("aldo")).open()

    async def write() -> None:
        for number in range(60):
            await ana.evaluate(call(*READ, f"c{number}"))

    writing = asyncio.create_task(write())
    for count in range(3, 61, 3):
        await follower.until(count)
        follower.call.cancel()
        await follower.open()
    await writing
    assert places(await follower.until(60)) == [("riskgate", index) for index in range(60)]
    tails = gate.riskgate.auditing.tails
    follower.call.cancel()
    await settled(lambda: not tails._followers and tails._watch is None)


@pytest.mark.slow
async def test_a_tail_follows_other_replicas_and_goes_on_at_any_of_them(make_gate, shared_database, call):
    one = await make_gate("data", database_url=shared_database, instance="one")
    two = await make_gate("data", database_url=shared_database, instance="two")
    follower = await Follower(one.person("aldo")).open()

    async def write(gate, name: str) -> None:
        for number in range(20):
            await gate.person("ana").evaluate(call(*READ, f"{name}{number}"))

    await asyncio.gather(write(one, "a"), write(two, "b"))
    entries = list(await follower.until(40))
    for log in ("riskgate/one", "riskgate/two"):
        assert [entry.index for entry in entries if entry.log == log] == list(range(20))
    three = await make_gate("data", database_url=shared_database, instance="three")
    follower.person = two.person("aldo")
    follower.call.cancel()
    await follower.open()
    await three.person("ana").evaluate(call(*READ, "c-new"))
    assert places((await follower.until(41))[40:]) == [("riskgate/three", 0)]
    page = await one.person("aldo").audit.ListEntries(
        audit_pb2.ListEntriesRequest(page_size=200, oldest_first=True), metadata=one.person("aldo").metadata
    )
    assert sorted(places(page.entries)) == sorted(places(follower.entries))
    times = [entry.create_time.ToMicroseconds() for entry in page.entries]
    assert times == sorted(times)


async def test_a_tail_ends_with_ok_and_its_last_positions_when_the_server_drains(make_gate, call):
    gate = await make_gate()
    follower = await Follower(gate.person("aldo")).open()
    await gate.person("ana").evaluate(call(*READ))
    stopping = asyncio.create_task(gate.server.stop(drain_seconds=600))
    while await follower.read():
        pass
    assert await follower.call.code() is grpc.StatusCode.OK
    assert (places(follower.entries), follower.positions) == ([("riskgate", 0)], {"riskgate": 1})
    async with asyncio.timeout(60):
        await stopping  # the stream did not use up the grace


@pytest.mark.slow
async def test_a_follower_that_reads_nothing_holds_up_nobody_and_is_not_buffered_for(gate, call, monkeypatch):
    monkeypatch.setattr(tails_module, "_CHUNK", 8)
    reads = []
    whole = tails_module.rows.following

    def counted(*given):
        found = whole(*given)
        reads.append(len(found))
        return found

    monkeypatch.setattr(tails_module.rows, "following", counted)
    big = json.dumps({"path": "p" * 200})
    for number in range(300):
        await gate.person("ana").evaluate(call("read_file", big, f"c{number}"))
    lazy = await Follower(gate.person("aldo"), from_beginning=True).open()
    eager = await Follower(gate.person("aldo"), from_beginning=True).open()
    assert len(await eager.until(300)) == 300
    assert max(reads) <= 8
    await gate.person("ana").evaluate(call(*READ, "after"))
    assert len(await eager.until(301)) == 301
    assert places(await lazy.until(301)) == places(eager.entries)


async def test_more_tails_than_a_tenant_may_have_are_refused_and_keep_no_other_tenant_out(gate, monkeypatch):
    monkeypatch.setattr(tails_module, "MAX_TAILS", 2)
    aldo = gate.person("aldo")
    first, second = await Follower(aldo).open(), await Follower(aldo).open()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await Follower(aldo).open()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await Follower(gate.person("zora")).open()
    first.call.cancel()
    await settled(lambda: gate.riskgate.auditing.tails._followers["acme"] == 1)
    assert await Follower(aldo).open()
    assert not second.call.done()


async def test_no_bytes_make_a_tail_fail_in_a_way_a_client_cannot_understand(gate):
    valid = audit_pb2.TailEntriesRequest(
        filter=audit_pb2.EntryFilter(kind="decision", run_id="r1"),
        positions=[audit_pb2.LogPosition(log="riskgate", next_index=0)],
    ).SerializeToString()
    chooser, codes = random.Random(7), set()
    tail = gate.channel.unary_stream("/phylactery.riskgate.v1.AuditService/TailEntries")
    for _ in range(150):
        data = bytearray(valid)
        for _ in range(chooser.randint(0, 3)):
            data[chooser.randrange(len(data))] = chooser.randrange(256)
        call = tail(bytes(data), metadata=gate.person("aldo").metadata)
        try:
            await asyncio.wait_for(call.read(), 60)
            codes.add("OK")
        except grpc.aio.AioRpcError as error:
            codes.add(error.code().name)
        call.cancel()
    assert codes == {"OK", "INVALID_ARGUMENT"}
