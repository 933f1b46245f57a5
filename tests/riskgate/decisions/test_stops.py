"""Operators stop calls at once: frozen tools, users and tenants, and revoked decisions."""

from __future__ import annotations

import asyncio
import json

import grpc
import pytest
from phylactery.riskgate.v1 import access_pb2, types_pb2

from tests.support.riskgate.people import Person

READ = ("read_file", '{"path":"a.txt"}')
ALLOW, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_BLOCKED


@pytest.mark.parametrize(
    ("scope", "name", "tenant", "text"),
    [
        ("tool", "read_file", "", "this tool"),
        ("tool", "read_file", "acme", "this tool"),
        ("user", "ana", "acme", "this user"),
        ("tenant", "", "acme", "this organisation"),
        ("all", "", "", "all calls"),
    ],
)
async def test_what_is_frozen_is_blocked_at_evaluate_and_refused_at_redeem_until_it_is_lifted(  # noqa: PLR0917
    gate, ana, call, refused, scope, name, tenant, text
):
    ines = gate.person("ines")
    before = await ana.evaluate(call(*READ))
    done = await ines.freeze(scope, name, tenant=tenant, reason="a stolen laptop")
    assert (done.already_frozen, done.known, done.freeze.by_installation) == (False, True, True)

    blocked = await ana.evaluate(call(*READ, "c2"))
    assert (blocked.decision, [one.code for one in blocked.reasons], blocked.permit) == (BLOCKED, ["FROZEN"], "")
    assert text in blocked.reasons[0].message
    assert "laptop" not in str(blocked)
    again = await ana.evaluate(call(*READ))
    assert (again.decision, again.reasons[0].code, again.permit) == (BLOCKED, "FROZEN", "")
    refusal = await refused(ana.redeem(before.permit, call(*READ)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "FROZEN")
    assert refusal.metadata == {"factor": "freeze", "scope": scope}
    assert gate.records("redeem_refused")[-1]["failed"] == ["freeze"]
    assert gate.records("redeemed") == []

    await ines.unfreeze(scope, name, tenant=tenant)
    refusal = await refused(ana.redeem(before.permit, call(*READ)))
    assert (refusal.reason, refusal.metadata) == ("PERMIT_EXPIRED", {"factor": "freeze"})
    after = await ana.evaluate(call(*READ))
    assert (after.decision, after.permit != before.permit) == (ALLOW, True)
    assert (await refused(ana.redeem(before.permit, call(*READ)))).reason == "PERMIT_EXPIRED"
    assert (await ana.redeem(after.permit, call(*READ))).receipt
    assert (await ana.evaluate(call(*READ, "c3"))).decision == ALLOW


@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_a_frozen_delegate_acts_for_nobody_and_its_users_go_on_by_themselves(gate, ana, call, refused, tenant):
    ines, through = gate.person("ines"), {one: gate.through_agent(one) for one in ("ana", "ben")}
    before = await through["ben"].evaluate(call(*READ))
    done = await ines.freeze("actor", "agent", tenant=tenant, reason="its token leaked")
    assert (done.known, done.freeze.target.name, done.freeze.target.tenant) == (True, "agent", tenant)
    for one in through.values():
        blocked = await one.evaluate(call(*READ, "c2"))
        assert (blocked.decision, [one.code for one in blocked.reasons]) == (BLOCKED, ["FROZEN"])
        assert "this agent or gateway" in blocked.reasons[0].message
    refusal = await refused(through["ben"].redeem(before.permit, call(*READ)))
    assert refusal.metadata == {"factor": "freeze", "scope": "actor"}
    other = (await gate.through_agent("zoe", "zeta").evaluate(call(*READ))).decision
    assert other == (ALLOW if tenant else BLOCKED)
    assert (await ana.evaluate(call(*READ, "c3"))).decision == ALLOW
    assert gate.records("frozen")[-1]["frozen_actor"] == "agent"
    await ines.unfreeze("actor", "agent", tenant=tenant)
    assert (await refused(through["ben"].redeem(before.permit, call(*READ)))).metadata == {"factor": "freeze"}
    after = await through["ben"].evaluate(call(*READ, "c4"))
    assert (await through["ben"].redeem(after.permit, call(*READ, "c4"))).receipt
    again = await ines.freeze("actor", "agent", tenant=tenant)
    assert again.running == 1


async def test_a_frozen_actor_is_stopped_for_itself_and_a_frozen_user_of_its_name_is_not_it(gate, call):
    ines, ana = gate.person("ines"), gate.person("ana")
    assert not (await ines.freeze("actor", "nobody", tenant="acme")).known
    await ines.freeze("user", "agent", tenant="acme")
    assert (await gate.through_agent("ana").evaluate(call(*READ))).decision == ALLOW
    await ines.freeze("actor", "ana", tenant="acme")
    assert (await ana.evaluate(call(*READ, "c2"))).decision == BLOCKED
    assert (await gate.through_agent("ana").evaluate(call(*READ, "c3"))).decision == ALLOW


async def test_a_freeze_voids_the_permits_it_covers_and_no_others_however_often_it_is_lifted(gate, ana, call, refused):
    ines, ben = gate.person("ines"), gate.person("ben")
    for round_ in ("1", "2"):
        mine, his = [(await one.evaluate(call(*READ, f"c{round_}"))).permit for one in (ana, ben)]
        write = await ana.permitted(run=f"w{round_}")
        await ines.freeze("user", "ben", tenant="acme")
        await ines.freeze("tool", "write_file")
        await ines.unfreeze("user", "ben", tenant="acme")
        await ines.unfreeze("tool", "write_file")
        assert await gate.person("ines").freezes() == []
        refusal = await refused(ben.redeem(his, call(*READ, f"c{round_}")))
        assert (refusal.reason, refusal.metadata) == ("PERMIT_EXPIRED", {"factor": "freeze"})
        assert (await refused(ana.redeem(write.permit, run=f"w{round_}", execution=f"writing-{round_}"))).metadata == {
            "factor": "freeze"
        }
        assert (await ana.redeem(mine, call(*READ, f"c{round_}"), execution=f"execution-{round_}")).receipt
        gate.clock.advance(60)


async def test_lifted_freezes_are_dropped_once_no_permit_before_them_can_be_valid(gate):
    ines = gate.person("ines")
    for name in ("ana", "ben", "carla"):
        await ines.freeze("user", name, tenant="acme")
        await ines.unfreeze("user", name, tenant="acme")
        gate.clock.advance(25 * 3600)
    await ines.freeze("user", "dora", tenant="acme")
    assert gate.count("freezes") == 2, "the newest of the lifted ones stays: its number is not given again"


async def test_a_permit_of_a_freeze_before_a_restart_is_void_too(make_gate, call, refused):
    gate = await make_gate("kept")
    permit = (await gate.person("ana").evaluate(call(*READ))).permit
    await gate.person("ines").freeze("all")
    await gate.person("ines").unfreeze("all")
    await gate.stop()
    again = await make_gate("kept")
    assert (await refused(again.person("ana").redeem(permit, call(*READ)))).metadata == {"factor": "freeze"}


async def test_a_freeze_stops_nothing_it_does_not_name(gate, ana, call):
    ines, ben, zoe = gate.person("ines"), gate.person("ben"), gate.person("zoe")
    await ines.freeze("user", "ana", tenant="acme")
    await ines.freeze("tool", "read_file", tenant="zeta")
    assert (await ben.evaluate(call(*READ))).decision == ALLOW
    assert (await zoe.evaluate(call(*READ))).decision == BLOCKED
    assert (await zoe.evaluate(call("echo", '{"text":"a"}', "c2"))).decision == ALLOW
    assert (await ana.evaluate(call(*READ))).decision == BLOCKED


async def test_a_frozen_call_asks_nobody_and_an_approved_one_does_not_run(gate, ana, call, refused):
    answer = await ana.permitted()
    await gate.person("ines").freeze("tool", "write_file")
    assert (await refused(ana.redeem(answer.permit))).reason == "FROZEN"
    blocked = await ana.evaluate(call(call_id="c2"))
    assert (blocked.decision, blocked.HasField("approval")) == (BLOCKED, False)


async def test_what_was_redeemed_before_keeps_its_receipt_and_is_counted_as_running(gate, ana, call):
    permit = (await ana.evaluate(call(*READ))).permit
    receipt = (await ana.redeem(permit, call(*READ))).receipt
    done = await gate.person("ines").freeze("tool", "read_file")
    assert done.running == 1
    again = await ana.redeem(permit, call(*READ))
    assert (again.receipt, again.repeated_redeem) == (receipt, True)


async def test_freezing_twice_changes_nothing_and_a_wrong_name_is_noticed(gate, refused):
    ines = gate.person("ines")
    assert not (await ines.freeze("user", "nobody", tenant="acme")).known
    assert (await ines.freeze("user", "nobody", tenant="acme")).already_frozen
    assert len(gate.records("frozen")) == 2  # one for the operator's own tenant, one for the tenant concerned
    refusal = await refused(ines.freeze("tool", "send_emial"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "TOOL_NOT_FOUND")
    assert "did you mean send_email" in refusal.message
    assert "it knows " in (await refused(ines.freeze("tool", "xyzzy"))).message
    refusal = await refused(ines.unfreeze("tool", "read_file"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "FREEZE_NOT_FOUND")


@pytest.mark.parametrize(
    ("scope", "name", "tenant", "field"),
    [
        ("unspecified", "", "", "scope"),
        ("user", "", "acme", "name"),
        ("actor", "", "acme", "name"),
        ("tenant", "ana", "acme", "name"),
        ("all", "", "acme", "tenant"),
    ],
)
async def test_a_target_that_is_not_whole_is_refused_by_its_field(gate, refused, scope, name, tenant, field):  # noqa: PLR0917
    for attempt in (
        gate.person("ines").freeze(scope, name, tenant=tenant),
        gate.person("ines").unfreeze(scope, name, tenant=tenant),
    ):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize("name", ["olga", "pablo"])
async def test_a_tenants_own_people_stop_calls_of_their_tenant_alone(gate, ana, call, refused, name):
    person = gate.person(name)
    done = await person.freeze("tool", "read_file")
    assert (done.freeze.target.tenant, done.freeze.by_installation) == ("acme", False)
    assert (await ana.evaluate(call(*READ))).decision == BLOCKED
    assert (await gate.person("zoe").evaluate(call(*READ))).decision == ALLOW
    for attempt in (
        person.freeze("all"),
        person.freeze("tenant", tenant="zeta"),
        person.freeze("user", "zoe", tenant="zeta"),
        person.freeze("tool", "read_file", tenant="zeta"),
        person.revoke("de_other", tenant="zeta"),
    ):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.metadata) == (
            grpc.StatusCode.PERMISSION_DENIED,
            {"role": "installation_operator"},
        )


@pytest.mark.parametrize("name", ["ana", "dora", "aldo", "agent", "robot"])
async def test_nobody_else_stops_or_lifts_anything(gate, call, refused, name):
    person = gate.through_agent("ines", "ops") if name == "agent" else gate.person(name)
    decision = await gate.person("ana").evaluate(call(*READ))
    for attempt in (
        person.freeze("user", "ana"),
        person.unfreeze("user", "ana"),
        person.revoke(decision.decision_id),
    ):
        assert (await refused(attempt)).reason == "ROLE_REQUIRED"
    assert gate.records("frozen", "unfrozen", "decision_revoked") == []


async def test_a_tenant_cannot_lift_what_the_installation_froze_nor_the_other_way_round(gate, ana, call, refused):
    ines, olga = gate.person("ines"), gate.person("olga")
    await ines.freeze("user", "ana", tenant="acme")
    assert (await refused(olga.unfreeze("user", "ana"))).reason == "FREEZE_NOT_FOUND"
    await olga.freeze("user", "ana")
    assert (await ines.unfreeze("user", "ana", tenant="acme")).still_frozen
    assert (await ana.evaluate(call(*READ))).decision == BLOCKED
    assert not (await olga.unfreeze("user", "ana")).still_frozen
    assert (await ana.evaluate(call(*READ, "c2"))).decision == ALLOW


async def test_a_freeze_is_on_record_for_who_did_it_and_for_every_tenant_it_concerns(gate):
    ines = gate.person("ines")
    await ines.freeze("user", "ana", tenant="acme", reason="left the company")
    await ines.freeze("tool", "read_file")
    records = gate.records("frozen")
    assert [(one["tenant"], one["scope"], one["by"]["subject"]) for one in records] == [
        ("ops", "user", "ines"),
        ("acme", "user", "ines"),
        ("ops", "tool", "ines"),
        ("", "tool", "ines"),
    ]
    assert "left the company" not in str(records)


async def test_a_list_shows_each_tenant_what_concerns_it(gate, refused):
    ines = gate.person("ines")
    await ines.freeze("user", "ana", tenant="acme")
    gate.clock.advance(1)
    await ines.freeze("tool", "read_file")
    gate.clock.advance(1)
    await gate.person("zeno").freeze("user", "zoe")
    seen = {
        name: [(one.target.tenant, one.target.name) for one in await gate.person(name).freezes()]
        for name in ("ines", "olga", "zora")
    }
    assert seen == {
        "ines": [("acme", "ana"), ("", "read_file"), ("zeta", "zoe")],
        "olga": [("acme", "ana"), ("", "read_file")],
        "zora": [("", "read_file"), ("zeta", "zoe")],
    }
    assert (await refused(gate.person("ana").freezes())).reason == "ROLE_REQUIRED"


async def test_a_freeze_outlives_a_restart(make_gate, ana, call):
    gate = await make_gate("kept")
    await gate.person("ines").freeze("all")
    await gate.stop()
    again = await make_gate("kept")
    assert (await again.person("ana").evaluate(call(*READ))).decision == BLOCKED


async def test_where_the_record_fails_nothing_is_frozen_and_nothing_is_answered(gate, ana, call, refused):
    gate.fail_writes()
    refusal = await refused(gate.person("ines").freeze("all"))
    assert refusal.code == grpc.StatusCode.UNAVAILABLE
    assert gate.count("freezes") == 0


async def test_an_access_evaluation_says_no_to_what_is_frozen(gate, ana):
    resource = {"resource": access_pb2.AccessResource(type="file", id="a.txt")}
    subject = {"subject": access_pb2.AccessSubject(type="user", id="ana")}
    request = access_pb2.EvaluateAccessRequest(**subject, **resource, action=access_pb2.AccessAction(name="open"))
    await gate.person("ines").freeze("user", "ana", tenant="acme")
    answer = await ana.decisions.EvaluateAccess(request, metadata=ana.metadata, timeout=60)
    assert not answer.decision
    assert gate.records("access_evaluated")[0]["decision"] == "BLOCKED"


async def test_a_replay_leaves_out_what_was_frozen_and_explain_says_so(gate, ana, call, remote, bundle):
    await gate.person("ines").freeze("tool", "read_file")
    frozen = await ana.evaluate(call(*READ))
    where = ("--target", f"127.0.0.1:{gate.server.port}", "--since", "all")
    result = await remote("petra", "policy", "replay", "--bundle", bundle, *where)
    assert "0 of 0 decisions flip" in result.stdout, result.stdout
    assert "1 that were frozen" in result.stdout
    result = await remote("ana", "explain", "--decision", frozen.decision_id)
    assert (result.exit_code, "an operator had frozen the call" in result.stderr) == (1, True)


# ---- revoking -------------------------------------------------------------------------------------------------------


async def test_a_revoked_decision_gets_no_permit_and_its_permit_is_refused_for_ever(gate, ana, call, refused):
    answer = await ana.evaluate(call(*READ))
    done = await gate.person("olga").revoke(answer.decision_id)
    assert (done.already_revoked, done.approval_id) == (False, "")
    refusal = await refused(ana.redeem(answer.permit, call(*READ)))
    assert (refusal.reason, refusal.metadata) == ("DECISION_REVOKED", {"factor": "revocation"})
    for _ in range(2):
        again = await ana.evaluate(call(*READ))
        assert (again.decision, again.permit, again.reasons[0].code) == (BLOCKED, "", "DECISION_REVOKED")
        gate.clock.advance(61)
    assert (await gate.person("olga").revoke(answer.decision_id)).already_revoked
    record = gate.records("decision_revoked")
    assert [(one["decision_id"], one["by"]["subject"]) for one in record] == [(answer.decision_id, "olga")]


async def test_a_revoked_decision_is_shown_as_revoked_and_its_record_stays_what_it_was(gate, ana, call, remote):
    first = await ana.evaluate(call(*READ))
    other = await ana.evaluate(call(*READ, "c2"))
    before = gate.records("decision")
    await gate.person("olga").revoke(first.decision_id)
    assert gate.records("decision") == before

    told = (await remote("ana", "explain", "--decision", first.decision_id)).stdout.splitlines()
    assert told[0].startswith("REVOKED at 20")
    assert told[0].endswith("; it was ALLOW   under revision 1")
    assert told[1].strip() == "Not allowed: an operator has revoked this decision."
    facts = json.loads((await remote("ana", "explain", "--decision", first.decision_id, "--json")).stdout)
    assert (facts["decision"], facts["reasons"][0]["code"]) == ("ALLOW", "DECISION_REVOKED")
    assert facts["revoke_time"] is not None
    assert (await remote("ana", "explain", "--decision", other.decision_id)).stdout.startswith("ALLOW   under")

    for words in (("list", "--oldest-first"), ("tail", "--from-beginning", "--count", "2")):
        listed = (await remote("aldo", "audit", *words, "--kind", "decision")).stdout.splitlines()
        assert [line.split("read_file")[1].strip() for line in listed[1:]] == ["REVOKED, was ALLOW", "ALLOW"], listed
        lines = (await remote("aldo", "audit", *words, "--kind", "decision", "--json")).stdout.splitlines()
        entries = [json.loads(line) for line in lines]
        assert [one["record"]["decision"] for one in entries] == ["ALLOW", "ALLOW"]
        assert [one.get("revoke_time") for one in entries] == [facts["revoke_time"], None]


async def test_revoking_what_waits_for_a_person_closes_its_approval(gate, ana, refused):
    asked = await ana.evaluate()
    approval = await ana.approve(asked.approval)
    allowed = await ana.evaluate(approval=approval.id)
    done = await gate.person("ines").revoke(asked.decision_id, tenant="acme")
    assert done.approval_id == approval.id
    assert (await ana.get(approval.id)).closed_reason == "REVOKED"
    assert (await refused(ana.redeem(allowed.permit))).reason == "APPROVAL_NOT_PENDING"
    assert [one["tenant"] for one in gate.records("decision_revoked")] == ["ops", "acme"]


async def test_what_was_redeemed_cannot_be_revoked_and_another_tenants_decision_is_not_there(gate, ana, call, refused):
    answer = await ana.evaluate(call(*READ))
    assert (await refused(gate.person("zeno").revoke(answer.decision_id))).reason == "DECISION_NOT_FOUND"
    await ana.redeem(answer.permit, call(*READ))
    refusal = await refused(gate.person("olga").revoke(answer.decision_id))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_REDEEMED")
    assert refusal.metadata["execution_id"] == "execution-1"


# ---- time -----------------------------------------------------------------------------------------------------------


async def test_a_decision_is_given_no_further_permit_once_it_is_too_old_whatever_the_clock_says_later(
    gate, ana, call, refused
):
    answer = await ana.evaluate(call(*READ))
    gate.clock.advance(3_599)
    fresh = await ana.evaluate(call(*READ))
    assert fresh.permit != answer.permit
    gate.clock.advance(61)
    for seconds in (0, -3_600):
        gate.clock.advance(seconds)
        old = await ana.evaluate(call(*READ))
        assert (old.decision, old.permit, old.reasons[0].code) == (ALLOW, "", "DECISION_TOO_OLD")
    assert (await refused(ana.redeem(fresh.permit, call(*READ)))).reason == "PERMIT_EXPIRED"
    assert (await ana.evaluate(call(*READ, "c2"))).permit


@pytest.mark.slow
async def test_a_clock_set_back_does_not_revive_a_refused_permit_and_a_new_one_is_issued(gate, ana, call, refused):
    permit = (await ana.evaluate(call(*READ))).permit
    gate.clock.advance(61)
    assert (await refused(ana.redeem(permit, call(*READ)))).reason == "PERMIT_EXPIRED"
    gate.clock.advance(-61)
    assert (await refused(ana.redeem(permit, call(*READ)))).reason == "PERMIT_EXPIRED"
    assert (await ana.redeem((await ana.evaluate(call(*READ))).permit, call(*READ))).receipt


async def test_a_clock_set_back_by_a_day_leaves_no_call_without_a_permit_that_counts(gate, ana, call, refused):
    ahead = (await ana.evaluate(call(*READ))).permit
    gate.clock.advance(-86_400)
    fresh = (await ana.evaluate(call(*READ))).permit
    assert fresh != ahead
    receipt = (await ana.redeem(fresh, call(*READ))).receipt
    assert receipt
    gate.clock.advance(86_400)
    assert (await refused(ana.redeem(ahead, call(*READ), execution="execution-2"))).reason == "ALREADY_REDEEMED"


async def test_a_rejection_of_a_time_that_has_not_come_keeps_nobody_waiting(gate, ana, call):
    asked = await ana.evaluate()
    await ana.reject(asked.approval.id, thread="t1")
    gate.clock.advance(-86_400)
    assert (await ana.evaluate(call(call_id="c2"))).decision == types_pb2.DECISION_AUTH_REQUIRED


# ---- commands -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_the_commands_freeze_list_lift_and_revoke_and_say_what_a_person_has_to_know(gate, ana, call, remote):
    decision = (await ana.evaluate(call(*READ))).decision_id
    result = await remote("ines", "freeze", "user", "anna", "--tenant", "acme", "--reason", "a stolen laptop")
    assert (result.exit_code, result.stdout) == (0, "frozen: user anna of acme\n")
    assert "nothing was ever decided here for user anna of acme: check the name" in result.stderr
    assert (await remote("olga", "freeze", "tool", "read_file")).stdout == "frozen: tool read_file of acme\n"
    listed = (await remote("olga", "freeze", "list")).stdout
    assert ('by ines of ops (installation): "a stolen laptop"' in listed, "by olga of acme (tenant)" in listed) == (
        True,
        True,
    )
    result = await remote("olga", "unfreeze", "user", "anna")
    assert (result.exit_code, "has not frozen user 'anna'" in result.stderr) == (1, True)
    assert (await remote("ines", "unfreeze", "user", "anna", "--tenant", "acme")).exit_code == 0
    assert (await remote("olga", "unfreeze", "tool", "read_file")).stdout == "lifted: tool read_file\n"
    assert (await remote("ines", "freeze", "list")).stdout == "nothing is frozen\n"
    for word in ("", " already"):
        result = await remote("ines", "revoke", decision, "--tenant", "acme")
        assert (result.exit_code, result.stdout) == (0, f"{decision} is revoked{word}\n")
    assert (await remote("ines", "freeze", "all")).stdout == "frozen: all\n"
    assert (await remote("ines", "freeze", "tenant", "acme")).exit_code == 0
    assert "another freeze" in (await remote("ines", "unfreeze", "tenant", "acme")).stderr
    assert (await remote("ines", "unfreeze", "all")).exit_code == 0


# ---- races ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_after_a_freeze_is_answered_nothing_is_redeemed_in_any_process(rivals, call):
    one, two = await rivals("one"), await rivals("two")
    people = [Person(one.channel, "x", "ana", "acme"), Person(two.channel, "x", "ana", "acme")]
    operator = Person(two.channel, "x")
    operator.metadata = ()
    for person in people:
        person.metadata = person.metadata[1:]
    permits = [(await people[n % 2].evaluate(call(*READ, f"c{n}"))).permit for n in range(40)]
    frozen = asyncio.Event()
    redeemed_after: list[int] = []

    async def redeem(n: int) -> bool:
        began_after = frozen.is_set()
        try:
            await people[(n + 1) % 2].redeem(permits[n], call(*READ, f"c{n}"), execution=f"execution-{n}")
        except grpc.aio.AioRpcError:
            return False
        if began_after:
            redeemed_after.append(n)
        return True

    async def freeze() -> None:
        await operator.freeze("all")
        frozen.set()

    first = [asyncio.create_task(redeem(n)) for n in range(20)]
    freezing = asyncio.create_task(freeze())
    await asyncio.gather(*first, freezing)
    later = await asyncio.gather(*(redeem(n) for n in range(20, 40)))
    assert not any(later)
    assert redeemed_after == []


async def test_who_may_not_freeze_is_told_every_role_that_would_do(gate, refused):
    refusal = await refused(gate.person("ana").freeze("user", "ben"))
    assert refusal.reason == "ROLE_REQUIRED"
    assert all(f"'{role}'" in refusal.message for role in ("operator", "policy_admin", "installation_operator"))
