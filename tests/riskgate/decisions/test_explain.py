"""Explanations of decisions: every step, fact and policy, for hypothetical and recorded calls."""

from __future__ import annotations

import json

import grpc
import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import explain_pb2, policy_pb2, types_pb2
from phylactery_riskgate.store.bundles import find_files, keep_bundle

from tests.riskgate.bundles.test_activation import NO_READS, activate

PAY = ("pay", '{"to":"bob","note":"sesame-open"}')


async def explained(person, call=None, **options) -> explain_pb2.ExplainResponse:
    request = explain_pb2.ExplainRequest(call=call, **options)
    return await person.decisions.Explain(request, metadata=person.metadata, timeout=60)


def told(steps) -> list[tuple[list[str], bool, bool, list[str]]]:
    return [(list(one.approved), one.imagined, one.allowed, [each.id for each in one.policies]) for one in steps]


async def test_an_imagined_write_shows_every_question_and_records_nothing(gate, ana, call):
    answer = await explained(ana, call())
    assert (answer.decision, answer.approval_class) == (types_pb2.DECISION_AUTH_REQUIRED, "self")
    assert told(answer.steps) == [([], False, False, []), (["self"], True, True, ["write.ask-self"])]
    policy = answer.steps[1].policies[0]
    assert (policy.title, policy.forbids, policy.file, policy.line > 1) == (
        "A write of low or medium risk needs the requester's word",
        False,
        "policies/default.cedar",
        True,
    )
    facts = {fact.name: (fact.value, fact.source) for fact in answer.facts}
    assert facts["principal.level"] == ('"user"', "the caller's own credential")
    assert facts["context.derived.path.hidden"] == ("false", "worked out of the arguments")
    assert next(view.path for view in answer.arguments) == "/path"
    assert gate.records() == []
    assert gate.count("decisions") == gate.count("approvals") == 0


async def test_an_explanation_is_what_evaluate_decides(ana, call):
    for number, asked in enumerate(
        (
            call(),
            call("read_file", '{"path":".env"}'),
            call("read_file", '{"path":"a"}'),
            call(*PAY),
            call("wipe", "{}"),
        )
    ):
        asked.tool_call_id = f"c{number}"
        answer, decided = await explained(ana, asked), await ana.evaluate(asked)
        assert (answer.decision, answer.policy_ids, answer.reasons) == (
            decided.decision,
            decided.policy_ids,
            decided.reasons,
        )
        assert answer.approval_class == decided.approval.approval_class
        last = answer.steps[-1]
        assert last.allowed is (decided.decision != types_pb2.DECISION_BLOCKED)
        assert [policy.id for policy in last.policies] == list(decided.policy_ids)


async def test_with_an_approval_imagined_the_same_call_is_allowed(ana, call):
    answer = await explained(ana, call(*PAY), approved=["peer"])
    assert answer.decision == types_pb2.DECISION_ALLOW
    assert told(answer.steps) == [(["self", "peer"], False, True, ["write.ask-peer"])]


async def test_a_call_that_cannot_be_bound_is_told_without_a_question(ana, call):
    answer = await explained(ana, call("read_file", '{"pat":"a"}'))
    assert (answer.decision, list(answer.steps), list(answer.facts)) == (types_pb2.DECISION_BLOCKED, [], [])
    assert {one.code for one in answer.reasons} == {"SCHEMA_VIOLATION"}


async def test_a_sensitive_argument_is_in_no_view_and_no_fact(make_gate, bundle_with, call):
    looks = (
        '@id("no-sesame") @title("x") forbid (principal, action == Action::"pay", resource) '
        'when { context.args has note && context.args.note == "sesame-closed" };'
    )
    gate = await make_gate(bundle=bundle_with(policies=looks))
    answer = await explained(gate.person("ana"), call(*PAY))
    assert {one.name: one.value for one in answer.facts}["context.args.note"] == "«sensitive»"
    assert "sesame-open" not in str(answer)


async def test_a_recorded_decision_is_explained_under_the_bundle_that_made_it(gate, ana, call, bundle_with):
    decided = await ana.evaluate(call("read_file", '{"path":"a.txt"}'))
    await activate(gate.person("petra"), bundle_with(policies=NO_READS, revision=2))
    answer = await explained(ana, decision_id=decided.decision_id)
    assert (answer.decision, answer.bundle_revision, answer.decision_id) == (
        types_pb2.DECISION_ALLOW,
        1,
        decided.decision_id,
    )
    assert told(answer.steps) == [([], False, True, ["read.allow"])]
    today = await explained(ana, call("read_file", '{"path":"a.txt"}'))
    assert (today.decision, today.bundle_revision) == (types_pb2.DECISION_BLOCKED, 2)


