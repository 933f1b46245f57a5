"""A database of the version before notices gets their tables, and keeps its approvals."""

from __future__ import annotations

from phylactery_chassis.db.database import Database

from tests.support.riskgate.earlier import turn_back
from tests.support.riskgate.notices import arrivals
from tests.support.riskgate.people import tool_call


async def test_an_approval_from_before_is_told_when_it_is_decided(make_gate, told_gate, sinks, server, shared_database):
    before = await make_gate("data", database_url=shared_database)
    approval = (await before.person("ana").evaluate(tool_call("pay", '{"to":"x"}'))).approval
    await before.channel.close()
    await before.server.stop()
    database = Database(before.settings.url)
    turn_back(database, "0019")
    database.close()
    gate = await told_gate(sinks.hook(server), database_url=shared_database)
    await gate.person("dora").reject(approval.id)
    (one,) = await arrivals(server, 1)
    assert (one.type, one.json["data"]["approval_id"]) == ("approval.decided", approval.id)
