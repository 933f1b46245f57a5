"""Signing keys under running servers: rotated, revoked, interrupted, changed concurrently."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from joserfc import jws
from joserfc.jwk import KeySet
from phylactery.riskgate.v1 import key_pb2
from phylactery_chassis.auth.jws import TokenError, TokenType
from phylactery_riskgate.audit.export import export_log, verify_export
from phylactery_riskgate.cli import app
from phylactery_riskgate.keys import rotation
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import KeysError, KeyState, load_keys, read_signing
from phylactery_riskgate.settings import RiskGateSettings
from typer.testing import CliRunner

from tests.support.processes.forks import Forked

NOW = 1_790_000_000_000_000

CHANGES = """
import sys
from pathlib import Path
from phylactery_riskgate.keys import rotation
for _ in range(int(sys.argv[2])):
    rotation.rotate(Path(sys.argv[1]), 1)
"""

DIES = """
import os, signal, sys
from pathlib import Path
from phylactery_riskgate.keys import rotation
calls = 0
def counted(real):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    return call
for name in ("open", "fsync", "close"):
    setattr(os, name, counted(getattr(os, name)))
Path.replace = counted(Path.replace)
rotation.rotate(Path(sys.argv[1]), 1)
"""


@pytest.fixture
def signing(tmp_path: Path) -> Path:
    load_keys(tmp_path / "keys")
    return tmp_path / "keys" / "signing.json"


def states(path: Path) -> dict[str, KeyState]:
    return {key.kid: key.state for key in read_signing(path)[0]}


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    return done.exit_code, done.output


def test_a_rotation_keeps_the_former_key_for_verifying_and_forgets_its_private_half(signing):
    (former,) = states(signing)
    change = rotation.rotate(signing, NOW)
    assert change.active_kid != former
    assert states(signing) == {change.active_kid: KeyState.ACTIVE, former: KeyState.RETIRING}
    entries = json.loads(signing.read_text())["keys"]
    assert [("d" in one["jwk"]) for one in entries] == [True, False]
    assert entries[0]["create_us"] == entries[1]["retire_us"] == NOW
    assert stat.S_IMODE(signing.stat().st_mode) == 0o600


def test_revoking_the_active_key_names_a_successor_in_the_same_step_and_a_revoked_key_stays_revoked(signing):
    (first,) = states(signing)
    change = rotation.revoke(signing, first, NOW)
    assert states(signing) == {change.active_kid: KeyState.ACTIVE, first: KeyState.REVOKED}
    assert rotation.revoke(signing, first, NOW + 1) == rotation.KeyChange(change.active_kid, changed=False)
    rotation.rotate(signing, NOW + 2)
    assert rotation.revoke(signing, change.active_kid, NOW + 3).changed
    assert list(states(signing).values()) == [KeyState.ACTIVE, KeyState.REVOKED, KeyState.REVOKED]
    assert {key.revoke_us for key in read_signing(signing)[0]} == {0, NOW, NOW + 3}
    with pytest.raises(KeysError, match="key nobody not found"):
        rotation.revoke(signing, "nobody", NOW)


def test_killed_at_any_step_of_a_rotation_the_file_is_the_old_one_or_the_new_one(signing):
    seen = set()
    for step in range(1, 40):
        before = states(signing)
        code = Forked("-c", [DIES, signing, step]).wait()
        after = states(signing)
        rotated = len(after) == len(before) + 1
        assert rotated or after == before
        assert list(after.values()).count(KeyState.ACTIVE) == 1
        seen.add(rotated)
        if code == 0:
            break
        assert code == -9
    assert step > 5
    assert seen == {True, False}


def test_of_rotations_at_once_none_is_lost_and_one_key_is_active(signing):
    children = [Forked("-c", [CHANGES, signing, 5]) for _ in range(4)]
    while any(child.poll() is None for child in children):
        assert list(states(signing).values()).count(KeyState.ACTIVE) == 1, "a reader never sees half a file"
    assert [child.returncode for child in children] == [0] * 4
    assert sorted(states(signing).values()) == [KeyState.ACTIVE] + [KeyState.RETIRING] * 20


def test_a_damaged_file_is_neither_rotated_nor_loaded_and_the_keys_from_before_stay(signing):
    live = LiveKeys.open(signing.parent)
    token, whole = live.sign({"iat": 1}, TokenType.PERMIT), signing.read_bytes()
    for content in (b"", b"{", whole[: len(whole) // 2], whole.replace(b"ACTIVE", b"RETIRING")):
        signing.write_bytes(content)
        with pytest.raises(KeysError, match=r"signing\.json"):
            rotation.rotate(signing, NOW)
        assert signing.read_bytes() == content
        assert str(signing) in live.problem
        assert live.verify(token, TokenType.PERMIT).number("iat") == 1
    signing.unlink()
    assert "no key exists yet" in live.problem
    assert live.verify(live.sign({"iat": 2}, TokenType.PERMIT), TokenType.PERMIT).number("iat") == 2
    signing.write_bytes(whole)
    signing.chmod(0o600)
    assert live.problem == ""


def test_a_file_that_names_a_key_twice_is_refused(signing):
    content = json.loads(signing.read_text())
    one = content["keys"][0]
    twin = {**one, "state": "REVOKED", "jwk": {name: one["jwk"][name] for name in ("kty", "crv", "x")}}
    signing.write_text(json.dumps({"keys": [one, twin]}))
    with pytest.raises(KeysError, match="is listed twice"):
        read_signing(signing)


async def test_a_server_follows_a_rotation_and_what_the_former_key_signed_still_counts(gate, ana, call):
    first = await ana.list_keys()
    allowed = await ana.permitted()
    change = rotation.rotate(gate.settings.signing_file, NOW)
    second = await ana.list_keys()
    assert [key.kid for key in second.keys] == [change.active_kid, first.keys[0].kid]
    assert second.keys[1].state == key_pb2.KEY_STATE_RETIRING
    assert second.keys[1].retire_time.ToMicroseconds() == second.keys[0].create_time.ToMicroseconds() == NOW
    assert second.etag != first.etag
    redeemed = await ana.redeem(allowed.permit)
    public = KeySet.import_key_set({"keys": [json.loads(key.jwk) for key in second.keys]})
    receipt = jws.deserialize_compact(redeemed.receipt, public, algorithms=["Ed25519"])
    assert receipt.headers()["kid"] == change.active_kid
    again = await ana.redeem(allowed.permit)
    assert (again.receipt, again.repeated_redeem) == (redeemed.receipt, True)


async def test_what_a_revoked_key_signed_is_refused_at_once(gate, ana, refused):
    allowed = await ana.permitted()
    kid = (await ana.list_keys()).keys[0].kid
    rotation.revoke(gate.settings.signing_file, kid, NOW)
    refusal = await refused(ana.redeem(allowed.permit))
    assert (refusal.reason, refusal.metadata["factor"]) == ("PERMIT_INVALID", "signature")
    listed = await ana.list_keys()
    assert [key.state for key in listed.keys] == [key_pb2.KEY_STATE_ACTIVE, key_pb2.KEY_STATE_REVOKED]
    assert listed.keys[1].revoke_time.ToMicroseconds() == NOW
    fresh = await ana.evaluate(approval=gate.records("approval_answered")[0]["approval_id"])
    assert (await ana.redeem(fresh.permit)).receipt


def test_replicas_share_the_folder_and_believe_each_other_from_the_first_permit_on(signing):
    one, two = LiveKeys.open(signing.parent), LiveKeys.open(signing.parent)
    for _ in range(3):
        signs = rotation.rotate(signing, NOW).active_kid
        one.look()
        token = one.sign({"iat": 1}, TokenType.PERMIT)  # two has not looked since the rotation
        assert one.ring.kid == signs
        assert two.verify(token, TokenType.PERMIT).number("iat") == 1


async def test_whoever_names_the_etag_gets_the_keys_only_when_they_changed(gate, ana, refused):
    first = await ana.list_keys()
    assert first.max_age.seconds == 60
    same = await ana.keys.ListKeys(key_pb2.ListKeysRequest(etag=first.etag), metadata=ana.metadata)
    assert (same.not_modified, list(same.keys), same.etag, same.issuer) == (True, [], first.etag, "riskgate")
    rotation.rotate(gate.settings.signing_file, NOW)
    other = await ana.keys.ListKeys(key_pb2.ListKeysRequest(etag=first.etag), metadata=ana.metadata)
    assert (other.not_modified, len(other.keys)) == (False, 2)
    refusal = await refused(ana.keys.ListKeys(key_pb2.ListKeysRequest(etag="x" * 65), metadata=ana.metadata))
    assert refusal.fields == ["etag"]


async def test_a_damaged_file_is_told_by_list_keys_without_a_path_and_ends_nothing(gate, ana):
    before = await ana.list_keys()
    content = gate.settings.signing_file.read_bytes()
    gate.settings.signing_file.write_text("{")
    listed = await ana.list_keys()
    assert (listed.stale, [key.kid for key in listed.keys]) == (True, [key.kid for key in before.keys])
    assert str(gate.folder) not in str(listed)
    assert (await ana.redeem((await ana.permitted()).permit)).receipt
    gate.settings.signing_file.write_bytes(content)
    assert not (await ana.list_keys()).stale


@pytest.mark.slow
def test_the_commands_make_rotate_revoke_list_and_export(tmp_path):
    data = ("--data-dir", tmp_path / "data")
    code, said = run("keys", "rotate", *data)
    assert (code, "riskgate keys create" in said) == (2, True)
    made = json.loads(run("keys", "create", *data, "--json")[1])
    assert (made["changed"], Path(made["file"])) == (True, tmp_path / "data" / "keys" / "signing.json")
    assert json.loads(run("keys", "create", *data, "--json")[1]) == {**made, "changed": False}
    assert load_keys(tmp_path / "data" / "keys").kid == made["active"]
    rotated = json.loads(run("keys", "rotate", *data, "--json")[1])
    listed = json.loads(run("keys", "list", *data, "--json")[1])["keys"]
    assert [(one["kid"], one["state"]) for one in listed] == [
        (rotated["active"], "ACTIVE"),
        (made["active"], "RETIRING"),
    ]
    assert listed[1]["retire_time"] == listed[0]["create_time"] != ""
    head, _, former = run("keys", "list", *data)[1].splitlines()
    assert head.split() == ["kid", "state", "in", "it", "since", "vkey"]
    for name, wanted in (("kid", "kid"), ("state", "state"), ("in it since", "retire_time"), ("vkey", "vkey")):
        assert former[head.index(name) :].startswith(listed[1][wanted]), name
    assert run("keys", "revoke", made["active"], *data)[0] == 0
    code, said = run("keys", "revoke", "unknown", *data)
    assert (code, "riskgate keys list" in said) == (2, True)
    exported = json.loads(run("keys", "export", *data)[1])["keys"]
    assert [one["kid"] for one in exported] == [rotated["active"]]
    both = json.loads(run("keys", "export", "--all", *data)[1])["keys"]
    assert [("revoked" in one) for one in both] == [False, True]
    text = (tmp_path / "data" / "keys" / "signing.json").read_text()
    private = json.loads(text)["keys"][0]["jwk"]["d"]
    assert all(private not in run("keys", *words, *data)[1] for words in (["list"], ["export", "--all"], ["create"]))


def test_a_set_that_is_exported_verifies_with_any_jose_library_and_imports_no_private_key(tmp_path):
    load_keys(tmp_path / "data" / "keys")
    exported = KeySet.import_key_set(json.loads(run("keys", "export", "--data-dir", tmp_path / "data")[1]))
    assert not any(key.is_private for key in exported.keys)
    token = LiveKeys.open(tmp_path / "data" / "keys").sign({"iat": 7}, TokenType.RECEIPT)
    assert json.loads(jws.deserialize_compact(token, exported, algorithms=["Ed25519"]).payload) == {"iat": 7}


def test_keys_come_from_the_folder_and_the_file_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.setenv("RISKGATE_DATA_DIR", str(tmp_path / "data"))
    assert RiskGateSettings().signing_file == tmp_path / "data" / "keys" / "signing.json"
    monkeypatch.setenv("RISKGATE_KEYS_DIR", str(tmp_path / "shared"))
    assert RiskGateSettings().signing_file == tmp_path / "shared" / "signing.json"
    monkeypatch.setenv("RISKGATE_SIGNING_KEY_FILE", str(tmp_path / "mounted" / "keys.json"))
    assert RiskGateSettings().signing_file == tmp_path / "mounted" / "keys.json"
    with pytest.raises(KeysError, match=r"keys\.json"):
        LiveKeys.open(tmp_path / "shared", tmp_path / "mounted" / "keys.json")
    assert run("keys", "create")[0] == 0
    mounted = tmp_path / "mounted" / "keys.json"
    mounted.chmod(0o444)  # as a mounted secret is
    live = LiveKeys.open(tmp_path / "shared", mounted)
    assert live.verify(live.sign({"iat": 1}, TokenType.PERMIT), TokenType.PERMIT).number("iat") == 1
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["code.key", "data.key"]
    mounted.chmod(0o666)
    with pytest.raises(KeysError, match=r"chmod go-w .* where it is mounted from"):
        LiveKeys.open(tmp_path / "shared", mounted)


def test_a_token_of_a_key_nobody_has_is_refused_and_makes_nobody_look_twice_at_an_unchanged_file(signing, monkeypatch):
    live = LiveKeys.open(signing.parent)
    stranger = LiveKeys.open(signing.parent.parent / "stranger")
    loads: list[Path] = []
    monkeypatch.setattr("phylactery_riskgate.keys.live.read_signing", lambda path, **_: loads.append(path))
    for _ in range(3):
        with pytest.raises(TokenError):
            live.verify(stranger.sign({"iat": 1}, TokenType.PERMIT), TokenType.PERMIT)
    assert loads == []


async def test_an_export_verifies_with_todays_key_alone_whoever_signed_before(gate, ana, tmp_path):
    old, out = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    await ana.evaluate()
    await gate.riskgate.housekeeping.sign_head()
    ring = gate.riskgate.keys.ring
    before = ring.public[0]
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", old, keys=ring.public, signer=ring.signer, heads=gate.heads)
    )
    rotation.rotate(gate.settings.signing_file, NOW)
    ring = gate.riskgate.keys.ring
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=ring.public, signer=ring.signer, heads=gate.heads)
    )
    assert verify_export(out, [ring.public[0]]).ok, "no entry came since, and yet the new key signed the head"
    assert verify_export(out, list(ring.public)).ok
    assert verify_export(out).ok
    assert verify_export(old, [before]).ok, "an export from before the rotation"


@pytest.mark.slow
async def test_heads_of_a_revoked_key_prove_nothing_and_the_check_says_so(gate, ana, tmp_path):
    old, out = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    await ana.evaluate()
    ring = gate.riskgate.keys.ring
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", old, keys=ring.public, signer=ring.signer, heads=gate.heads)
    )
    rotation.revoke(gate.settings.signing_file, ring.kid, NOW)
    ring = gate.riskgate.keys.ring
    jwk_set = tmp_path / "keys.json"
    jwk_set.write_text(run("keys", "export", "--all", "--data-dir", gate.folder)[1])
    code, said = run("audit", "verify", old, "--key", jwk_set)
    assert (code, "revoked" in said, "export the log again" in said) == (1, True, True)
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=ring.public, signer=ring.signer, heads=gate.heads)
    )
    assert verify_export(out).ok
    code, said = run("audit", "verify", out, "--key", jwk_set)
    assert code == 0, said
