"""Votes carry proofs: a row written directly into the database approves nothing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import types_pb2
from structlog.testing import capture_logs

from tests.support.riskgate.command import run

WIPE = ("wipe", '{"path":"tmp"}')
PAY = ("pay", '{"to":"bob"}')
State = types_pb2.ApprovalState


def change(gate: Any, statement: str, **values: object) -> int:
    return int(gate.database.write_sync(lambda c: c.execute(sa.text(statement), values).rowcount))


def forge_vote(gate: Any, approval: types_pb2.Approval, subject: str, proof: str = "") -> None:
    """Write a vote, and the state it would have led to, into the database."""
    change(
        gate,
        "INSERT INTO approval_votes (approval_id, subject, tenant, vote_us, approver, level, groups, proof) "
        "VALUES (:id, :subject, 'acme', :now, true, 'admin', '', :proof)",
        id=approval.id,
        subject=subject,
        now=gate.clock.now_us(),
        proof=proof,
    )
    change(gate, "UPDATE approvals SET state = 'APPROVED', decide_us = create_us, decided_by = :s", s=subject)


@pytest.mark.parametrize("asked", [PAY, WIPE, ("write_file", '{"path":"notes.txt","content":"x"}')])
async def test_a_vote_written_into_the_database_approves_nothing_and_is_on_record(gate, ana, call, refused, asked):
    approval = (await ana.evaluate(call(*asked))).approval
    for subject, proof in (("ana", ""), ("dora", "hmac-sha256:" + "0" * 64), ("carla", "\u2603")):
        forge_vote(gate, approval, subject, proof)
    seen = await ana.get(approval.id)
    assert seen.votes == 0, "nobody is told that somebody approved"
    refusal = await refused(ana.evaluate(call(*asked), approval=approval.id))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "APPROVER_NOT_ELIGIBLE")
    assert refusal.metadata["factor"] == "vote"
    assert "been inserted into the database" in refusal.message
    assert [record["failed"] for record in gate.records("evaluate_refused")] == [["vote"]]
    assert gate.count("redemptions") == 0


CHANGES = [
    ("approval_votes", "subject", "gina"),
    ("approval_votes", "vote_us", 1),
    ("approval_votes", "level", "admin"),
    ("approval_votes", "groups", b'["payments"]'),
    ("approvals", "requester", "ben"),
    ("approvals", "approval_class", "peer"),
    ("approvals", "expire_us", 2**60),
    ("approvals", "approvers", 1),
]


@pytest.mark.parametrize("altered", CHANGES, ids=[one[1] for one in CHANGES])
async def test_a_vote_counts_as_it_was_given_and_for_the_approval_as_it_was_asked(gate, ana, call, refused, altered):
    approval = (await ana.evaluate(call(*WIPE))).approval
    for name in ("dora", "carla"):
        await gate.person(name).approve(approval)
    table, column, value = altered
    which = " AND subject = 'dora'" if table == "approval_votes" else ""
    change(gate, f"UPDATE {table} SET {column} = :v WHERE tenant = 'acme'{which}", v=value)
    person = gate.person("ben") if column == "requester" else ana
    refusal = await refused(person.evaluate(call(*WIPE), approval=approval.id))
    assert refusal.code is grpc.StatusCode.FAILED_PRECONDITION
    assert gate.records("decision")[-1]["decision"] == "AUTH_REQUIRED", "nothing was allowed"


async def test_votes_of_one_approval_do_not_count_for_another_of_the_same_call(gate, ana, call, refused):
    first = await ana.approved(call("write_file", call_id="c1"))
    second = (await ana.evaluate(call("write_file", call_id="c2"))).approval
    change(
        gate,
        "INSERT INTO approval_votes SELECT :to, subject, tenant, vote_us, approver, level, groups, proof "
        "FROM approval_votes WHERE approval_id = :id",
        to=second.id,
        id=first.id,
    )
    change(gate, "UPDATE approvals SET state = 'APPROVED'")
    refusal = await refused(ana.evaluate(call("write_file", call_id="c2"), approval=second.id))
    assert refusal.metadata["factor"] == "vote"


async def test_a_permit_is_not_redeemed_where_its_approval_lost_its_votes_or_is_another_ones(gate, ana, call, refused):
    asked = call("write_file", call_id="c1")
    approval = await ana.approved(asked)
    permit = (await ana.evaluate(asked, approval=approval.id)).permit
    other = await ana.approved(call("write_file", '{"path":"b.txt","content":"x"}', "c2"))
    change(
        gate,
        "UPDATE decisions SET counted_approval_id = :o WHERE counted_approval_id = :id",
        o=other.id,
        id=approval.id,
    )
    assert (await refused(ana.redeem(permit, asked))).metadata["factor"] == "id"
    change(
        gate,
        "UPDATE decisions SET counted_approval_id = :id WHERE counted_approval_id = :o",
        o=other.id,
        id=approval.id,
    )
    change(gate, "UPDATE approval_votes SET proof = '' WHERE approval_id = :id", id=approval.id)
    refusal = await refused(ana.redeem(permit, asked))
    assert (refusal.reason, refusal.metadata["factor"]) == ("APPROVER_NOT_ELIGIBLE", "vote")
    assert gate.count("redemptions") == 0


async def test_a_forged_vote_neither_completes_an_approval_nor_keeps_its_person_from_voting(gate, ana, call):
    approval = (await ana.evaluate(call(*WIPE))).approval
    forge_vote(gate, approval, "carla")
    change(gate, "UPDATE approvals SET state = 'PENDING', decide_us = 0, decided_by = ''")
    seen = await gate.person("dora").approve(approval)
    assert (seen.state, seen.votes) == (State.APPROVAL_STATE_PENDING, 1)
    seen = await gate.person("carla").approve(approval)
    assert (seen.state, seen.votes) == (State.APPROVAL_STATE_APPROVED, 2)
    assert (await ana.evaluate(call(*WIPE), approval=approval.id)).permit


async def test_votes_of_an_earlier_version_count_where_the_log_tells_of_them_and_no_other(
    make_gate, call, refused, tmp_path: Path
):
    gate = await make_gate()
    ana = gate.person("ana")
    told = (await ana.evaluate(call(*PAY))).approval
    await gate.person("dora").approve(told)
    forged = (await ana.evaluate(call("pay", '{"to":"eve"}', "c2"))).approval
    forge_vote(gate, forged, "dora")
    change(gate, "UPDATE approval_votes SET proof = ''")
    await gate.stop()
    shutil.rmtree(gate.settings.heads_dir)
    (gate.settings.heads_dir.parent / "heads.begun").unlink()  # as an earlier version left it
    assert run("audit", "adopt", "--reason", "an old database", "--data-dir", gate.folder).exit_code == 0
    gate = await make_gate(clock=gate.clock)
    ana = gate.person("ana")
    assert sum(record["votes"] for record in gate.records("heads_adopted")) == 1
    assert (await ana.evaluate(call(*PAY), approval=told.id)).permit
    refusal = await refused(ana.evaluate(call("pay", '{"to":"eve"}', "c2"), approval=forged.id))
    assert refusal.metadata["factor"] == "vote"
    late: Callable[..., Any] = gate.person("dora").approve
    change(gate, "UPDATE approval_votes SET proof = ''")
    assert (await refused(late(forged))).reason == "APPROVAL_NOT_PENDING"


async def test_a_forged_vote_that_a_call_rests_on_is_a_warning_with_its_ids(gate, ana, call, refused):
    approval = (await ana.evaluate(call(*PAY))).approval
    forge_vote(gate, approval, "dora")
    with capture_logs() as lines:
        await refused(ana.evaluate(call(*PAY), approval=approval.id))
    warned = [
        line for line in lines if line["log_level"] == "warning" and "votes without a valid proof" in line["event"]
    ]
    assert [(line["approval_id"], line["voters"]) for line in warned] == [(approval.id, ["dora"])]


EDITS = [
    ("", "decision = 'ALLOW'"),
    (PAY, "decision = 'ALLOW'"),
    (PAY, "decision = 'ALLOW', permit_id = 'pm_made_up', permit_us = 2000000000000000"),
    (PAY, "decision = 'ALLOW', audit_index = 0"),
]


@pytest.mark.parametrize(("asked", "edit"), EDITS)
async def test_a_decision_edited_to_allow_in_the_database_is_given_no_permit(gate, ana, call, asked, edit):
    await ana.evaluate(call("list_dir", "{}", "c0"))  # a genuine ALLOW
    asked = call(*(asked or ("delete_everything", "{}")))
    first = await ana.evaluate(asked)
    assert first.decision != types_pb2.DECISION_ALLOW
    assert change(gate, f"UPDATE decisions SET {edit} WHERE id = :id", id=first.decision_id) == 1
    with capture_logs() as lines:
        answer = await ana.evaluate(asked)
    assert (answer.decision, answer.permit) == (types_pb2.DECISION_BLOCKED, "")
    assert [one.code for one in answer.reasons] == ["RECORD_ALTERED"]
    refusals = gate.records("evaluate_refused")
    assert [(one["failed"], one["decision_id"]) for one in refusals] == [(["record"], first.decision_id)]
    assert [line["decision_id"] for line in lines if line["log_level"] == "warning"] == [first.decision_id]


async def test_an_entry_edited_together_with_its_decision_does_not_fit_its_leaf(gate, ana, call):
    asked = call(*PAY)
    first = await ana.evaluate(asked)
    change(gate, "UPDATE decisions SET decision = 'ALLOW'")
    entry = gate.database.read_sync(
        lambda c: c.execute(sa.text("SELECT record FROM audit_entries WHERE kind = 'decision'")).scalar_one()
    )
    forged = bytes(entry).replace(b'"decision":"AUTH_REQUIRED"', b'"decision":"ALLOW"')
    assert forged != bytes(entry)
    change(gate, "UPDATE audit_entries SET record = :r WHERE kind = 'decision'", r=forged)
    answer = await ana.evaluate(asked)
    assert ([one.code for one in answer.reasons], answer.permit) == (["RECORD_ALTERED"], "")
    assert answer.decision_id == first.decision_id


async def test_a_genuine_allow_is_answered_again_with_its_permit_also_within_one_batch(gate, ana, call):
    asked = call("list_dir", "{}")
    first = await ana.evaluate(asked)
    assert first.permit
    again = await asyncio.gather(*(ana.evaluate(asked) for _ in range(5)))
    assert {one.permit for one in again} == {first.permit}
    both = await asyncio.gather(*(ana.evaluate(call("list_dir", "{}", "c9")) for _ in range(20)))
    assert len({one.permit for one in both}) == 1
