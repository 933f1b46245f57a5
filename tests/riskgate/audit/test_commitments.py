"""Commitments to whole arguments: no record or row reveals one, and the call is still recognised."""

from __future__ import annotations

import hashlib
import json

import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2, explain_pb2
from phylactery_chassis.auth.jws import decode
from phylactery_riskgate.audit import log as audit
from phylactery_riskgate.audit.commitments import ARGS_HASH, KeyedHashes
from phylactery_riskgate.audit.export import Exporter
from phylactery_riskgate.audit.sealing import commitment
from phylactery_riskgate.audit.verify import check_lines
from phylactery_riskgate.cli.audit.commands import _shown
from phylactery_riskgate.decisions import evaluate
from phylactery_riskgate.domain.model import Verdict
from phylactery_riskgate.store.tables import METADATA

CODE = '{"text":"4711"}'


def plain(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).hexdigest().encode()


def stored(gate) -> bytes:
    """Everything that lies in the database, as one heap of bytes."""

    def read(connection) -> bytes:
        found = [row for table in METADATA.sorted_tables for row in connection.execute(sa.select(table))]
        return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for row in found for value in row)

    return bytes(gate.database.read_sync(read))


def exported(gate, *, values: bool = False) -> list[bytes]:
    exporter = Exporter(
        "riskgate", gate.keys.public, gate.keys.signer, gate.heads, _shown(gate.keys) if values else None
    )
    return gate.database.read_sync(lambda c: list(exporter.lines(c)))


async def erase(gate, **wanted) -> int:
    olga = gate.person("olga")
    request = audit_pb2.EraseValuesRequest(reason="they asked", filter=audit_pb2.EntryFilter(**wanted))
    return (await olga.audit.EraseValues(request, metadata=olga.metadata, timeout=60)).erased


async def whole_life(gate, call, refused) -> tuple[bytes, ...]:
    """Make every record that is about a call, and return the hashes of what was asked."""
    ana, texts = gate.person("ana"), ['{"content":"4711","path":"pin"}', '{"content":"4712","path":"pin"}', CODE]
    permit = (await ana.permitted(call(arguments=texts[0]))).permit
    await ana.redeem(permit, call(arguments=texts[0]))
    await ana.report("SUCCEEDED")
    approval = gate.records("decision")[-1]["counted_approval_id"]
    gate.clock.advance(61)
    await ana.evaluate(call(arguments=texts[0]), approval=approval)
    await refused(ana.evaluate(call(arguments=texts[1])))
    again = (await ana.evaluate(call(arguments=texts[1], call_id="c2"))).approval
    await ana.reject(again.id, thread="t1")
    assert (await refused(ana.evaluate(call(arguments=texts[1], call_id="c3")))).reason == "REJECTED_BEFORE"
    third = (await ana.evaluate(call("write_file", texts[0], "c4"), thread="t2")).approval
    await refused(ana.approve(third, code="WRONG"))
    await ana.cancel(third.id)
    await ana.evaluate(call("echo", CODE, "c5", raw_args_hash=plain(CODE)))
    await ana.evaluate(call("nobody_knows", CODE, "c6", raw_args_hash=plain(CODE)))
    bound = await ana.evaluate(call(arguments=texts[0], call_id="c7"), thread="t3")
    await ana.cancel(bound.approval.id)
    return *(digest(text) for text in texts), bound.bound_call.args_hash.removeprefix("sha256:").encode()


async def test_no_record_no_row_and_no_export_tells_the_plain_hash_of_a_calls_arguments(
    make_gate, call, refused, bundle_with
):
    gate = await make_gate(bundle=bundle_with(rejected_stays_seconds=600))
    hashes = await whole_life(gate, call, refused)
    everything = stored(gate) + b"".join(exported(gate))
    kinds = {record["kind"] for record in gate.records()}
    assert kinds > {
        "decision",
        "approval_answered",
        "approval_refused",
        "redeemed",
        "permit_renewed",
        "evaluate_refused",
    }
    assert [one for one in hashes if one in everything] == []
    assert sum(one in b"".join(exported(gate, values=True)) for one in hashes) == 4, "with the values they can be had"


