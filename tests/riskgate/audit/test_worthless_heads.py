"""`audit verify` with heads that prove nothing says so, and what was adopted unchecked is printed."""

from __future__ import annotations

import json
import shutil
import sqlite3

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


async def test_a_database_whose_kept_heads_were_removed_is_not_verified_without_one(exported, tmp_path):
    gate, _, _, head = exported
    shutil.rmtree(gate.settings.heads_dir)
    for again in (False, True):
        found = command("verify", "--data-dir", gate.folder)
        assert (found.exit_code, "are gone" in found.output) == (1, True), (again, found.output)
        gate.settings.heads_dir.mkdir(exist_ok=True)  # an empty folder in its place says no more
    kept = tmp_path / "kept.txt"
    kept.write_text(head.note)
    assert "consistent with the given head" in command("verify", "--data-dir", gate.folder, "--checkpoint", kept).output


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


@pytest.fixture
async def several(make_gate, call):
    """Return a stopped gate with two logs, its own and that of `riskgate keys`."""
    gate = await make_gate(checkpoint_every=2)
    for number in range(4):
        await gate.person("ana").evaluate(call(*READ, f"c{number}"))
    await gate.stop()
    assert CliRunner().invoke(app, ["keys", "rotate", "--data-dir", str(gate.folder)]).exit_code == 0
    return gate


def unsigned(gate, log: str) -> None:
    """Remove every signed head of a log."""
    gate.heads.path(log).unlink()
    with sqlite3.connect(gate.folder / "riskgate.db") as database:
        database.execute("DELETE FROM audit_checkpoints WHERE log = ?", (log,))
    database.close()


@pytest.mark.parametrize(("bad", "good"), [("riskgate", "riskgate/keys"), ("riskgate/keys", "riskgate")])
async def test_every_log_is_verified_though_one_of_them_has_no_heads(several, bad, good):
    assert command("verify", "--data-dir", several.folder).exit_code == 0
    unsigned(several, bad)
    found = command("verify", "--data-dir", several.folder)
    assert found.exit_code == 1, found.output
    assert f"NOT VERIFIED: log '{bad}': no signed head of the log '{bad}' is stored" in found.output
    assert f"entries of log '{good}', complete and unaltered" in found.output
    told = json.loads(command("verify", "--data-dir", several.folder, "--json").stdout)
    assert (told["ok"], {one["log"]: bool(one["problem"]) for one in told["logs"]}) == (False, {bad: True, good: False})


async def test_every_log_is_verified_though_none_has_heads_or_a_file_of_them_is_damaged(several):
    several.heads.path("riskgate").write_text("not a head\n")
    found = command("verify", "--data-dir", several.folder)
    assert (found.exit_code, found.output.count("NOT VERIFIED: log 'riskgate': ")) == (1, 1), found.output
    assert "entries of log 'riskgate/keys', complete and unaltered" in found.output
    for log in ("riskgate", "riskgate/keys"):
        unsigned(several, log)
    found = command("verify", "--data-dir", several.folder)
    assert (found.exit_code, found.output.count("NOT VERIFIED: log ")) == (1, 2), found.output


async def test_every_log_of_a_file_is_reported(several, tmp_path):
    out, keys = tmp_path / "log.jsonl", tmp_path / "keys.json"
    assert command("export", "--out", out, "--data-dir", several.folder).exit_code == 0
    shown = CliRunner().invoke(app, ["keys", "export", "--data-dir", str(several.folder)])
    keys.write_text(shown.stdout)
    out.write_text(out.read_text().replace('"ALLOW"', '"BLOCKED"', 1))
    found = command("verify", out, "--key", keys)
    assert found.exit_code == 1
    assert "NOT VERIFIED: log 'riskgate': " in found.output
    assert "entries of log 'riskgate/keys', complete and unaltered" in found.output
    assert "riskgate/keys" not in command("verify", out).output, "by the key in the file itself nothing is verified"
