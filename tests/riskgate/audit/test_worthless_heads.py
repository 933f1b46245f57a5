"""`audit verify` with heads that prove nothing says so, and what was adopted unchecked is printed."""

from __future__ import annotations

import json
import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_riskgate.audit.checkpoint import Checkpoint, Verifier, sign_note
from phylactery_riskgate.cli import app
from typer.testing import CliRunner

READ = ("read_file", '{"path":"a.txt"}')
WITNESS = "riskgate\n999\nAAAA\n\n— w.example AQIDBAAA\n"


def command(*arguments: object):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.fixture
async def exported(make_gate, call, tmp_path):
    """Return a stopped gate, its export, its trusted key, and a head that its key signed."""
    gate = await make_gate(checkpoint_every=2)
    for number in range(4):
        await gate.person("ana").evaluate(call(*READ, f"c{number}"))
    key = Verifier("riskgate", gate.keys.public[0].raw).text
    await gate.stop()
    out = tmp_path / "log.jsonl"
    assert command("export", "--out", out, "--data-dir", gate.folder).exit_code == 0
    return gate, out, key, gate.heads.last("riskgate")


def strangers(head) -> dict[str, str]:
    """Return heads that no key of this RiskGate signed, by what they are."""
    stranger = Ed25519PrivateKey.generate()
    right = Checkpoint("riskgate", head.size, head.root).text
    return {
        "of the issue": WITNESS,
        "a witness alone": f"{right}\n— w.example AQIDBAAA\n",
        "a stranger's, of the right tree": sign_note(right, "riskgate", stranger),
        "a stranger's, of another tree": sign_note(Checkpoint("riskgate", 3, b"r" * 32).text, "riskgate", stranger),
        "unsigned": f"{right}\n",
        "cut": head.note[: len(head.note) // 2],
        "of another log": sign_note(Checkpoint("other", 1, b"r" * 32).text, "other", stranger),
        "nothing": "",
    }


async def test_a_head_that_no_trusted_key_signed_verifies_nothing(exported, tmp_path):
    gate, out, key, head = exported
    kept = tmp_path / "kept.txt"
    for what, note in strangers(head).items():
        kept.write_text(note)
        for where in ([out, "--key", key], ["--data-dir", gate.folder], ["--data-dir", gate.folder, "--key", key]):
            found = command("verify", *where, "--checkpoint", kept)
            assert (found.exit_code, "NOT VERIFIED: " in found.output) == (1, True), (what, found.output)
            told = json.loads(command("verify", *where, "--checkpoint", kept, "--json").stdout)
            assert told["ok"] is False, what
    kept.write_text(WITNESS)
    assert "proves nothing" in command("verify", out, "--key", key, "--checkpoint", kept).output
    kept.write_text(head.note)
    for where in ([out, "--key", key], ["--data-dir", gate.folder]):
        assert "consistent with the given head" in command("verify", *where, "--checkpoint", kept).output


async def test_one_good_head_does_not_vouch_for_a_worthless_one(exported, tmp_path):
    _, out, key, head = exported
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text(head.note)
    bad.write_text(WITNESS)
    assert command("verify", out, "--key", key, "--checkpoint", good, "--checkpoint", bad).exit_code == 1


async def test_a_file_of_heads_without_a_signed_one_verifies_nothing(exported, tmp_path):
    _, out, key, _ = exported
    kept = tmp_path / "riskgate.heads"
    kept.write_text(
        json.dumps({"size": 2, "root": "00" * 32, "time_us": 1, "note": "", "adopted": "first start"}) + "\n"
    )
    found = command("verify", out, "--key", key, "--checkpoint", kept)
    assert (found.exit_code, "proves nothing" in found.output) == (1, True), found.output


async def test_a_replaced_data_folder_is_not_verified_by_the_head_of_the_old_one(make_gate, exported, call, tmp_path):
    *_, head = exported
    kept = tmp_path / "kept.txt"
    kept.write_text(head.note)
    other = await make_gate("replaced")
    await other.person("ana").evaluate(call(*READ))
    await other.stop()
    found = command("verify", "--data-dir", other.folder, "--checkpoint", kept)
    assert (found.exit_code, "proves nothing" in found.output) == (1, True), found.output


async def test_an_adoption_is_printed_by_every_later_verification(make_gate, call, tmp_path):
    gate = await make_gate()
    await gate.person("ana").evaluate(call(*READ))
    await gate.stop()
    shutil.copy(gate.folder / "riskgate.db", tmp_path / "backup.db")
    gate = await make_gate()
    await gate.person("ana").evaluate(call(*READ, "c2"))
    key = Verifier("riskgate", gate.keys.public[0].raw).text
    await gate.stop()
    folder, out = ("--data-dir", gate.folder), tmp_path / "log.jsonl"
    assert "ADOPTED" not in command("verify", *folder).output
    shutil.copy(tmp_path / "backup.db", gate.folder / "riskgate.db")
    assert command("adopt", "--reason", "disk died", *folder).exit_code == 0
    assert command("export", "--out", out, *folder).exit_code == 0
    for where in (folder, (out, "--key", key)):
        told = command("verify", *where)
        assert told.exit_code == 0, told.output
        assert "ADOPTED: the first 1 entries of log 'riskgate' were adopted unchecked at " in told.output
        assert "complete and unaltered since the adoption" in told.output
        logs = json.loads(command("verify", *where, "--json").stdout)["logs"]
        assert [(one["log"], one["entries"]) for log in logs for one in log["adopted"]] == [("riskgate", 1)]