async def test_after_an_erasure_nothing_that_auditors_read_leads_to_a_guess(make_gate, call, refused, bundle_with):
    gate = await make_gate(bundle=bundle_with(rejected_stays_seconds=600))
    hashes = await whole_life(gate, call, refused)
    assert await erase(gate, subject="ana")
    left = b"".join(exported(gate, values=True)) + stored(gate)
    assert [one for one in hashes if one in left] == []
    assert check_lines(exported(gate, values=True), list(gate.keys.public)).ok


async def test_records_of_one_call_name_the_same_commitment_and_its_salt_goes_with_the_values(gate, call):
    ana = gate.person("ana")
    permit = (await ana.permitted()).permit
    await ana.redeem(permit)
    decided, (answered,), (redeemed,) = (
        gate.records("decision"),
        gate.records("approval_answered"),
        gate.records("redeemed"),
    )
    assert answered["args_commitment"] == decided[0]["values"][ARGS_HASH]
    assert redeemed["args_commitment"] == decided[-1]["values"][ARGS_HASH]
    opened = next(json.loads(line) for line in exported(gate, values=True) if b'"kind":"decision"' in line)
    shown = opened["values"][ARGS_HASH]
    assert shown["value"] == (await ana.get(answered["approval_id"])).args_hash
    assert commitment(decode(shown["salt"]), shown["value"]) == answered["args_commitment"]


@pytest.mark.parametrize("changed", ["value", "salt"])
async def test_verify_finds_a_hash_that_is_not_the_committed_one(gate, ana, call, changed):
    await ana.evaluate(call("echo", CODE))
    lines = [json.loads(line) for line in exported(gate, values=True)]
    entry = next(line for line in lines if line.get("record", {}).get("kind") == "decision")
    other = plain("{}") if changed == "value" else entry["values"]["/arguments/text"]["salt"]
    entry["values"][ARGS_HASH][changed] = other
    report = check_lines([json.dumps(line).encode() + b"\n" for line in lines], list(gate.keys.public))
    assert (report.ok, report.first_bad) == (False, entry["index"])


async def test_verify_finds_a_record_whose_hash_is_of_other_arguments_than_it_tells(gate, ana, call, monkeypatch):
    monkeypatch.setattr(
        "phylactery_riskgate.decisions.evaluate.argument_values", lambda _: {"/arguments/text": "other"}
    )
    await ana.evaluate(call("echo", CODE))
    report = check_lines(exported(gate, values=True), list(gate.keys.public))
    assert "arguments that do not match its hash" in report.problem


async def test_a_hash_is_withheld_where_any_argument_is_sensitive_or_no_catalog_judged_them(gate, ana, call):
    await ana.evaluate(call("pay", '{"to":"bob","note":"4711"}', "c1"))
    await ana.evaluate(call("read_file", '{"wrong":"4711"}', "c2"))
    await ana.evaluate(call("echo", CODE, "c3"))
    aldo = gate.person("aldo")
    listing = audit_pb2.ListEntriesRequest(include_values=True, oldest_first=True)
    entries = (await aldo.audit.ListEntries(listing, metadata=aldo.metadata)).entries
    told = [{value.path: value.withheld for value in entry.values if "hash" in value.path} for entry in entries]
    assert told == [
        {ARGS_HASH: True},
        {"/raw_args_hash": True},
        {ARGS_HASH: False},
    ]


async def test_what_was_redeemed_and_erased_is_answered_again_to_its_execution_and_to_nobody_else(
    gate, ana, call, refused
):
    first = await ana.evaluate(call("read_file", '{"path":"pin"}'))
    asked = call("read_file", '{"path":"pin"}')
    done = await ana.redeem(first.permit, asked)
    assert await erase(gate, subject="ana") > 0
    again = await ana.redeem(first.permit, asked)
    assert (again.receipt, again.repeated_redeem) == (done.receipt, True)
    assert (await refused(ana.redeem(first.permit, asked, execution="execution-2"))).reason == "ALREADY_REDEEMED"
    other = call("read_file", '{"path":"pen"}')
    assert (await refused(ana.redeem(first.permit, other))).reason == "ARGS_MISMATCH"
    assert (await ana.evaluate(asked)).decision_id == first.decision_id
    assert (await refused(ana.evaluate(other))).reason == "CALL_CONFLICT"


