"""A bundle's way to decide: activated, refused, followed by replicas, demanded by callers, found after a restart."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_chassis.errors import StartError
from phylactery_riskgate.domain.bundle import load_bundle
from phylactery_riskgate.domain.bundle_files import SIGNATURE_FILE, read_folder
from phylactery_riskgate.policy_keys import create_key, load_private_key, sign_bundle, write_signature

READ = ("read_file", '{"path":"a.txt"}')
NO_READS = '@id("no-reads") @title("Nobody reads") forbid (principal, action in Action::"effect:read", resource);\n'
QUICK = {"bundle_poll_seconds": 0.05}


def parts(folder: Path) -> list[policy_pb2.BundleFile]:
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    return [policy_pb2.BundleFile(name=one.relative_to(folder).as_posix(), content=one.read_bytes()) for one in names]


def signed(folder: Path, key: Path) -> Path:
    files = read_folder(folder)
    write_signature(folder, sign_bundle(files, load_bundle(folder).revision, load_private_key(key)))
    return folder


async def activate(person, folder: Path, *, shadow: bool = False) -> policy_pb2.ActivateBundleResponse:
    request = policy_pb2.ActivateBundleRequest(files=parts(folder), shadow=shadow)
    return await person.policies.ActivateBundle(request, metadata=person.metadata, timeout=60)


async def shown(person, **options) -> policy_pb2.GetBundleResponse:
    request = policy_pb2.GetBundleRequest(**options)
    return await person.policies.GetBundle(request, metadata=person.metadata, timeout=60)


async def until(check) -> None:
    """Waits until an awaited check says yes; the test's own time limit is the bound."""
    while not await check():  # noqa: ASYNC110 - what is waited for is another process's, or a poll's
        await asyncio.sleep(0.01)


