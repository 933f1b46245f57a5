"""Retention: call records are removed; what proves the log, and what is still needed, is kept."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2, types_pb2
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_riskgate.audit.export import Exporter, verify_export, write_export
from phylactery_riskgate.audit.verify import Report
from phylactery_riskgate.privacy.retention import DAY_US, Retention, SteadyClock
from phylactery_riskgate.settings import RiskGateSettings
from pydantic import ValidationError
from structlog.testing import capture_logs

from tests.support.clock import FakeClock
from tests.support.processes import commands
from tests.support.riskgate.command import run

READ, PAY = ("list_dir", "{}"), ("pay", '{"to":"sesame-open"}')
DAYS = 30


def exported(gate, out: Path) -> Report:
    exporter = Exporter("riskgate", gate.keys.public, gate.keys.signer, gate.heads)
    gate.database.read_sync(lambda c: write_export(out, exporter.lines(c)))
    assert not exporter.problems
    return verify_export(out, list(gate.keys.public))


def emptied(gate) -> list[int]:
    query = sa.text("SELECT position FROM audit_entries WHERE length(record) = 0 ORDER BY position")
    return list(gate.database.read_sync(lambda c: c.execute(query).scalars()))


def kept(gate) -> list[dict[str, object]]:
    query = sa.text("SELECT record FROM audit_entries WHERE length(record) > 0 ORDER BY time_us, position")
    return [json.loads(bytes(one)) for one in gate.database.read_sync(lambda c: c.execute(query).scalars().all())]


def everything(gate) -> bytes:
    """Give every byte of every table but the bundle's."""
    tables = ("decisions", "approvals", "approval_votes", "redemptions", "outcomes", "audit_entries", "audit_values")
    rows = [gate.database.read_sync(lambda c, n=n: c.execute(sa.text(f"SELECT * FROM {n}")).all()) for n in tables]
    return repr(
        [[bytes(one) if isinstance(one, memoryview) else one for one in row] for of in rows for row in of]
    ).encode()


def retention(gate, days: int = DAYS) -> Retention:
    return Retention(gate.riskgate.core, days, SteadyClock(gate.clock, lambda: 0.0))


async def run_call(person, call, asked, call_id: str, outcome: str = "SUCCEEDED") -> None:
    """Let a call be decided, redeemed and reported; without an outcome it is not reported."""
    asked = call(*asked, call_id)
    answer = await person.evaluate(asked)
    if answer.decision != types_pb2.DECISION_ALLOW:
        approval = await person.approved(asked)
        answer = await person.evaluate(asked, approval=approval.id)
    await person.redeem(answer.permit, asked, execution=f"execution-{call_id}")
    if outcome:
        await person.report(outcome, execution=f"execution-{call_id}", error_code="" if outcome != "FAILED" else "X")


@pytest.fixture
async def old(make_gate, shared_database, call):
    """A gate with calls of every kind, a hundred days ago, and one of today."""
    gate = await make_gate(database_url=shared_database)
    ana = gate.person("ana")
    await run_call(ana, call, READ, "ran")
    await run_call(ana, call, ("write_file", '{"path":"notes.txt","content":"sesame-open"}'), "approved")
    await ana.evaluate(call("nothing_known", '{"a":"sesame-open"}', "blocked"))
    await ana.evaluate(call(*PAY, "pending"))
    await gate.person("zoe").evaluate(call(*READ, "theirs"), run="z")
    gate.clock.advance(100 * 86_400)
    await ana.evaluate(call(*PAY, "today"))
    return gate


