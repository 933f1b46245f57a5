"""Bundle activation: accepted, refused, followed by replicas, required by callers, found after a restart."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
import yaml
from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_chassis.errors import StartError
from phylactery_riskgate.bundles.signing import create_key, load_private_key, sign_bundle, write_signature
from phylactery_riskgate.domain.bundle.bundle import load_bundle
from phylactery_riskgate.domain.bundle.files import SIGNATURE_FILE, read_folder
from phylactery_riskgate.store import bundles as rows
from structlog.testing import capture_logs

from tests.support.processes.commands import run_riskgate

READ = ("read_file", '{"path":"a.txt"}')
NO_READS = '@id("no-reads") @title("Nobody reads") forbid (principal, action in Action::"effect:read", resource);\n'
QUICK = {"bundle_poll_seconds": 0.05}


def parts(folder: Path) -> list[policy_pb2.BundleFile]:
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    return [policy_pb2.BundleFile(name=one.relative_to(folder).as_posix(), content=one.read_bytes()) for one in names]


def write_case(folder: Path, decision: str) -> Path:
    """Give a bundle one case, about reading a file."""
    case = {"name": "reads", "tool": "read_file", "arguments": {"path": "a.txt"}, "expect": {"decision": decision}}
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "reads.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    return folder


def signed(folder: Path, key: Path) -> Path:
    files = read_folder(folder)
    write_signature(folder, sign_bundle(files, load_bundle(folder).revision, load_private_key(key)))
    return folder


async def activate(person, folder: Path, *, shadow: bool = False) -> policy_pb2.ActivateBundleResponse:
    request = policy_pb2.ActivateBundleRequest(files=parts(folder), shadow=shadow)
    return await person.policies.ActivateBundle(request, metadata=person.metadata, timeout=60)


async def roll_back(person, bundle_hash: str = "") -> policy_pb2.RollbackBundleResponse:
    request = policy_pb2.RollbackBundleRequest(hash=bundle_hash)
    return await person.policies.RollbackBundle(request, metadata=person.metadata, timeout=60)


async def history(person) -> list[policy_pb2.Activation]:
    request = policy_pb2.ListActivationsRequest()
    return list((await person.policies.ListActivations(request, metadata=person.metadata, timeout=60)).activations)


async def shown(person, **options) -> policy_pb2.GetBundleResponse:
    request = policy_pb2.GetBundleRequest(**options)
    return await person.policies.GetBundle(request, metadata=person.metadata, timeout=60)


async def until(check) -> None:
    """Wait until an awaited check says yes; the test's own time limit is the bound."""
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


@pytest.mark.parametrize("name", ["pablo", "zeno", "olga", "aldo"])
async def test_no_role_within_a_tenant_activates_for_everybody(gate, refused, stricter, name):
    person = gate.person(name)
    for attempt in (
        activate(person, stricter),
        activate(person, stricter, shadow=True),
        person.policies.ActivateBundle(
            policy_pb2.ActivateBundleRequest(shadow=True), metadata=person.metadata, timeout=60
        ),
        roll_back(person),
    ):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.metadata) == (
            grpc.StatusCode.PERMISSION_DENIED,
            {"role": "installation_operator"},
        )
    assert gate.records() == []


@pytest.mark.parametrize("name", ["ana", "dora", "agent"])
async def test_only_those_who_keep_or_read_policies_touch_the_bundle(gate, refused, stricter, name):
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


# ---- revisions, cases, and going back ----------------------------------------------------------------------------


@pytest.mark.parametrize(("revision", "allowed"), [(1_000_000_001, True), (1_000_000_002, False), (2**53 - 1, False)])
async def test_a_revision_too_far_ahead_is_refused_so_that_no_policy_is_the_last(
    gate, bundle_with, refused, revision, allowed
):
    ines = gate.person("ines")
    attempt = activate(ines, bundle_with(policies=NO_READS, revision=revision))
    if allowed:
        assert (await attempt).bundle.revision == revision
        return
    refusal = await refused(attempt)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "BUNDLE_REVISION_TOO_HIGH")
    assert refusal.metadata == {"active": "1", "highest": "1000000001"}
    assert gate.records("bundle_refused")[0]["reason"] == "BUNDLE_REVISION_TOO_HIGH"