async def test_an_approval_whose_values_were_erased_shows_no_hash_and_its_rejection_still_counts(
    make_gate, call, refused, bundle_with
):
    gate = await make_gate(bundle=bundle_with(rejected_stays_seconds=600))
    ana = gate.person("ana")
    approval = (await ana.evaluate()).approval
    assert approval.args_hash.startswith("sha256:")
    await ana.reject(approval.id, thread="t1")
    assert (await ana.get(approval.id)).args_hash == approval.args_hash
    await erase(gate, subject="ana")
    assert (await ana.get(approval.id)).args_hash == ""
    assert [one.args_hash for one in (await ana.list()).approvals] == [""]
    assert (await refused(ana.evaluate(call(call_id="c2")))).reason == "REJECTED_BEFORE"


def write_as_before(patch: pytest.MonkeyPatch) -> None:
    """Let rows and records be written as version 1 wrote them: with plain hashes."""
    patch.setattr(KeyedHashes, "keep", lambda _self, _tenant, _subject, _tool, plain: plain)
    patch.setattr(audit, "RECORD_VERSION", 1)
    patch.setattr(evaluate, "hash_values", lambda _verdict: {})
    body = evaluate.verdict_body

    def with_hashes(verdict: Verdict) -> dict[str, object]:
        bound = verdict.bound.args_hash if verdict.bound else ""
        return body(verdict) | {"args_hash": bound, "raw_args_hash": verdict.raw_args_hash}

    patch.setattr(evaluate, "verdict_body", with_hashes)


async def test_a_decision_recorded_before_is_verified_and_explained_as_before(gate, ana, call, refused, monkeypatch):
    with monkeypatch.context() as patch:
        write_as_before(patch)
        decided = await ana.evaluate(call("read_file", '{"path":"a"}'))
    (record,) = gate.records("decision")
    assert (record["version"], record["args_hash"], list(record["values"])) == (
        1,
        decided.bound_call.args_hash,
        ["/arguments/path"],
    )
    assert check_lines(exported(gate, values=True), list(gate.keys.public)).ok
    asked = explain_pb2.ExplainRequest(decision_id=decided.decision_id)
    told = await ana.decisions.Explain(asked, metadata=ana.metadata)
    assert told.decision == decided.decision
    await erase(gate, subject="ana")
    refusal = await refused(ana.decisions.Explain(asked, metadata=ana.metadata))
    assert refusal.reason == "NOT_EXPLAINABLE"


async def test_rows_from_before_hold_plain_hashes_and_everything_about_them_goes_on(
    make_gate, call, refused, bundle_with, monkeypatch
):
    gate = await make_gate(bundle=bundle_with(rejected_stays_seconds=600))
    ana = gate.person("ana")
    with monkeypatch.context() as patch:
        write_as_before(patch)
        waiting = (await ana.evaluate()).approval
        rejected = (await ana.evaluate(call(arguments='{"path":"x","content":"y"}', call_id="c2"))).approval
        await ana.reject(rejected.id, thread="t1")
        allowed = await ana.evaluate(call("read_file", '{"path":"a"}', "c3"))
    assert (await refused(ana.approve(waiting, args_hash=plain("{}")))).reason == "ARGS_MISMATCH"
    assert (await ana.approve(waiting)).state
    permit = (await ana.evaluate(approval=waiting.id)).permit
    assert not (await ana.redeem(permit)).repeated_redeem
    assert (await ana.evaluate(call("read_file", '{"path":"a"}', "c3"))).decision_id == allowed.decision_id
    await ana.redeem(allowed.permit, call("read_file", '{"path":"a"}', "c3"), execution="execution-2")
    again = (await refused(ana.evaluate(call(arguments='{"path":"x","content":"y"}', call_id="c4")))).reason
    assert again == "REJECTED_BEFORE"


