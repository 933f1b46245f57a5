"""Lost commit responses: the error leaves the outcome open, and a retry with the same ids returns the record."""

from __future__ import annotations

import grpc
import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.audit.export import export_log, verify_export

from tests.support.servers.postgres import create_database

READ = ("read_file", '{"path":"a.txt"}')


class Loss:
    """Kills the session of the next commit of a record, once it is kept and before anybody hears of it."""

    def __init__(self, engine: sa.Engine) -> None:
        self.after: int | None = None
        self.lost = 0
        sa.event.listen(engine, "commit", self._commit)

    def _commit(self, connection) -> None:
        raw = connection.connection.dbapi_connection
        if self.after is not None and raw.execute("SELECT count(*) FROM audit_entries").fetchone()[0] > self.after:
            self.after = None
            raw.commit = lambda: self._lose(raw)

    def _lose(self, raw) -> None:
        type(raw).commit(raw)
        self.lost += 1
        raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.slow
async def test_what_was_recorded_though_nobody_heard_of_it_is_answered_when_it_is_asked_again(
    make_gate, postgres_url, call, refused, tmp_path
):
    gate = await make_gate(database_url=create_database(postgres_url, "lost_riskgate"))
    ana, loss = gate.person("ana"), Loss(gate.database.engine)
    waiting = (await ana.evaluate(call(call_id="waits"))).approval
    permit = (await ana.evaluate(call(*READ, "before"))).permit

    async def lost(ask) -> None:
        loss.after = gate.count("audit_entries")
        refusal = await refused(ask())
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert "outcome is unknown" in refusal.message
        assert "nothing changed" not in refusal.message

    await lost(lambda: ana.evaluate(call(*READ, "c1")))
    await lost(lambda: ana.redeem(permit, call(*READ, "before")))
    await lost(lambda: ana.approve(waiting))
    assert loss.lost == 3
    kept = {table: gate.count(table) for table in ("decisions", "redemptions", "approval_votes", "audit_entries")}
    assert (await ana.evaluate(call(*READ, "c1"))).replayed
    assert (await ana.redeem(permit, call(*READ, "before"))).repeated_redeem
    assert (await ana.approve(waiting)).state == types_pb2.APPROVAL_STATE_APPROVED
    assert {table: gate.count(table) for table in kept} == kept
    assert (await ana.evaluate(call(*READ, "c2"))).audit_index == kept["audit_entries"]
    out = tmp_path / "export.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out, list(gate.keys.public)).ok