async def test_records_past_their_time_are_emptied_and_the_log_verifies_and_counts_them(old, tmp_path):
    before = exported(old, tmp_path / "before.jsonl")
    assert before.ok
    entries = len(kept(old))
    done = await retention(old).run()
    assert done.emptied == len(emptied(old)) == entries - 1
    assert set(done.tenants) == {"acme", "zeta"}
    report = exported(old, tmp_path / "after.jsonl")
    assert (report.problem, report.logs[0].emptied, report.logs[0].hidden) == ("", entries - 1, 0)
    told = [one for one in kept(old) if one["kind"] == "retention"]
    assert {one["tenant"] for one in told} == {"acme", "zeta"}
    assert sum(int(str(one["emptied"])) for one in told) == done.emptied
    grown = verify_export(tmp_path / "after.jsonl", list(old.keys.public), [_head(tmp_path / "before.jsonl")])
    assert grown.ok, "the log goes on from the head of before"
    again = await retention(old).run()
    assert (again.emptied, len(kept(old))) == (0, 1 + len(told))


def _head(path: Path) -> str:
    notes = [one["note"] for one in map(json.loads, path.read_text().splitlines()) if one["type"] == "checkpoint"]
    return str(notes[-1])


async def test_nothing_of_what_was_asked_is_left_in_any_table(old):
    words = (b"write_file", b"nothing_known", b"zoe")
    assert all(word in everything(old) for word in words)
    await retention(old).run()
    assert [word for word in words if word in everything(old)] == []
    assert old.count("audit_values") == 1, "today's alone"


async def test_a_call_that_ran_never_runs_again_and_one_that_did_not_is_decided_anew(old, call, refused):
    ana = old.person("ana")
    await retention(old).run()
    refusal = await refused(ana.evaluate(call(*READ, "ran")))
    assert (refusal.reason, "past its retention" in refusal.message) == ("CALL_CONFLICT", True)
    answer = await ana.evaluate(call("nothing_known", '{"a":"b"}', "blocked"))
    assert answer.decision == types_pb2.DECISION_BLOCKED
    pending = await ana.evaluate(call(*PAY, "pending"))
    assert pending.approval.state == types_pb2.APPROVAL_STATE_PENDING
    assert old.count("redemptions") == 2
    assert await old.riskgate.redemptions.without_outcome("acme", older_than_seconds=0) == []


async def test_an_old_permit_of_a_call_whose_record_is_gone_opens_nothing(make_gate, call, refused):
    gate = await make_gate(permit_ttl_seconds=3_600)
    ana, asked = gate.person("ana"), call(*READ)
    permit = (await ana.evaluate(asked)).permit
    await ana.redeem(permit, asked)
    await ana.report("SUCCEEDED")
    gate.clock.advance(40 * 86_400)
    await ana.evaluate(call(*READ, "today"))
    assert (await retention(gate).run()).emptied == 3
    gate.clock.advance(-40 * 86_400)  # the clock is set back: by it the permit is young
    assert (await refused(ana.redeem(permit, asked))).reason == "ALREADY_REDEEMED"
    assert (await refused(ana.redeem(permit, asked, execution="execution-2"))).reason == "ALREADY_REDEEMED"
    assert gate.count("redemptions") == 1


async def test_what_is_in_doubt_unreported_or_open_stays_whole(make_gate, shared_database, call):
    gate = await make_gate(database_url=shared_database)
    ana = gate.person("ana")
    await run_call(ana, call, READ, "doubt", "IN_DOUBT")
    await run_call(ana, call, READ, "unreported", "")
    await ana.evaluate(call(*PAY, "pending"))
    before_us = gate.clock.now_us()
    gate.clock.advance(40 * 86_400)
    await run_call(ana, call, READ, "later")
    # an approval and a permit that count longer than anybody keeps records
    gate.database.write_sync(
        lambda c: c.execute(sa.text("UPDATE approvals SET expire_us = :far"), {"far": before_us * 2})
    )
    entries = len(kept(gate))
    done = await retention(gate).run()
    assert (done.emptied, len(kept(gate))) == (0, entries)
    await ana.report("SUCCEEDED", execution="execution-doubt")
    done = await retention(gate).run()
    assert (done.emptied, done.calls) == (3, 1), "the report settled the doubt; it is young, and stays itself"