def test_a_kept_hash_is_another_one_for_another_user_tool_tenant_or_key():
    hashes, text = KeyedHashes(b"k" * 32), plain("{}")
    kept = hashes.keep("acme", "ana", "echo", text)
    others = [
        hashes.keep("zeta", "ana", "echo", text),
        hashes.keep("acme", "ben", "echo", text),
        hashes.keep("acme", "ana", "read_file", text),
        hashes.keep("acme", "ana", "echo", plain("[]")),
        KeyedHashes(b"K" * 32).keep("acme", "ana", "echo", text),
    ]
    assert len({kept, *others}) == 6
    assert hashes.same(kept, "acme", "ana", "echo", text)
    assert not any(hashes.same(other, "acme", "ana", "echo", text) for other in others)
    assert hashes.same(text, "acme", "ana", "echo", text), "a row of before"
    assert (hashes.keep("acme", "ana", "echo", ""), hashes.same("", "acme", "ana", "echo", "")) == ("", True)


async def test_verify_takes_the_hash_of_a_call_that_was_refused_whose_arguments_stand_nowhere(gate, ana, call, refused):
    await ana.evaluate(call("echo", CODE))
    assert (await refused(ana.evaluate(call("echo", '{"text":"4712"}')))).reason == "CALL_CONFLICT"
    lines = exported(gate, values=True)
    told = [json.loads(line).get("values", {}) for line in lines if b'"kind":"evaluate_refused"' in line]
    assert [list(one) for one in told] == [[ARGS_HASH]]
    assert check_lines(lines, list(gate.keys.public)).problem == ""


async def test_the_record_of_a_yes_that_comes_too_late_does_not_say_whether_the_hash_was_the_right_one(
    gate, ana, refused
):
    approval = (await ana.evaluate()).approval
    await ana.reject(approval.id, thread="t1")
    await erase(gate, subject="ana")
    for guess in (approval.args_hash, plain("{}")):
        await refused(ana.approve(approval, args_hash=guess))
    right, wrong = [record["failed"] for record in gate.records("approval_refused")]
    assert right == wrong == ["one_time"]


async def test_an_allowed_call_that_was_erased_and_whose_tool_changed_gets_no_permit_a_reason_and_no_more_records(
    make_gate, bundle_with, call
):
    gate = await make_gate()
    asked = call("read_file", '{"path":"pin"}')
    first = await gate.person("ana").evaluate(asked)
    await erase(gate, subject="ana")
    clock = gate.clock
    await gate.stop()
    bundle = bundle_with(revision=2)
    tools = bundle / "tools.yaml"
    tools.write_text(tools.read_text().replace("timeout_seconds: 10", "timeout_seconds: 11"))
    again = await make_gate(bundle=bundle, clock=clock)
    before = len(again.records())
    for seconds in (0, 61, 61):
        clock.advance(seconds)
        answer = await again.person("ana").evaluate(asked)
        assert (answer.decision_id, answer.decision, answer.replayed) == (first.decision_id, first.decision, True)
        assert (answer.permit, answer.HasField("bound_call")) == ("", False)
        assert [one.code for one in answer.reasons] == ["CALL_NOT_KEPT", *(one.code for one in first.reasons)]
        assert "se borraron" in answer.reasons[0].message_es
    assert len(again.records()) == before


@pytest.mark.parametrize("closed", ["rejected", "cancelled", "expired", "redeemed"])
async def test_the_record_of_a_call_for_a_closed_approval_does_not_say_whether_its_arguments_were_the_right_ones(
    gate, ana, call, refused, closed
):
    if closed == "redeemed":
        await ana.redeem((await ana.permitted()).permit)
        approval_id = gate.records("decision")[-1]["counted_approval_id"]
    else:
        approval_id = (await ana.evaluate()).approval.id
    if closed in {"rejected", "cancelled"}:
        await (ana.reject if closed == "rejected" else ana.cancel)(approval_id)
    elif closed == "expired":
        gate.clock.advance(24 * 3600)
    await erase(gate, subject="ana")
    for guess in (call(call_id="c9"), call(arguments='{"path":"b.txt","content":"x"}', call_id="c9")):
        await refused(ana.evaluate(guess, approval=approval_id))
    right, wrong = [one["failed"] for one in gate.records("evaluate_refused")]
    assert right == wrong
    assert right[:1] == ["id"]