async def test_a_revision_that_froze_policy_before_is_left_by_a_rollback(make_gate, bundle_with, stricter, call):
    frozen = bundle_with(revision=2**53 - 1)
    gate = await make_gate(bundle=frozen)
    ines = gate.person("ines")
    files = read_folder(stricter)
    gate.database.write_sync(lambda c: rows.keep_bundle(c, files.hash, 2, dict(files.texts), 1))
    assert (await roll_back(ines, files.hash)).bundle.revision == 2
    assert (await activate(ines, bundle_with(revision=3))).bundle.revision == 3
    assert (await gate.person("ana").evaluate(call(*READ))).bundle_revision == 3


async def test_a_bundle_whose_own_cases_fail_is_refused_unless_that_is_said_and_recorded(gate, stricter, refused):
    ines = gate.person("ines")
    write_case(stricter, "ALLOW")
    for shadow in (False, True):
        refusal = await refused(activate(ines, stricter, shadow=shadow))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "BUNDLE_CASES_FAILED")
        assert refusal.metadata == {"failed": "1"}
        assert "'reads'" in refusal.message
    assert [one["reason"] for one in gate.records("bundle_refused")] == ["BUNDLE_CASES_FAILED"] * 2
    request = policy_pb2.ActivateBundleRequest(files=parts(stricter), skip_cases=True)
    done = await ines.policies.ActivateBundle(request, metadata=ines.metadata, timeout=60)
    assert done.bundle.revision == 2
    assert gate.records("bundle_activated")[-1]["cases_skipped"] is True


@pytest.mark.slow
async def test_a_rollback_lets_the_bundle_from_before_decide_again_here_and_elsewhere(make_gate, bundle_with, call):
    gate = await make_gate("kept", **QUICK)
    other = await make_gate("kept", instance="other", **QUICK)
    ines, ana = gate.person("ines"), other.person("ana")
    await activate(ines, bundle_with(policies=NO_READS, revision=2))
    await activate(ines, bundle_with(revision=3))
    assert (await ana.evaluate(call(*READ), min_bundle_revision=3)).decision == types_pb2.DECISION_ALLOW
    done = await roll_back(ines)
    assert (done.bundle.revision, done.bundle.source) == (2, policy_pb2.BUNDLE_SOURCE_ROLLBACK)
    assert (await gate.person("ana").evaluate(call(*READ, "c2"))).decision == types_pb2.DECISION_BLOCKED

    async def followed() -> bool:
        return (await shown(other.person("ines"))).live.revision == 2

    await until(followed)
    assert (await ana.evaluate(call(*READ, "c3"))).bundle_revision == 2
    assert (await roll_back(ines)).bundle.revision == 1
    assert gate.records("policies_changed")[-1]["activated_by"] == {"subject": "ines", "tenant": "ops"}


@pytest.mark.slow
async def test_what_was_rolled_back_comes_back_by_a_rollback_alone(gate, bundle_with, stricter, refused):
    ines = gate.person("ines")
    await activate(ines, stricter)
    await roll_back(ines)
    for folder in (stricter, bundle_with(revision=2)):
        refusal = await refused(activate(ines, folder))
        assert (refusal.reason, "was active here before" in refusal.message) == ("BUNDLE_ROLLBACK", True)
    forward = await roll_back(ines, load_bundle(stricter).hash)
    assert (forward.bundle.revision, forward.already_active) == (2, False)
    assert (await roll_back(ines, load_bundle(stricter).hash)).already_active
    refusal = await refused(roll_back(ines, "sha256:" + "0" * 64))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "BUNDLE_NOT_FOUND")


async def test_a_rollback_to_a_bundle_no_trusted_key_signed_is_refused(make_gate, bundle, key, stricter, refused):
    gate = await make_gate("kept", fresh=True)
    await activate(gate.person("ines"), signed(stricter, key))
    await gate.stop()
    again = await make_gate("kept", bundle=stricter, policy_keys=key.with_name("policy.jwk.pub"))
    assert (await refused(roll_back(again.person("ines")))).reason == "BUNDLE_UNSIGNED"
    assert (await shown(again.person("ines"))).live.revision == 2


@pytest.mark.slow
async def test_the_commands_roll_back_and_forward(gate, stricter, remote):
    await activate(gate.person("ines"), stricter)
    forward = load_bundle(stricter).hash
    result = await remote("ines", "policy", "rollback")
    assert (result.exit_code, "revision 1 is live again" in result.stdout) == (0, True)
    assert (await remote("pablo", "policy", "rollback", "--to", forward)).exit_code == 1
    result = await remote("ines", "policy", "rollback", "--to", forward, "--json")
    assert (json.loads(result.stdout)["revision"], json.loads(result.stdout)["source"]) == (2, "rollback")


