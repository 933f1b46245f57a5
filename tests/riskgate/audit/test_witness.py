"""A witness on another machine cosigns only heads that grow, whatever keys and files a forger has."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from phylactery_riskgate.audit.checkpoint import Cosigner, NoteError, Verifier, open_note
from phylactery_riskgate.cli.audit import witness as audit_witness

from tests.riskgate.audit.test_kept_heads import LOG, command, fill, in_file, rewrite
from tests.support.riskgate.witness import WitnessServer, serving


@pytest.fixture
def witness(gate):
    with serving(WitnessServer("witness.example/w1", [gate.keys.public[0].raw])) as one:
        yield one


@pytest.fixture
def seen(tmp_path) -> Path:
    """Where the cosigned head of the log is kept."""
    return tmp_path / "seen" / "riskgate.note"


@pytest.fixture
def ask(remote, witness, seen):
    """Run the command as the auditor; the answers are its exit code and what it said."""

    async def run(*words: object) -> tuple[int, str]:
        options = ("--url", witness.url, "--witness-key", witness.key.text, "--out", seen.parent)
        done = await remote("aldo", "audit", "witness", *options, *words)
        return done.exit_code, done.output

    return run


@pytest.mark.slow
async def test_heads_are_cosigned_as_they_grow_and_a_cosigned_head_is_one_to_verify_by(gate, call, ask, witness, seen):
    ana, tmp_path = gate.person("ana"), seen.parent.parent
    assert await ask() == (0, ""), "an empty log has nothing to be seen"
    await fill(ana, call, 3)
    key = Verifier(LOG, gate.keys.public[0].raw)
    code, said = await ask("--key", key.text)
    assert (code, "cosigned: log 'riskgate' of 3 entries" in said) == (0, True), said
    kept = seen
    first = kept.read_text()
    assert open_note(first, [witness.key]) == open_note(first, [key])
    await fill(ana, call, 5, "later")
    code, said = await ask("--json")
    assert (code, json.loads(said)["size"]) == (0, 8)
    assert witness.asked[-1].startswith("old 3\n")
    kept.unlink()
    assert (await ask())[0] == 0, "the witness says itself what it saw last"
    assert [body.split("\n")[0] for body in witness.asked[-2:]] == ["old 0", "old 8"]
    out = tmp_path / "out.jsonl"
    assert command("audit", "export", "--data-dir", gate.folder, "--out", out).exit_code == 0
    options = ("--key", key.text, "--checkpoint", kept)
    checked = command("audit", "verify", out, *options, "--witness", witness.key.text)
    assert (checked.exit_code, "consistent with the given head" in checked.output) == (0, True), checked.output
    stranger = WitnessServer("witness.example/w1", []).key.text
    assert command("audit", "verify", out, *options, "--witness", stranger).exit_code == 1
    assert command("audit", "verify", out, "--key", key.text, "--witness", stranger).exit_code == 2
    bare = tmp_path / "bare.note"
    bare.write_text("\n".join(kept.read_text().split("\n")[:5]) + "\n")
    uncosigned = command("audit", "verify", out, "--key", key.text, "--checkpoint", bare, "--witness", witness.key.text)
    assert (uncosigned.exit_code, "no cosignature" in uncosigned.output) == (1, True)


@pytest.mark.slow
async def test_a_forger_with_the_keys_and_the_kept_heads_gets_no_cosignature_for_what_they_made_of_the_log(
    make_gate, gate, call, ask, seen
):
    ana = gate.person("ana")
    await fill(ana, call, 4)
    assert (await ask())[0] == 0
    before = seen.read_text()
    await fill(ana, call, 2, "later")
    port = gate.server.port
    await gate.stop()
    in_file(gate.folder, rewrite)
    shutil.rmtree(gate.settings.heads_dir)
    (gate.settings.heads_dir.parent / "heads.begun").unlink()  # what else but a witness holds is in their hands
    assert command("audit", "adopt", "--reason", "theirs", "--data-dir", gate.folder).exit_code == 0
    again = await make_gate(port=port)
    assert again.riskgate.problem == ""
    code, said = await ask()
    assert (code, "REFUSED" in said, "it was rewritten" in said) == (1, True, True)
    assert seen.read_text() == before


@pytest.mark.slow
async def test_a_log_that_was_wound_back_is_refused_by_the_witness(make_gate, gate, call, ask, seen):
    ana, tmp_path = gate.person("ana"), seen.parent.parent
    await fill(ana, call, 2)
    await gate.riskgate.housekeeping.sign_head()
    shutil.copytree(gate.folder, tmp_path / "copy")
    await fill(ana, call, 3, "later")
    assert (await ask())[0] == 0
    port = gate.server.port
    await gate.stop()
    shutil.rmtree(gate.folder)
    shutil.copytree(tmp_path / "copy", gate.folder)  # database, keys and kept heads, all of them from before
    again = await make_gate(port=port)
    assert again.count("audit_entries") == 2
    code, said = await ask()
    assert (code, "wound back" in said) == (1, True), said
    await fill(again.person("ana"), call, 3, "others")
    seen.unlink()
    code, said = await ask()
    assert (code, "cosigned another head of 5 entries" in said) == (1, True), said


@pytest.mark.slow
async def test_what_is_no_answer_of_the_witness_is_one_sentence_and_an_exit_code(gate, ana, call, remote, tmp_path):
    await fill(ana, call, 1)
    stranger = WitnessServer("other", [b"x" * 32])
    known = WitnessServer("known", [gate.keys.public[0].raw])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with serving(stranger), serving(known):
        cases = [
            (stranger.url, stranger.key.text, "does not know the log"),
            (known.url, stranger.key.text, "is not a cosignature by other"),
            (closed, known.key.text, "is unreachable"),
            ("ftp://x", known.key.text, "not an http or https"),
            (known.url, Verifier("known", b"k" * 32).text, "signature type 4"),
        ]
        for url, key, why in cases:
            words = ("--url", url, "--witness-key", key, "--out", tmp_path / "seen")
            done = await remote("aldo", "audit", "witness", *words)
            assert (done.exit_code, why in done.output) == (2, True), (why, done.output)
        words = ("--url", known.url, "--witness-key", known.key.text, "--out", tmp_path / "seen")
        wrong = await remote("aldo", "audit", "witness", *words, "--key", Verifier("k", b"k" * 32).text)
        assert (wrong.exit_code, "no known key signed" in wrong.output) == (2, True)
        assert (await remote("ana", "audit", "witness", *words)).exit_code == 1, "an auditor asks for it"
    assert not list((tmp_path / "seen").glob("*.note"))


def test_a_cosignature_is_of_its_own_kind_and_says_when(tmp_path):
    witness = WitnessServer("w", [])
    text = "riskgate\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    note = f"{text}\n{witness._cosignature(text)}"
    assert open_note(note, [witness.key]) == text
    with pytest.raises(NoteError, match="no known key"):
        open_note(note, [Verifier("w", witness.key.public_key)])  # the same key, and another signature type
    with pytest.raises(NoteError, match="wrong"):
        open_note(note.replace("riskgate\n0", "riskgate\n1"), [witness.key])
    assert Cosigner.parse(witness.key.text) == witness.key


async def test_with_every_it_goes_on_while_nobody_answers_and_ends_where_the_log_is_another_one(
    gate, call, ask, witness, monkeypatch
):
    await fill(gate.person("ana"), call, 2)
    answers, rounds = witness.add_checkpoint, []

    def pause(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 2:
            witness.add_checkpoint = answers
        if len(rounds) == 4:
            witness.seen[LOG] = (2, b"f" * 32)  # another head of as many entries

    witness.add_checkpoint = lambda _body: (503, "text/plain", "")
    monkeypatch.setattr(audit_witness, "time", SimpleNamespace(sleep=pause))
    code, said = await ask("--every", 7)
    assert (code, rounds) == (1, [7.0] * 4), said
    assert said.count("status 503") == said.count("cosigned: log") == 2
    assert "REFUSED" in said