async def test_an_approved_decision_is_explained_with_its_approval(ana):
    allowed = await ana.permitted()
    answer = await explained(ana, decision_id=allowed.decision_id)
    assert told(answer.steps) == [(["self"], False, True, ["write.ask-self"])]


async def test_a_decision_about_a_call_that_fitted_no_tool_is_explained_and_one_that_was_no_json_is_not(
    ana, call, refused
):
    unknown = await ana.evaluate(call("nobody_knows", '{"a":1}', "c1"))
    answer = await explained(ana, decision_id=unknown.decision_id)
    assert (answer.decision, answer.reasons) == (types_pb2.DECISION_BLOCKED, unknown.reasons)
    assert (
        await refused(explained(ana, decision_id=(await ana.evaluate(call(arguments="no", call_id="c2"))).decision_id))
    ).reason == ("NOT_EXPLAINABLE")


async def test_a_bundle_that_was_altered_in_the_database_explains_nothing(gate, ana, call, bundle_with, refused):
    decided = await ana.evaluate(call("read_file", '{"path":"a.txt"}'))
    await activate(gate.person("petra"), bundle_with(policies=NO_READS, revision=2))
    before = gate.records("decision")[0]["bundle_hash"]
    forged = gate.database.read_sync(lambda c: find_files(c, before))
    forged["policies/default.cedar"] += "// forged\n"
    gate.database.write_sync(lambda c: keep_bundle(c, before, 1, forged, 1))
    refusal = await refused(explained(ana, decision_id=decided.decision_id))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_EXPLAINABLE")
    assert "altered" in refusal.message


async def test_what_is_erased_unknown_or_somebody_elses_cannot_be_explained(gate, ana, call, refused):
    decided = await ana.evaluate(call("read_file", '{"path":"a.txt"}'))
    for person, asked in (
        (ana, "de_nothing"),
        (gate.person("ben"), decided.decision_id),
        (gate.person("zoe"), decided.decision_id),
    ):
        refusal = await refused(explained(person, decision_id=asked))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "NOT_EXPLAINABLE")
    assert (await explained(gate.person("petra"), decision_id=decided.decision_id)).policy_ids == ["read.allow"]
    gate.database.write_sync(lambda c: c.execute(sa.text("DELETE FROM audit_values")))
    refusal = await refused(explained(ana, decision_id=decided.decision_id))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_EXPLAINABLE")
    assert "erased" in refusal.message


async def test_only_auditor_and_policy_admin_imagine_for_somebody_else(gate, ana, call, refused):
    refusal = await refused(explained(ana, call(), subject="ben"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED")
    answer = await explained(gate.person("petra"), call(), subject="ben")
    facts = {fact.name: (fact.value, fact.source) for fact in answer.facts}
    assert facts["principal"][0] == json.dumps("ben")
    assert facts["principal.level"] == ('"user"', "the bundle, for users it does not name")


@pytest.mark.parametrize("fields", [{}, {"decision_id": "de_1", "subject": "a b"}, {"decision_id": "x" * 200}])
async def test_a_question_that_is_none_is_refused(ana, refused, fields):
    refusal = await refused(explained(ana, **fields))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


async def test_the_files_of_the_bundle_that_decided_once_are_shown(gate, ana, call, bundle_with, refused):
    decided = gate.records("decision") or [await ana.evaluate(call("read_file", '{"path":"a.txt"}'))]
    assert decided
    bundle_hash = gate.records("decision")[0]["bundle_hash"]
    petra = gate.person("petra")
    await activate(petra, bundle_with(policies=NO_READS, revision=2))
    request = policy_pb2.GetBundleRequest(with_files=True, hash=bundle_hash)
    kept = await petra.policies.GetBundle(request, metadata=petra.metadata, timeout=60)
    assert (kept.live.revision, b"revision: 1" in {one.name: one.content for one in kept.files}["riskgate.yaml"]) == (
        2,
        True,
    )
    request.hash = "sha256:" + "0" * 64
    refusal = await refused(petra.policies.GetBundle(request, metadata=petra.metadata, timeout=60))
    assert refusal.code == grpc.StatusCode.NOT_FOUND