async def test_an_activated_bundle_decides_from_the_next_request_on_and_is_recorded(gate, ana, call, stricter):
    petra = gate.person("petra")
    assert (await ana.evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW
    done = await activate(petra, stricter)
    assert (done.bundle.revision, done.bundle.hash) == (2, load_bundle(stricter).hash)
    assert (done.bundle.source, done.bundle.activated_by) == (policy_pb2.BUNDLE_SOURCE_ACTIVATION, "petra")
    answer = await ana.evaluate(call(*READ, "c2"))
    assert (answer.decision, answer.bundle_revision) == (types_pb2.DECISION_BLOCKED, 2)
    record = gate.records("bundle_activated")[0]
    assert (record["subject"], record["tenant"], record["index"]) == ("petra", "acme", done.audit_index)
    assert (record["bundle_revision"], record["previous_revision"], record["bundle_hash"]) == (2, 1, done.bundle.hash)
    view = await shown(petra, with_files=True)
    assert view.live == done.bundle
    assert {one.name: one.content for one in view.files} == {one.name: one.content for one in parts(stricter)}


async def test_activating_what_is_active_changes_nothing(gate, stricter):
    petra = gate.person("petra")
    first = await activate(petra, stricter)
    again = await activate(petra, stricter)
    assert (again.already_active, again.bundle, again.audit_index) == (True, first.bundle, 0)
    assert len(gate.records("bundle_activated")) == 1


@pytest.mark.parametrize("revision", [1, 2, 3])
async def test_a_revision_that_is_not_higher_is_refused_and_recorded(gate, bundle_with, refused, call, revision):
    petra = gate.person("petra")
    await activate(petra, bundle_with(revision=3))
    refusal = await refused(activate(petra, bundle_with(policies=NO_READS, revision=revision)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "BUNDLE_ROLLBACK")
    assert refusal.metadata == {"active": "3", "given": str(revision)}
    record = gate.records("bundle_refused")[0]
    assert (record["reason"], record["bundle_revision"], record["subject"]) == ("BUNDLE_ROLLBACK", revision, "petra")
    assert (await gate.person("ana").evaluate(call(*READ))).bundle_revision == 3
    view = await shown(petra)
    assert (view.live.revision, view.last_fault.revision) == (3, revision)
    assert "revision 3 is active" in view.last_fault.message


async def test_an_invalid_bundle_is_refused_with_every_fault_and_the_live_one_stays(gate, refused, stricter, call):
    (stricter / "policies" / "bad.cedar").write_text("permit (principal);\n\nforbid nonsense;\n")
    petra = gate.person("petra")
    refusal = await refused(activate(petra, stricter))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "BUNDLE_INVALID")
    assert refusal.fields == ["policies/bad.cedar:1", "policies/bad.cedar:3"]
    assert refusal.metadata == {"file": "policies/bad.cedar", "line": "1"}
    assert gate.records("bundle_refused")[0]["message"].startswith("policies/bad.cedar:1:")
    assert (await gate.person("ana").evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW


@pytest.mark.parametrize("name", ["ana", "dora", "agent"])
async def test_only_a_policy_admin_touches_the_bundle(gate, refused, stricter, name):
    person = gate.person(name) if name != "agent" else gate.through_agent("petra")
    for attempt in (
        activate(person, stricter),
        activate(person, stricter, shadow=True),
        shown(person),
        person.policies.ValidateBundle(
            policy_pb2.ValidateBundleRequest(files=parts(stricter)), metadata=person.metadata, timeout=60
        ),
    ):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED")
    assert gate.records() == []


async def test_a_policy_admin_approves_nothing(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    refusal = await refused(gate.person("petra").approve(approval))
    assert refusal.code in {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND}


# ---- signatures -----------------------------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path: Path) -> Path:
    create_key(tmp_path / "policy.jwk")
    return tmp_path / "policy.jwk"


async def test_where_a_key_is_trusted_only_what_it_signed_is_activated(make_gate, bundle, key, stricter, refused):
    gate = await make_gate(bundle=signed(bundle, key), policy_keys=key.with_name("policy.jwk.pub"))
    petra = gate.person("petra")
    other = key.with_name("other.jwk")
    create_key(other)
    faults = ["is missing"]
    refusals = [await refused(activate(petra, stricter))]
    faults += ["no key that is trusted"]
    refusals += [await refused(activate(petra, signed(stricter, other)))]
    faults += ["and the files are"]
    (signed(stricter, key) / "policies" / "more.cedar").write_text(NO_READS + "// one more comment\n")
    refusals += [await refused(activate(petra, stricter))]
    faults += ["this is no signed note"]
    (stricter / SIGNATURE_FILE).write_text("yes, it is signed")
    refusals += [await refused(activate(petra, stricter))]
    for refusal, fault in zip(refusals, faults, strict=True):
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "BUNDLE_UNSIGNED")
        assert fault in refusal.message
    assert [record["reason"] for record in gate.records("bundle_refused")] == ["BUNDLE_UNSIGNED"] * 4
    done = await activate(petra, signed(stricter, key))
    assert done.bundle.signed_by == gate.records("bundle_activated")[-1]["signed_by"] != ""


async def test_a_signature_for_another_revision_is_refused(make_gate, bundle, key, stricter, refused):
    gate = await make_gate(bundle=signed(bundle, key), policy_keys=key.with_name("policy.jwk.pub"))
    write_signature(stricter, sign_bundle(read_folder(stricter), 7, load_private_key(key)))
    refusal = await refused(activate(gate.person("petra"), stricter))
    assert (refusal.reason, "signs revision 7" in refusal.message) == ("BUNDLE_UNSIGNED", True)


async def test_an_unsigned_folder_or_an_empty_key_file_does_not_start(make_gate, bundle, key, tmp_path):
    with pytest.raises(StartError, match=r"bundle: bundle\.sig is missing"):
        await make_gate("one", bundle=bundle, policy_keys=key.with_name("policy.jwk.pub"), fresh=True)
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(StartError, match="RISKGATE_POLICY_KEYS"):
        await make_gate("two", bundle=bundle, policy_keys=tmp_path / "empty", fresh=True)


async def test_a_bundle_altered_in_the_database_decides_nowhere(make_gate, bundle, stricter, refused, call):
    gate = await make_gate(**QUICK)
    await activate(gate.person("petra"), stricter)
    gate.database.write_sync(
        lambda c: c.execute(sa.text("UPDATE bundle_heads SET revision = 9, hash = 'sha256:x' WHERE slot = 'live'"))
    )
    ana = gate.person("ana")

    async def stopped() -> bool:
        try:
            await ana.evaluate(call(*READ, f"c{id(object())}"))
        except grpc.aio.AioRpcError as error:
            return error.code() == grpc.StatusCode.UNAVAILABLE
        return False

    await until(stopped)
    refusal = await refused(ana.evaluate(call(*READ, "last")))
    assert (refusal.reason, refusal.metadata) == ("BUNDLE_NOT_LOADED", {"revision": "9"})


# ---- start ----------------------------------------------------------------------------------------------------------


async def test_the_first_start_makes_the_folder_the_active_bundle_and_records_it(make_gate, bundle):
    gate = await make_gate(fresh=True)
    head = await shown(gate.person("petra"))
    assert (head.live.revision, head.live.source) == (1, policy_pb2.BUNDLE_SOURCE_FOLDER)
    record = gate.records()[0]
    assert (record["kind"], record["subject"], record["tenant"]) == ("bundle_activated", "riskgate", "")
    assert record["bundle_hash"] == load_bundle(bundle).hash


async def test_a_restart_with_an_older_folder_goes_on_with_the_activated_bundle(make_gate, bundle, stricter, call):
    gate = await make_gate()
    await activate(gate.person("petra"), stricter)
    await gate.stop()
    again = await make_gate(bundle=bundle)
    answer = await again.person("ana").evaluate(call(*READ))
    assert (answer.bundle_revision, answer.decision) == (2, types_pb2.DECISION_BLOCKED)
    assert (await shown(again.person("petra"))).live.revision == 2
    assert len(again.records("bundle_activated", "bundle_refused")) == 1


async def test_a_restart_with_a_newer_folder_activates_it(make_gate, stricter):
    gate = await make_gate()
    await gate.stop()
    newer = await make_gate(bundle=stricter)
    assert (await shown(newer.person("petra"))).live.revision == 2


@pytest.mark.parametrize("what", ["half-written", "invalid", "unsigned", "altered", "gone"])
async def test_a_restart_over_a_folder_that_is_refused_goes_on_with_the_active_bundle(
    make_gate, bundle, key, stricter, what
):
    trusted = {"policy_keys": key.with_name("policy.jwk.pub")} if what == "unsigned" else {}
    first = await make_gate(bundle=signed(bundle, key) if trusted else bundle, fresh=True, **trusted)
    await first.stop()
    faults = {
        "half-written": ("BUNDLE_INVALID", "riskgate.yaml: "),
        "invalid": ("BUNDLE_INVALID", "policies/more.cedar:2: "),
        "unsigned": ("BUNDLE_UNSIGNED", "bundle.sig is missing"),
        "altered": ("BUNDLE_ROLLBACK", "revision 1 is active with other files"),
        "gone": ("BUNDLE_INVALID", "is no folder"),
    }
    folder = bundle if what == "altered" else stricter
    if what == "half-written":
        (folder / "riskgate.yaml").unlink()
    elif what == "gone":
        shutil.rmtree(folder)
    elif what != "unsigned":
        (folder / "policies" / "more.cedar").write_text("\nforbid nonsense;\n" if what == "invalid" else NO_READS)
    again = await make_gate(bundle=folder, fresh=True, **trusted)
    assert (await again.person("ana").evaluate()).bundle_revision == 1
    reason, message = faults[what]
    record = again.records("bundle_refused")[-1]
    assert (record["reason"], record["source"], message in record["message"]) == (reason, "folder", True)
    view = await shown(again.person("petra"))
    assert (view.live.revision, view.live.hash, message in view.last_fault.message) == (
        1,
        again.records("bundle_activated")[0]["bundle_hash"],
        True,
    )


async def test_a_folder_that_broke_before_a_restart_is_taken_once_it_is_mended(make_gate, bundle, stricter):
    first = await make_gate(fresh=True)
    await first.stop()
    head = (bundle / "riskgate.yaml").read_text()
    (bundle / "riskgate.yaml").write_text("revision: [")
    again = await make_gate(fresh=True, watch_bundle=True, **QUICK)
    view = await shown(again.person("petra"))
    assert (view.live.revision, "riskgate.yaml" in view.last_fault.message) == (1, True)
    (bundle / "riskgate.yaml").write_text(head.replace("revision: 1", "revision: 2"))

    async def taken() -> bool:
        return (await shown(again.person("petra"))).live.revision != 1

    await until(taken)
    live = (await shown(again.person("petra"))).live
    assert (live.revision, live.hash) == (2, load_bundle(bundle).hash)
    assert (await again.person("ana").evaluate()).bundle_revision == 2


async def test_a_start_where_neither_folder_nor_active_bundle_can_decide_says_both(make_gate, bundle):
    first = await make_gate(fresh=True)
    first.database.write_sync(lambda c: c.execute(sa.text("UPDATE bundles SET files = x'00'")))
    await first.stop()
    (bundle / "riskgate.yaml").unlink()
    with pytest.raises(StartError, match=r"riskgate\.yaml.*nor can the active bundle be used, revision 1: .*damaged"):
        await make_gate(fresh=True)


async def test_a_caller_may_demand_a_revision(make_gate, stricter, call, refused):
    gate = await make_gate()
    ana, petra = gate.person("ana"), gate.person("petra")
    before = await ana.evaluate(call(*READ))
    demanded = {"min_bundle_revision": 2}
    refusal = await refused(ana.evaluate(call(*READ, "c2"), **demanded))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "BUNDLE_TOO_OLD")
    assert refusal.metadata == {"have": "1", "need": "2"}
    refusal = await refused(ana.redeem(before.permit, call(*READ), **demanded))
    assert refusal.reason == "BUNDLE_TOO_OLD"
    assert len(gate.records()) == 1
    await activate(petra, stricter)
    assert (await ana.evaluate(call(*READ, "c2"), **demanded)).bundle_revision == 2
    refusal = await refused(ana.evaluate(call(*READ), **demanded))
    assert (refusal.reason, refusal.metadata) == ("BUNDLE_TOO_OLD", {"have": "1", "need": "2"})
    assert (await ana.evaluate(call(*READ))).replayed
