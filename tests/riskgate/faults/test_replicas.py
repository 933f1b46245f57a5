"""Two replicas over one database, embedded and PostgreSQL: one record, one winner, one log."""

from __future__ import annotations

import asyncio

from phylactery_riskgate.audit.export import export_log, verify_export

READ = ("read_file", '{"path":"a.txt"}')


async def test_a_write_lives_its_whole_life_on_postgresql_and_the_log_verifies(make_gate, fresh_database, tmp_path):
    gate = await make_gate(database_url=fresh_database)
    ana = gate.person("ana")
    answer = await ana.permitted()
    receipt = await ana.redeem(answer.permit)
    assert (await ana.redeem(answer.permit)).receipt == receipt.receipt
    await ana.report("SUCCEEDED")
    assert len((await ana.list()).approvals) == 1
    out = tmp_path / "out.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out, list(gate.keys.public)).ok


async def test_two_replicas_over_one_database_keep_one_record_one_winner_and_one_log(
    make_gate, shared_database, call, tmp_path
):
    one = await make_gate("data", database_url=shared_database)
    two = await make_gate("data", database_url=shared_database)
    askers = [gate.person("ana") for gate in (one, two)]
    asked = [call(*READ, f"c{number}") for number in range(12)]
    answers = await asyncio.gather(*(asker.evaluate(each) for each in asked for asker in askers))
    assert len({answer.decision_id for answer in answers}) == 12
    permit = answers[0].permit
    results = await asyncio.gather(
        *(askers[n % 2].redeem(permit, asked[0], execution=f"execution-{n}") for n in range(32)),
        return_exceptions=True,
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert len(one.records("redeemed")) == 1
    out = tmp_path / "out.jsonl"
    one.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=one.keys.public, signer=one.keys.signer, heads=one.heads)
    )
    found = verify_export(out, list(one.keys.public))
    assert (found.ok, found.entries) == (True, len(one.records())), found.problem