async def test_an_entry_that_somebody_else_emptied_or_altered_is_told_and_left(old, tmp_path):
    altered = "UPDATE audit_entries SET record = :r WHERE position = 0"
    original = old.database.read_sync(
        lambda c: bytes(c.execute(sa.text("SELECT record FROM audit_entries WHERE position = 0")).scalar_one())
    )
    forged = original.replace(b'"ALLOW"', b'"ALLOT"')
    old.database.write_sync(lambda c: c.execute(sa.text(altered), {"r": forged}))
    await retention(old).run()
    assert 0 not in emptied(old), "what was altered is evidence"
    assert exported(old, tmp_path / "a.jsonl").first_bad == 0
    old.database.write_sync(lambda c: c.execute(sa.text(altered), {"r": b""}))
    report = exported(old, tmp_path / "b.jsonl")
    assert (report.first_bad, "without a retention record" in report.problem) == (0, True)
    old.database.write_sync(lambda c: c.execute(sa.text(altered), {"r": original}))
    assert exported(old, tmp_path / "c.jsonl").ok


async def test_an_auditor_elsewhere_verifies_a_log_with_emptied_entries_and_still_gets_proofs(old, remote, tmp_path):
    await retention(old).run()
    out = tmp_path / "mine.jsonl"
    target = f"127.0.0.1:{old.server.port}"
    assert (await remote("aldo", "audit", "export", "--out", out, "--target", target)).exit_code == 0
    report = verify_export(out, list(old.keys.public))
    assert (report.problem, report.logs[0].emptied > 0, report.logs[0].hidden > 0) == ("", True, True)
    aldo = old.person("aldo")
    proof = audit_pb2.GetInclusionProofRequest(index=0)
    assert (await aldo.audit.GetInclusionProof(proof, metadata=aldo.metadata, timeout=60)).hashes
    listed = await aldo.audit.ListEntries(audit_pb2.ListEntriesRequest(page_size=200), metadata=aldo.metadata)
    assert {one.kind for one in listed.entries} == {"decision", "retention"}


async def test_a_clock_that_jumped_ahead_empties_nothing_for_a_day_and_one_set_back_nothing_at_all(make_gate, call):
    gate = await make_gate()
    await gate.person("ana").evaluate(call(*READ))
    since = [0.0]
    job = Retention(gate.riskgate.core, DAYS, SteadyClock(gate.clock, lambda: since[0]))
    assert (await job.run()).emptied == 0
    gate.clock.advance(400 * 86_400)
    with capture_logs() as lines:
        assert (await job.run()).emptied == 0
        since[0] += 3_600
        await gate.person("ana").evaluate(call(*READ, "c2"))  # recorded by the wrong clock, which proves nothing
        assert (await job.run()).emptied == 0
    assert sum("the clock is ahead" in line["event"] for line in lines) == 1
    gate.clock.advance(-800 * 86_400)
    assert (await job.run()).emptied == 0
    gate.clock.advance(800 * 86_400)
    assert (await job.run()).emptied == 0
    since[0] += 86_400
    assert (await job.run()).emptied == 1


