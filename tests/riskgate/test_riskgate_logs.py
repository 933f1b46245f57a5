"""One log for each writing process: what an older database becomes, and what rows say of the log they stand in."""

from __future__ import annotations

import sqlalchemy as sa
from phylactery.riskgate.v1 import riskgate_pb2

READ = ("read_file", '{"path":"a.txt"}')
_BEFORE = (
    "DROP INDEX audit_entries_by_time",
    "DROP TABLE audit_subtrees",
    "ALTER TABLE audit_logs DROP COLUMN last_us",
    *(f"ALTER TABLE audit_entries DROP COLUMN {name}" for name in ("tenant", "subject", "kind", "time_us")),
    *(f"ALTER TABLE {name} DROP COLUMN audit_log" for name in ("decisions", "redemptions", "outcomes")),
    "UPDATE phylactery_riskgate_version SET version_num = '0001'",
)


async def test_a_database_of_before_gets_log_and_labels_from_its_own_records(make_gate, shared_database, call):
    old = await make_gate(database_url=shared_database)
    ana = old.person("ana")
    permit = (await ana.evaluate(call(*READ))).permit
    await ana.redeem(permit, call(*READ))
    await ana.report("SUCCEEDED")
    old.database.write_sync(lambda c: [c.execute(sa.text(statement)) for statement in _BEFORE] and None)
    old.database.write_sync(
        lambda c: c.execute(sa.text("UPDATE audit_entries SET record = :r WHERE position = 2"), {"r": b"["}).rowcount
    )
    await old.stop()
    new = await make_gate(database_url=shared_database, instance="other")
    ana = new.person("ana")
    again = await ana.evaluate(call(*READ))
    assert (again.replayed, again.audit_log, again.audit_index) == (True, "riskgate", 0)
    assert again.bound_call.arguments_json == '{"path":"a.txt"}'
    labels = new.database.read_sync(
        lambda c: c.execute(sa.text("SELECT tenant, subject, kind, time_us FROM audit_entries ORDER BY position")).all()
    )
    now_us = old.clock.now_us()
    assert [tuple(label) for label in labels] == [
        ("acme", "ana", "decision", now_us),
        ("acme", "ana", "redeemed", now_us),
        ("", "", "", 0),
    ]


async def test_each_instance_writes_its_own_log_and_reads_what_the_others_decided(make_gate, shared_database, call):
    one = await make_gate(database_url=shared_database, instance="one")
    two = await make_gate(database_url=shared_database, instance="two")
    first = await one.person("ana").evaluate(call(*READ))
    again = await two.person("ana").evaluate(call(*READ))
    assert (first.audit_log, first.audit_index) == ("riskgate/one", 0)
    assert (again.replayed, again.audit_log, again.bound_call) == (True, "riskgate/one", first.bound_call)
    redeemed = await two.person("ana").redeem(first.permit, call(*READ))
    assert (await one.person("ana").redeem(first.permit, call(*READ))).receipt == redeemed.receipt
    for gate in (two, one):
        report = riskgate_pb2.ReportOutcomeRequest(execution_id="execution-1", outcome="OUTCOME_SUCCEEDED")
        ana = gate.person("ana")
        answer = await ana.decisions.ReportOutcome(report, metadata=ana.metadata)
        assert (answer.audit_log, answer.audit_index) == ("riskgate/two", 1)
