"""Two replicas over one database tell once, and what a killed process noted or claimed is told after it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery_riskgate.notices import delivery
from phylactery_riskgate.notices.model import NoticeState
from phylactery_riskgate.store import notices as rows

from tests.support.riskgate.notices import arrivals, until
from tests.support.riskgate.people import Person, tool_call

PAY = '{"to":"canary-recipient","note":"n"}'


async def ask(person: Person, number: int):
    call = tool_call("pay", PAY, f"c{number}")
    return (await person.evaluate(call, run=f"r{number}", thread=f"t{number}")).approval


async def test_of_two_replicas_one_tells_each_notice(told_gate, shared_database, sinks, server):
    more = {"database_url": shared_database}
    one = await told_gate(sinks.hook(server), **more)
    two = await told_gate(sinks.hook(server), **more)
    askers = [gate.person(name) for gate in (one, two) for name in ("ana", "ben")]
    asked = [await ask(askers[number % 4], number) for number in range(12)]
    found = await arrivals(server, 12)

    def sent():
        query = sa.text("SELECT count(*) FROM notices WHERE state = 'sent'")
        return one.database.read_sync(lambda c: c.execute(query).scalar_one())

    await until(lambda: sent() == 12)
    assert sorted(notice.json["data"]["approval_id"] for notice in found) == sorted(one.id for one in asked)
    assert len(server.taken) == 12
    assert len({notice.id for notice in found}) == 12


async def test_a_claim_is_held_alone_until_its_end_and_its_late_holder_changes_nothing(
    told_gate, shared_database, sinks, server, monkeypatch
):
    monkeypatch.setattr(delivery.Deliveries, "start", _not_started)
    gate = await told_gate(sinks.hook(server), database_url=shared_database)
    approval = await ask(gate.person("ana"), 1)
    now_us = gate.clock.now_us()

    def claimed(by: str, at_us: int):
        return gate.database.write_sync(lambda c: rows.claim(c, "hook", by, at_us, at_us + 1_000))

    first = claimed("a:1", now_us)
    assert first.about == approval.id
    assert claimed("b:1", now_us + 999) is None
    second = claimed("b:1", now_us + 1_000)
    assert (second.id, second.tries) == (first.id, 2)
    assert not gate.database.write_sync(lambda c: rows.end(c, first, NoticeState.SENT, now_us))
    assert gate.database.write_sync(lambda c: rows.end(c, second, NoticeState.SENT, now_us))


async def test_notices_of_one_approval_reach_a_sink_in_order(told_gate, shared_database, sinks, server, monkeypatch):
    monkeypatch.setattr(delivery.Deliveries, "start", _not_started)
    gate = await told_gate(sinks.hook(server), database_url=shared_database)
    approval = await ask(gate.person("ana"), 1)
    gate.clock.advance(1)
    other = await ask(gate.person("ana"), 2)
    gate.clock.advance(-5)
    await gate.person("dora").reject(approval.id)
    gate.clock.advance(10)
    now_us = gate.clock.now_us()

    def claimed():
        row = gate.database.write_sync(lambda c: rows.claim(c, "hook", "a:1", now_us, now_us + 10**9))
        return row and (row.about, row.event), row

    told, first = claimed()
    assert told == (approval.id, "approval.waiting")
    assert claimed()[0] == (other.id, "approval.waiting")
    assert claimed()[0] is None  # what was decided waits until it was told that it waited
    gate.database.write_sync(lambda c: rows.end(c, first, NoticeState.SENT, now_us))
    assert claimed()[0] == (approval.id, "approval.decided")


async def _not_started(_self) -> None:
    """Deliver nothing: the test claims."""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["riskgate.2", "riskgate.notice.claimed", "riskgate.notice.sent"])
async def test_killed_between_an_event_and_its_notice_it_is_told_after_the_restart(
    rivals, sinks, server, monkeypatch, point
):
    monkeypatch.setenv("RISKGATE_NOTICES", str(sinks.write(sinks.hook(server))))
    one = await rivals("one", crash_at=point)
    with contextlib.suppress(aio.AioRpcError):  # it may die before it answers
        await ask(_local(one), 1)
    await asyncio.to_thread(one.process.wait, 30)
    one.ready.unlink()
    await rivals("one")
    repeated = point == "riskgate.notice.sent"
    found = await arrivals(server, 2 if repeated else 1)
    assert {notice.type for notice in found} == {"approval.waiting"}
    assert len({notice.id for notice in found}) == 1
    await asyncio.sleep(0.3)
    assert len(server.taken) == (2 if repeated else 1)


class _Local(Person):
    """The only user of a RiskGate without identities."""

    def __init__(self, rival) -> None:
        super().__init__(rival.channel, "nobody")
        self.metadata = ()


def _local(rival) -> _Local:
    return _Local(rival)