def test_a_clock_that_goes_as_it_should_is_believed():
    clock, since = FakeClock(), [0.0]
    steady = SteadyClock(clock, lambda: since[0])
    assert steady.now_us(clock.now_us() - DAY_US // 2) == clock.now_us()
    for _ in range(50):
        since[0] += 86_400
        clock.advance(86_400)
        assert steady.now_us(0) == clock.now_us()


async def test_a_run_that_cannot_record_empties_nothing(old):
    if old.database.dialect.is_server:
        pytest.skip("the trigger is SQLite's")
    old.fail_writes()
    entries = len(kept(old))
    with pytest.raises(Exception, match="the record could not be made"):
        await retention(old).run()
    assert (len(kept(old)), emptied(old)) == (entries, [])


@pytest.fixture
async def folder(make_gate, shared_database, call):
    """A data folder with 130 calls of 100 days ago, by the machine's clock; nobody serves it any more."""
    clock = FakeClock((int(time.time()) - 100 * 86_400) * MICROSECONDS)
    gate = await make_gate(database_url=shared_database, clock=clock)
    ana = gate.person("ana")
    await asyncio.gather(*(ana.evaluate(call(*READ, f"c{number}")) for number in range(130)))
    return gate


def command(gate, *words: object, crash_at: str = "") -> tuple[list[str], dict[str, str]]:
    environment = {"RISKGATE_DATA_DIR": str(gate.folder), "CRASH_SERVICE": "riskgate.cli"}
    environment["CRASH_AT"] = crash_at or "never"
    if gate.settings.database_url:
        environment["RISKGATE_DATABASE_URL"] = str(gate.settings.database_url)
    return ["tests.support.processes.crashing", *map(str, words)], os.environ | environment


async def finished(gate, *words: object, crash_at: str = "") -> tuple[int, str]:
    line, environment = command(gate, *words, crash_at=crash_at)
    done = await asyncio.to_thread(commands.run, *line, environment=environment)
    return done.returncode, done.stdout + done.stderr


def all_exported(gate) -> dict[str, object]:
    options = {"RISKGATE_DATA_DIR": str(gate.folder)}
    if gate.settings.database_url:
        options["RISKGATE_DATABASE_URL"] = str(gate.settings.database_url)
    done = run("audit", "verify", "--json", env=options)
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.output))


RETAIN = ("audit", "retain", "--before", "30d", "--yes")


@pytest.mark.slow
@pytest.mark.parametrize("crash_at", ["riskgate.retain", "riskgate.retain#2"])
async def test_a_run_that_is_killed_leaves_whole_steps_and_the_next_one_goes_on(folder, crash_at):
    code, _ = await finished(folder, *RETAIN, crash_at=crash_at)
    assert code == -9
    assert len(emptied(folder)) == (0 if crash_at == "riskgate.retain" else 100)
    all_exported(folder)
    code, out = await finished(folder, *RETAIN)
    assert code == 0, out
    assert len(emptied(folder)) == 130
    logs = {one["log"]: one for one in all_exported(folder)["logs"]}
    assert (logs["riskgate"]["emptied_entries"], logs["riskgate/keys"]["emptied_entries"]) == (130, 0)


@pytest.mark.slow
async def test_two_runs_at_once_empty_each_entry_once_while_the_service_decides(folder, call):
    ana = folder.person("ana")
    folder.clock.advance(100 * 86_400)
    done = await asyncio.gather(
        finished(folder, *RETAIN), finished(folder, *RETAIN), *(ana.evaluate(call(*READ, f"n{n}")) for n in range(20))
    )
    assert [one[0] for one in done[:2]] == [0, 0], done[:2]
    assert len(emptied(folder)) == 130
    told = [one for one in kept(folder) if one["kind"] == "retention"]
    assert sum(int(str(one["emptied"])) for one in told) == 130
    all_exported(folder)


@pytest.mark.slow
async def test_the_command_says_what_would_go_and_refuses_what_is_too_young(folder):
    code, out = await finished(folder, "audit", "retain", "--before", "30d", "--dry-run", "--json")
    assert (code, json.loads(out)["emptied"], emptied(folder)) == (0, 130, [])
    assert json.loads(out)["tenants"] == {"acme": 130}
    code, out = await finished(folder, "audit", "retain", "--before", "2d")
    assert (code, "records are needed for 8 days" in out) == (2, True)
    code, out = await finished(folder, "audit", "retain")
    assert (code, "say --before" in out) == (2, True)


def test_a_retention_shorter_than_what_records_are_needed_for_is_refused(tmp_path):
    with pytest.raises(ValidationError, match="records are needed for 8 days"):
        RiskGateSettings(data_dir=tmp_path, retain_decisions_days=7)
    assert RiskGateSettings(data_dir=tmp_path, retain_decisions_days=8).retain_decisions_days == 8
    with pytest.raises(ValidationError, match="records are needed for 21 days"):
        RiskGateSettings(data_dir=tmp_path, retain_decisions_days=8, task_ttl_seconds=20 * 86_400)