async def test_the_history_tells_when_which_bundle_became_active_and_by_whom(gate, stricter, remote, refused):
    ines = gate.person("ines")
    gate.clock.advance(3_600)
    await activate(ines, stricter)
    await activate(ines, stricter, shadow=True)
    gate.clock.advance(60)
    await roll_back(ines)
    found = await history(gate.person("aldo"))
    assert [(one.bundle.revision, one.shadow, one.bundle.activated_by, one.activated_by_tenant) for one in found] == [
        (1, False, "ines", "ops"),
        (2, False, "ines", "ops"),
        (2, True, "ines", "ops"),
        (1, False, "riskgate", ""),
    ]
    assert (await refused(history(gate.person("ana")))).reason == "ROLE_REQUIRED"
    text = (await remote("pablo", "policy", "history")).stdout
    assert "from rollback, by ines of ops" in text
    assert found[0].bundle.activate_time.ToJsonString() in text


async def test_a_tenant_sees_the_bundle_without_the_people_of_others(gate, bundle_with):
    people = [
        {"id": "ana", "tenant": "acme", "groups": ["payments"]},
        {"id": "zoe", "tenant": "zeta", "groups": ["secret-project"]},
    ]
    folder = bundle_with(revision=2)
    (folder / "entities.json").write_text(json.dumps({"groups": ["payments", "secret-project"], "users": people}))
    write_case(folder, "ALLOW")
    (folder / "tests" / "zeta.yaml").write_text(
        "cases:\n- {name: zeta, tool: read_file, arguments: {path: a}, user: {id: zoe, tenant: zeta},"
        " expect: {decision: ALLOW}}\n"
    )
    await activate(gate.person("ines"), folder)
    whole = await shown(gate.person("ines"), with_files=True)
    assert {one.name: one.content for one in whole.files} == {one.name: one.content for one in parts(folder)}
    seen = await shown(gate.person("pablo"), with_files=True, hash=whole.live.hash)
    files = {one.name: one.content.decode() for one in seen.files}
    assert not re.search(r"\bzoe\b", str(files))
    assert "secret-project" not in str(files)
    assert json.loads(files["entities.json"]) == {"groups": ["payments"], "users": people[:1]}
    assert list(seen.withheld) == ["entities.json", "tests/zeta.yaml"]
    assert set(files) == {one.name for one in whole.files} - {"tests/zeta.yaml"}
    (folder / "entities.json").write_text(json.dumps({"groups": [], "users": people[1:]}))
    with pytest.raises(grpc.aio.AioRpcError, match="secret-project"):
        await activate(gate.person("ines"), folder)
    fault = (await shown(gate.person("pablo"))).last_fault.message
    assert fault == "entities.json:1: is not valid; the log of the service says why"


# ---- signatures -----------------------------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path: Path) -> Path:
    create_key(tmp_path / "policy.jwk")
    return tmp_path / "policy.jwk"


