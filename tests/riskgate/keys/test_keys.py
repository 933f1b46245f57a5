"""Keys on disk: created once, atomically, readable by their owner only."""

from __future__ import annotations

import json
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.jws import TokenError, TokenType, encode, public_jwk, sign, thumbprint, verify
from phylactery_chassis.rpc.server import StartError
from phylactery_riskgate.app import build
from phylactery_riskgate.keys.ring import KeysError, KeyState, load_keys, read_signing
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.processes.forks import Forked

DIES = """
import os, signal, sys
from pathlib import Path
from phylactery_riskgate.keys.ring import load_keys
calls = 0
real = {name: getattr(os, name) for name in ("open", "fsync", "link")}
def counted(name):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real[name](*arguments, **options)
    return call
for name in real:
    setattr(os, name, counted(name))
load_keys(Path(sys.argv[1]))
"""


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_the_first_start_makes_three_files_for_the_owner_alone_and_the_next_finds_them(tmp_path):
    folder = tmp_path / "data" / "keys"
    first = load_keys(folder)
    assert modes(folder) == {"signing.json": 0o600, "code.key": 0o600, "data.key": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    again = load_keys(folder)
    assert (again.kid, again.code_key, again.data_key) == (first.kid, first.code_key, first.data_key)
    assert len({first.code_key, first.data_key, first.signer.private_bytes_raw()}) == 3


def test_nothing_secret_shows_when_a_key_ring_is_printed(tmp_path):
    ring = load_keys(tmp_path)
    assert "code_key" not in repr(ring)
    assert "data_key=" not in repr(ring)
    assert encode(ring.data_key) not in repr(ring)


def test_many_starting_at_once_agree_on_one_set_of_keys(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        rings = list(pool.map(lambda _: load_keys(tmp_path), range(16)))
    assert len({(ring.kid, ring.code_key, ring.data_key) for ring in rings}) == 1
    assert sorted(modes(tmp_path)) == ["code.key", "data.key", "signing.json"]


def test_killed_at_any_step_of_making_keys_it_leaves_a_state_that_starts(tmp_path):
    died = 0
    for step in range(1, 40):
        folder = tmp_path / f"keys{step}"
        code = Forked("-c", [DIES, folder, step]).wait()
        if code == 0:
            break
        died += 1
        assert code == -9
        assert load_keys(folder).kid == load_keys(folder).kid
    assert died > 10


@pytest.mark.parametrize("name", ["signing.json", "code.key", "data.key"])
def test_a_key_others_may_read_is_refused_with_the_remedy(tmp_path, name):
    load_keys(tmp_path)
    (tmp_path / name).chmod(0o640)
    with pytest.raises(KeysError, match=rf"{name}.*0640.*chmod 600"):
        load_keys(tmp_path)


def test_a_folder_others_may_write_to_is_refused(tmp_path):
    load_keys(tmp_path)
    tmp_path.chmod(0o770)
    with pytest.raises(KeysError, match="chmod 700"):
        load_keys(tmp_path)


@pytest.mark.parametrize("name", ["signing.json", "code.key", "data.key"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{}", b"AAAA", b'{"keys":[]}'])
def test_a_damaged_key_file_is_named_and_never_replaced(tmp_path, name, content):
    load_keys(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(KeysError, match=name):
        load_keys(tmp_path)
    assert (tmp_path / name).read_bytes() == content


def signing_file(*entries: tuple[KeyState, Ed25519PrivateKey, bool]) -> str:
    keys = []
    for state, key, private in entries:
        jwk = public_jwk(key.public_key().public_bytes_raw())
        keys.append({"state": state, "jwk": jwk | ({"d": encode(key.private_bytes_raw())} if private else {})})
    return json.dumps({"keys": keys})


def test_retiring_keys_still_verify_and_revoked_ones_do_not(tmp_path):
    load_keys(tmp_path)
    old, gone, new = (Ed25519PrivateKey.generate() for _ in range(3))
    (tmp_path / "signing.json").write_text(
        signing_file((KeyState.REVOKED, gone, False), (KeyState.RETIRING, old, False), (KeyState.ACTIVE, new, True))
    )
    ring = load_keys(tmp_path)
    assert [key.state for key in ring.public] == [KeyState.ACTIVE, KeyState.RETIRING, KeyState.REVOKED]
    assert read_signing(tmp_path / "signing.json")[0] == ring.public
    kid = thumbprint(old.public_key().public_bytes_raw())
    assert verify(sign({"iat": 1}, TokenType.PERMIT, kid, old), TokenType.PERMIT, ring.verifying).number("iat") == 1
    kid = thumbprint(gone.public_key().public_bytes_raw())
    with pytest.raises(TokenError):
        verify(sign({"iat": 1}, TokenType.PERMIT, kid, gone), TokenType.PERMIT, ring.verifying)


def test_a_signing_file_without_exactly_one_usable_active_key_is_refused(tmp_path):
    load_keys(tmp_path)
    one, two = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    mixed = json.loads(signing_file((KeyState.ACTIVE, one, True)))
    mixed["keys"][0]["jwk"]["x"] = encode(two.public_key().public_bytes_raw())
    for text in (
        signing_file((KeyState.RETIRING, one, True)),
        signing_file((KeyState.ACTIVE, one, True), (KeyState.ACTIVE, two, True)),
        signing_file((KeyState.ACTIVE, one, False)),
        json.dumps(mixed),
    ):
        (tmp_path / "signing.json").write_text(text)
        with pytest.raises(KeysError, match=r"signing\.json"):
            load_keys(tmp_path)


async def test_a_service_with_bad_keys_bundle_or_a_foreign_database_does_not_start_and_says_why(tmp_path):
    settings = RiskGateSettings(data_dir=tmp_path / "data", port=0)
    service = await build(settings)
    for hook in service.on_stop:
        await hook()
    load_keys(tmp_path / "stranger")
    shutil.copy2(tmp_path / "stranger" / "data.key", settings.keys_dir)
    with pytest.raises(StartError, match="restore the keys folder"):
        await build(settings)
    (settings.keys_dir / "code.key").chmod(0o644)
    with pytest.raises(StartError, match="chmod 600"):
        await build(settings)
    with pytest.raises(StartError, match="does not exist"):
        await build(RiskGateSettings(data_dir=tmp_path / "other", port=0, bundle=tmp_path / "none"))


def test_a_folder_without_keys_is_not_filled_by_looking(tmp_path):
    with pytest.raises(KeysError, match="no key exists yet"):
        read_signing(tmp_path / "signing.json")
    assert list(tmp_path.iterdir()) == []
