"""After a failed fsync of a record, nothing is decided or redeemed any more, even if later syncs succeed."""

from __future__ import annotations

import grpc
import sqlalchemy as sa

from tests.support.databases.power import Disk

READ = ("read_file", '{"path":"notas.txt"}', "c1")
OTHER = ("read_file", '{"path":"notas.txt"}', "c3")
NEXT_START = "restart the service"


async def test_after_a_failed_sync_no_call_is_decided_and_no_permit_redeemed_until_the_next_start(
    make_gate, call, refused, tmp_path
):
    disk = Disk("below-riskgate")
    url = f"sqlite+power:///{tmp_path / 'riskgate.db'}?disk={disk.name}"
    gate = await make_gate(database_url=url)
    ana = gate.person("ana")
    permit = (await ana.evaluate(call(*READ))).permit
    waiting = (await ana.evaluate(call(call_id="c2"))).approval
    decided = gate.count("decisions")
    disk.fail_syncs = True
    refusal = await refused(ana.evaluate(call(*OTHER)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    disk.fail_syncs = False
    for attempt in (ana.evaluate(call(*OTHER)), ana.redeem(permit, call(*READ)), ana.approve(waiting)):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert NEXT_START in refusal.message
    assert not await gate.database.probe()
    assert gate.count("decisions") == decided, "what is there may still be read"
    assert (await ana.get(waiting.id)).id == waiting.id
    await gate.stop()
    again = await make_gate(database_url=url, clock=gate.clock)
    ana = again.person("ana")
    assert (await ana.redeem(permit, call(*READ))).receipt
    assert (await ana.evaluate(call(*OTHER))).permit
    whole = again.database.read_sync(lambda c: c.execute(sa.text("PRAGMA integrity_check")).scalar_one())
    assert whole == "ok"