@pytest.mark.slow
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
    faults += ["not a signed note"]
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
    again = await make_gate(bundle=bundle, bundle_or_active=True)
    answer = await again.person("ana").evaluate(call(*READ))
    assert (answer.bundle_revision, answer.decision) == (2, types_pb2.DECISION_BLOCKED)
    assert (await shown(again.person("petra"))).live.revision == 2
    assert len(again.records("bundle_activated", "bundle_refused")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("what", ["older", "gone", "altered", "rolled back", "failing"])
async def test_a_bundle_that_is_named_is_served_or_nothing_is(make_gate, bundle, stricter, what):
    gate = await make_gate("kept")
    named = {"older": bundle, "altered": stricter, "rolled back": stricter}.get(what, stricter)
    if what in {"older", "altered", "rolled back"}:
        await activate(gate.person("petra"), stricter)
    if what == "rolled back":
        await roll_back(gate.person("petra"))
    await gate.stop()
    if what == "gone":
        shutil.rmtree(stricter)
    elif what == "altered":
        (stricter / "policies" / "again.cedar").write_text(NO_READS.replace("no-reads", "again"))
    elif what == "failing":
        write_case(stricter, "ALLOW")
    told = {
        "older": "revision 2 is active, and 1 is older",
        "gone": "does not exist",
        "altered": "revision 2 is active with other files",
        "rolled back": "revision 2 was active here before",
        "failing": "cases of the bundle's own fail",
    }
    active = 2 if what in {"older", "altered"} else 1
    with pytest.raises(StartError, match=told[what]) as caught:
        await make_gate("kept", bundle=named, fresh=True)
    assert str(named) in str(caught.value)
    assert f"revision {active} is active" in str(caught.value)
    again = await make_gate("kept", bundle=named, bundle_or_active=True, fresh=True)
    assert (await shown(again.person("petra"))).live.revision == active
    assert (await again.person("ana").evaluate()).bundle_revision == active


@pytest.mark.parametrize("way", ["option", "variable"])
async def test_the_command_serve_ends_where_the_bundle_that_is_named_is_not_there(make_gate, tmp_path, way):
    gate = await make_gate("kept", fresh=True)
    await gate.stop()
    nowhere = str(tmp_path / "nowhere")
    named = ("--bundle", nowhere) if way == "option" else ()
    environment = os.environ | ({} if named else {"RISKGATE_BUNDLE": nowhere})
    words = ("serve", *named, "--data-dir", str(tmp_path / "kept"), "--port", "0")
    done = await asyncio.to_thread(run_riskgate, *words, environment=environment)
    assert done.returncode == 2
    assert f"riskgate: {nowhere}: does not exist; so the named bundle is not served" in done.stderr
    assert f"In {tmp_path / 'kept'} revision 1 is active, by riskgate" in done.stderr
    assert ("to serve another, name its folder" in done.stderr, "mend it" in done.stderr) == (True, False)


@pytest.mark.parametrize("what", ["missing", "a file", "empty", "broken", "unsigned"])
async def test_a_first_start_names_once_what_is_wrong_with_the_bundle_and_what_to_do_about_it(
    make_gate, bundle, key, tmp_path, what
):
    (tmp_path / "a file").write_text("no bundle")
    (tmp_path / "empty").mkdir()
    folder = bundle if what in {"broken", "unsigned"} else tmp_path / what
    if what == "broken":
        (bundle / "policies" / "again.cedar").write_text("permit")
    trusted = {"policy_keys": key.with_name("policy.jwk.pub")} if what == "unsigned" else {}
    with pytest.raises(StartError) as caught:
        await make_gate(bundle=folder, fresh=True, **trusted)
    said = str(caught.value)
    name_one = "name the folder of a bundle in --bundle or RISKGATE_BUNDLE"
    mend = "; mend the bundle, or name another in --bundle or RISKGATE_BUNDLE"
    told = {
        "missing": f": does not exist; {name_one}",
        "a file": f": is a file, and a bundle is a folder; {name_one}",
        "empty": mend,
        "broken": mend,
        "unsigned": "; sign the bundle, or name another in --bundle or RISKGATE_BUNDLE",
    }
    assert said.startswith(f"{folder}: ")
    assert said.endswith(told[what])
    assert said.count(str(folder)) == 1


async def test_a_start_says_which_bundle_revision_data_and_signature_rule_hold(make_gate, bundle, key):
    with capture_logs() as logs:
        await make_gate("one")
        await make_gate("two", bundle=signed(bundle, key), policy_keys=key.with_name("policy.jwk.pub"), fresh=True)
    one, two = (entry for entry in logs if entry["event"] == "the bundle in force")
    assert (one["revision"], one["folder"], one["named"]) == (1, str(bundle), True)
    assert one["hash"] == load_bundle(bundle).hash
    assert (one["data"].endswith("/one"), one["signatures"]) == (True, "none is asked for")
    assert "must have signed it" in two["signatures"]


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
        "gone": ("BUNDLE_INVALID", "does not exist"),
    }
    folder = bundle if what == "altered" else stricter
    if what == "half-written":
        (folder / "riskgate.yaml").unlink()
    elif what == "gone":
        shutil.rmtree(folder)
    elif what != "unsigned":
        (folder / "policies" / "more.cedar").write_text("\nforbid nonsense;\n" if what == "invalid" else NO_READS)
    again = await make_gate(bundle=folder, fresh=True, bundle_or_active=True, **trusted)
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
    again = await make_gate(fresh=True, watch_bundle=True, bundle_or_active=True, **QUICK)
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
        await make_gate(fresh=True, bundle_or_active=True)


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
