"""A receipt exists for every decision and what became of it, and is checked offline with the public keys alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from phylactery.riskgate.v1 import access_pb2, audit_pb2
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.audit.receipts import CheckedReceipt, check_receipt
from phylactery_riskgate.keys.ring import KeyState

from tests.support.riskgate.command import run
from tests.support.riskgate.earlier import turn_back

READ = '{"path":"a.txt"}'


@pytest.fixture
async def gate(make_gate, shared_database):
    return await make_gate(**({"database_url": shared_database} if shared_database else {}))


async def receipt_of(person, decision_id: str = "", *, values: bool = False, **other: Any) -> str:
    of = {"decision_id": decision_id} if decision_id else other
    request = audit_pb2.GetReceiptRequest(include_values=values, **of)
    return (await person.audit.GetReceipt(request, metadata=person.metadata, timeout=60)).receipt


async def checked(gate, person, decision_id: str = "", **other: Any) -> CheckedReceipt:
    found = check_receipt(await receipt_of(person, decision_id, **other), gate.keys.public)
    assert not found.problem
    return found


def kinds(found: CheckedReceipt) -> list[str]:
    return [record["kind"] for record in found.records]


async def test_every_decision_has_a_receipt_that_says_by_whom_and_by_which_bundle(gate, call):
    agent = gate.through_agent("ana")
    calls = {
        "ALLOW": call("read_file", READ, "c1"),
        "AUTH_REQUIRED": call(call_id="c2"),
        "BLOCKED": call("no_such_tool", "{}", "c3"),
    }
    for wanted, one in calls.items():
        answer = await agent.evaluate(one)
        (record,) = (await checked(gate, agent, answer.decision_id)).records
        assert (record["kind"], record["decision"], record["decision_id"]) == ("decision", wanted, answer.decision_id)
        assert (record["subject"], record["actor"], record["tenant"]) == ("ana", "agent", "acme")
        assert record["roles"] == ["caller"]
        assert record["bundle_hash"].startswith("sha256:")
        assert record["bundle_revision"] == answer.bundle_revision


async def test_a_receipt_tells_the_whole_way_of_an_approved_call_from_each_of_its_ids(gate, ana, call):
    asked = await ana.evaluate()
    await ana.approve(asked.approval)
    permitted = await ana.evaluate(approval=asked.approval.id)
    await ana.redeem(permitted.permit)
    await ana.report("SUCCEEDED")
    way = ["decision", "approval_answered", "decision", "redeemed", "outcome"]
    for of in (
        {"decision_id": asked.decision_id},
        {"decision_id": permitted.decision_id},
        {"approval_id": asked.approval.id},
    ):
        assert kinds(await checked(gate, ana, **of)) == way


async def test_what_was_refused_expired_revoked_or_frozen_has_its_receipt(gate, ana, call, refused):
    read = call("read_file", READ, "c1")
    allowed = await ana.evaluate(read)
    await refused(ana.redeem(allowed.permit, read, thread="another"))
    await gate.person("olga").revoke(allowed.decision_id)
    await refused(ana.redeem(allowed.permit, read))
    found = await checked(gate, ana, allowed.decision_id)
    assert kinds(found) == ["decision", "redeem_refused", "decision_revoked", "redeem_refused"]
    refusal = found.records[-1]
    assert (refusal["reason"], refusal["roles"]) == ("DECISION_REVOKED", ["caller"])
    assert refusal["bundle_hash"] == found.records[0]["bundle_hash"]

    asked = await ana.evaluate(call(call_id="c2"))
    gate.clock.advance(3 * 86_400)
    expired = await checked(gate, ana, asked.decision_id)
    assert kinds(expired) == ["decision", "approval_closed"]
    assert expired.records[1]["closed_reason"] == "EXPIRED"

    await gate.person("olga").freeze("tool", "echo")
    frozen = await ana.evaluate(call("echo", '{"text":"x"}', "c3"))
    (record,) = (await checked(gate, ana, frozen.decision_id)).records
    assert (record["decision"], record["reasons"][0]["code"]) == ("BLOCKED", "FROZEN")


async def test_an_answer_that_an_operator_stopped_after_it_was_decided_is_in_the_receipt(gate, ana, call):
    read, write = call("read_file", READ, "c1"), call(call_id="c2")
    allowed, asked = await ana.evaluate(read), await ana.evaluate(write)
    await gate.person("olga").freeze("user", "ana")
    assert (await ana.evaluate(read)).reasons[0].code == "FROZEN"
    await gate.person("olga").unfreeze("user", "ana")
    for one in (allowed, asked):
        await gate.person("olga").revoke(one.decision_id)
    for one in (read, write):
        assert (await ana.evaluate(one)).reasons[0].code == "DECISION_REVOKED"
    stopped = [record for record in (await checked(gate, ana, allowed.decision_id)).records if record.get("reason")]
    assert [(one["kind"], one["reason"]) for one in stopped] == [
        ("evaluate_refused", "FROZEN"),
        ("evaluate_refused", "DECISION_REVOKED"),
    ]
    assert (await checked(gate, ana, asked.decision_id)).records[-1]["reason"] == "DECISION_REVOKED"


async def test_a_refusal_before_a_decision_has_its_receipt_by_its_place_in_the_log(gate, ana, call, refused):
    await refused(ana.evaluate(approval="ap_none"))
    newest = gate.records()[-1]
    place = audit_pb2.EntryReference(log=newest["log"], index=newest["index"])
    (record,) = (await checked(gate, ana, entry=place)).records
    assert (record["kind"], record["failed"]) == ("evaluate_refused", ["id"])
    assert record["bundle_hash"].startswith("sha256:")
    refusal = await refused(receipt_of(gate.person("ben"), entry=place))
    assert refusal.reason == "AUDIT_NOT_FOUND"


async def test_an_answer_of_evaluate_access_has_its_receipt(gate, ana):
    asked = access_pb2.EvaluateAccessRequest(
        subject=access_pb2.AccessSubject(type="user", id="ana"),
        action=access_pb2.AccessAction(name="no_such"),
        resource=access_pb2.AccessResource(type="file", id="x"),
    )
    answer = await ana.decisions.EvaluateAccess(asked, metadata=ana.metadata)
    (record,) = (await checked(gate, ana, answer.context.id)).records
    assert (record["kind"], record["decision"]) == ("access_evaluated", "BLOCKED")


async def test_a_receipt_is_for_its_caller_and_for_the_auditors_of_the_tenant(gate, ana, call, refused):
    asked = await ana.evaluate()
    for stranger in ("ben", "zoe", "zora"):
        for of in ({"decision_id": asked.decision_id}, {"approval_id": asked.approval.id}):
            refusal = await refused(receipt_of(gate.person(stranger), **of))
            assert refusal.reason in ("DECISION_NOT_FOUND", "APPROVAL_NOT_FOUND")
    assert (await refused(receipt_of(gate.person("olga"), asked.decision_id))).reason == "ROLE_REQUIRED"
    assert kinds(await checked(gate, gate.person("aldo"), asked.decision_id)) == ["decision"]


async def test_values_are_in_a_receipt_on_request_and_are_checked(gate, ana, call):
    asked = await ana.evaluate(call("pay", '{"to":"dora","note":"secret-note"}'))
    text = await receipt_of(ana, asked.decision_id, values=True)
    assert '"value":"dora"' in text
    assert "secret-note" not in text
    assert "values" not in json.loads(await receipt_of(ana, asked.decision_id))["entries"][0]
    assert check_receipt(text.replace('"value":"dora"', '"value":"eve"'), gate.keys.public).problem


async def test_an_altered_receipt_is_not_verified(gate, ana, call):
    read = await ana.evaluate(call("read_file", READ, "c1"))
    other = await ana.evaluate(call("echo", '{"text":"x"}', "c2"))
    text = await receipt_of(ana, read.decision_id)
    foreign = json.loads(await receipt_of(ana, other.decision_id))
    good = json.loads(text)
    entry = good["entries"][0]
    changed: list[Any] = [
        text.replace('"decision":"ALLOW"', '"decision":"BLOCKED"'),
        good | {"of": other.decision_id},
        good | {"entries": []},
        good | {"entries": [entry | {"index": 7}]},
        good | {"entries": [entry | {"hashes": entry["hashes"][:-1]}]},
        good | {"entries": [entry | {"hashes": ["zz", 3]}]},
        good | {"entries": [entry | {"values": {"/arguments/path": {"value": "x", "salt": "AA"}}}]},
        good | {"entries": [None]},
        good | {"heads": [good["heads"][0].replace("riskgate\n", "riskgate\n", 1).replace("\n3\n", "\n9\n")[:-9]]},
        good | {"heads": []},
        good | {"heads": [7]},
        good | {"format": 2},
        good | {"left_out": "no"},
        foreign | {"entries": [*foreign["entries"], entry]},
        [],
        "{",
    ]
    for one in changed:
        found = check_receipt(one if isinstance(one, str) else json.dumps(one), gate.keys.public)
        assert found.problem, one
        assert not found.records


async def test_a_receipt_of_a_revoked_or_a_foreign_key_proves_nothing(gate, ana, call, make_gate):
    answer = await ana.evaluate(call("read_file", READ, "c1"))
    text = await receipt_of(ana, answer.decision_id)
    other = await make_gate("other")
    assert "no known key" in check_receipt(text, other.keys.public).problem
    revoked = [replace(key, state=KeyState.REVOKED) for key in gate.keys.public]
    assert "has been revoked" in check_receipt(text, revoked).problem
    retiring = [replace(key, state=KeyState.RETIRING) for key in gate.keys.public]
    assert not check_receipt(text, retiring).problem


async def test_repeated_refusals_do_not_push_out_what_happened(gate, ana, call, refused):
    read = call("read_file", READ, "c1")
    allowed = await ana.evaluate(read)
    for _ in range(25):
        await refused(ana.redeem(allowed.permit, read, thread="another"))
    await gate.person("olga").revoke(allowed.decision_id)
    found = await checked(gate, ana, allowed.decision_id)
    assert kinds(found) == ["decision", *["redeem_refused"] * 20, "decision_revoked"]
    assert found.left_out == 5


async def test_entries_of_an_earlier_version_are_found(gate, ana, call):
    asked = await ana.evaluate()
    await ana.approve(asked.approval)
    turn_back(gate.database, "0017")
    gate.database.migrate(PACKAGE)
    assert kinds(await checked(gate, ana, asked.decision_id)) == ["decision", "approval_answered"]


async def test_the_command_prints_a_receipt_and_checks_it(gate, remote, ana, call, tmp_path):
    answer = await ana.evaluate(call("read_file", READ, "c1"))
    got = await remote("ana", "receipt", "get", answer.decision_id)
    assert got.exit_code == 0
    (file := tmp_path / "receipt.json").write_text(got.stdout)
    keys = run("keys", "export", "--data-dir", gate.settings.data_dir)
    (tmp_path / "keys.json").write_text(keys.stdout)
    told = run("receipt", "verify", file, "--key", tmp_path / "keys.json")
    assert told.exit_code == 0
    assert f"verified: 1 records about '{answer.decision_id}'" in told.stdout
    assert "by ana of acme, roles caller" in told.stdout
    as_json = json.loads(run("receipt", "verify", file, "--key", tmp_path / "keys.json", "--json").stdout)
    assert (as_json["ok"], as_json["records"][0]["decision"]) == (True, "ALLOW")
    file.write_text(got.stdout.replace("ALLOW", "BLOCKED"))
    told = run("receipt", "verify", file, "--key", tmp_path / "keys.json")
    assert (told.exit_code, told.stdout[:12]) == (1, "NOT VERIFIED")
    by_place = await remote("aldo", "receipt", "get", "riskgate:0")
    assert by_place.exit_code == 0
    missing = await remote("ana", "receipt", "get", "de_none")
    assert (missing.exit_code, "DECISION_NOT_FOUND" in missing.output) == (1, True)
