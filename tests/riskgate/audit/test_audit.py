"""The audit log: its contents, its omissions, and detection of every alteration of an export."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import DataLoss
from phylactery_riskgate.audit.checkpoint import Checkpoint, Verifier, open_note, sign_note
from phylactery_riskgate.audit.export import export_log, verify_export
from phylactery_riskgate.audit.log import AuditLog, Entry, Kind, LogError
from phylactery_riskgate.audit.merkle import leaf_hash, root_of
from phylactery_riskgate.audit.sealing import Vault, commitment, new_salt
from phylactery_riskgate.cli import app
from phylactery_riskgate.keys.ring import load_keys
from phylactery_riskgate.store import audit as rows
from typer.testing import CliRunner

NOBODY = Principal("nobody", "acme", frozenset())
Lines = list[dict[str, object]]


@pytest.fixture
async def exported(make_gate, call, tmp_path) -> tuple[object, Path]:
    """A log of twelve entries, signed every four, and its export."""
    gate = await make_gate(checkpoint_every=4)
    ana = gate.person("ana")
    for number in range(11):
        await ana.evaluate(call("read_file", f'{{"path":"a{number}.txt"}}', f"c{number}"))
    await ana.evaluate(run="r2", plan_step="the last")
    out = tmp_path / "export.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    return gate, out


def read(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return path


def entries(lines: Lines) -> Lines:
    return [line for line in lines if line["type"] == "entry"]


async def test_an_untouched_export_verifies_with_the_public_key_alone(exported):
    gate, out = exported
    found = verify_export(out, [Verifier("riskgate", gate.keys.public[0].raw)])
    assert (found.ok, found.entries, found.origin) == (True, 12, "riskgate")
    assert verify_export(out).ok
    assert [Checkpoint.parse(line["note"].partition("\n\n")[0] + "\n").size for line in read(out)[1:4]] == [4, 8, 12]


async def test_a_record_says_everything_but_the_values(exported):
    _, out = exported
    record = entries(read(out))[-1]["record"]
    assert record["subject"] == "ana"
    assert record["policy_ids"] == ["write.ask-self"]
    assert (record["bundle_revision"], record["decision"]) == (1, "AUTH_REQUIRED")
    arguments, hashes = {"/arguments/path", "/arguments/content", "/arguments/append"}, {"/args_hash", "/raw_args_hash"}
    assert set(record["values"]) == arguments | hashes | {"/plan_step"}
    assert all(value.startswith("hmac-sha256:") for value in record["values"].values())
    text = out.read_text()
    assert not any(secret in text for secret in ("sesame", "notes.txt", "the last"))


def altered(index: int, change: Callable[[dict[str, object]], object]) -> Callable[[Lines], Lines]:
    def alter(lines: Lines) -> Lines:
        change(entries(lines)[index]["record"])
        return lines

    return alter


def recomputed(index: int) -> Callable[[Lines], Lines]:
    def alter(lines: Lines) -> Lines:
        entry = entries(lines)[index]
        entry["record"]["decision"] = "ALLOW" if entry["record"]["decision"] != "ALLOW" else "BLOCKED"
        data = json.dumps(entry["record"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        entry["leaf_hash"] = leaf_hash(data).hex()
        return lines

    return alter


def dropped(index: int) -> Callable[[Lines], Lines]:
    return lambda lines: [line for line in lines if line.get("index") != index]


def swapped(lines: Lines) -> Lines:
    at = lines.index(entries(lines)[5])
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return lines


def renumbered(lines: Lines) -> Lines:
    kept = [line for line in lines if line.get("index") != 3]
    for number, entry in enumerate(entries(kept)):
        entry["index"] = entry["record"]["index"] = number
    return kept


def repeated(lines: Lines) -> Lines:
    return [*lines, entries(lines)[-1]]


def invented(lines: Lines) -> Lines:
    entry = json.loads(json.dumps(entries(lines)[-1]))
    entry["index"] = entry["record"]["index"] = 12
    return [*lines, entry]


ATTACKS: list[tuple[Callable[[Lines], Lines], int | None]] = [
    (altered(7, lambda record: record.update(decision="BLOCKED")), 7),
    (altered(0, lambda record: record.update(time_us=1)), 0),
    (altered(11, lambda record: record.pop("subject")), 11),
    (altered(5, lambda record: record.update(extra=1)), 5),
    (altered(5, lambda record: record["values"].update({"/arguments/path": "hmac-sha256:" + "0" * 64})), 5),
    (recomputed(6), 4),  # leaf made to fit: the signed heads of 4 and 8 enclose it
    (dropped(4), 4),
    (dropped(0), 0),
    (dropped(11), 11),
    (lambda lines: lines[:-3], 9),
    (lambda lines: [line for line in lines if line["type"] != "entry"], 0),
    (swapped, 5),
    (renumbered, 3),
    (repeated, 12),
    (invented, 12),
    (lambda lines: [line for line in lines if line["type"] != "checkpoint"], None),
    (lambda lines: [lines[0], *lines[2:3], *lines[4:]], 8),  # the newest head is gone
    (lambda lines: lines[1:], None),
]


async def test_every_alteration_of_an_export_is_found_and_placed(exported, tmp_path):
    gate, out = exported
    for number, (attack, first_bad) in enumerate(ATTACKS):
        found = verify_export(write(tmp_path / "bad.jsonl", attack(read(out))), list(gate.keys.public))
        assert not found.ok, number
        assert found.first_bad == first_bad, (number, found.problem)
        assert found.problem


async def test_no_single_changed_byte_of_an_export_goes_unnoticed(exported, tmp_path):
    gate, out = exported
    data, bad = out.read_bytes(), tmp_path / "bad.jsonl"
    chooser = random.Random(7)
    start = data.index(b'{"type":"checkpoint"')  # the keys before are not believed anyway
    for _ in range(400):
        at = chooser.randrange(start, len(data) - 1)
        byte = chooser.randrange(256)
        if data[at] == byte:
            continue
        bad.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
        assert not verify_export(bad, list(gate.keys.public)).ok, (at, chr(data[at]), byte)


async def test_another_key_is_not_believed_and_a_forged_log_needs_the_real_one(exported, tmp_path):
    gate, out = exported
    stranger = load_keys(tmp_path / "stranger")
    found = verify_export(out, list(stranger.public))
    assert "no signed head by a trusted key" in found.problem
    forged = tmp_path / "forged.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", forged, keys=stranger.public, signer=stranger.signer, heads=gate.heads)
    )
    assert verify_export(forged, list(gate.keys.public)).ok, "the real heads are in it beside the stranger's"
    lines = forged.read_text().splitlines(keepends=True)
    heads = [line for line in lines if line.startswith('{"type":"checkpoint"')]
    forged.write_text("".join(line for line in lines if line not in heads[:-1]))
    assert verify_export(forged, list(stranger.public)).ok
    assert "no signed head by a trusted key" in verify_export(forged, list(gate.keys.public)).problem


@pytest.mark.parametrize("content", [b"", b"\n", b"x", b"[]\n", b"{}\n", b"\xff\xfe\n", b"[" * 100_000])
def test_a_file_that_is_no_export_is_not_verified(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    assert not verify_export(path).ok
    assert "cannot be read" in verify_export(tmp_path / "none").problem


async def test_a_row_altered_in_the_database_shows_in_the_next_export(exported):
    gate, out = exported
    gate.database.write_sync(
        lambda c: c.execute(
            sa.text("UPDATE audit_entries SET record = replace(record, '\"ALLOW\"', '\"BLOCKED\"') WHERE position = 3")
        )
    )
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out).first_bad == 3


async def test_rows_that_hold_nonsense_are_exported_for_what_they_are_and_found(exported):
    gate, out = exported
    for position, column, value in (
        (9, "leaf", b"x"),
        (7, "record", b"\xff"),
        (5, "record", b"{\n}"),
        (2, "record", b"1"),
    ):
        statement = sa.text(f"UPDATE audit_entries SET {column} = :value WHERE position = {position}")
        gate.database.write_sync(lambda c, s=statement, v=value: c.execute(s, {"value": v}))
        gate.database.read_sync(
            lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
        )
        assert verify_export(out, list(gate.keys.public)).first_bad == position


async def test_a_damaged_head_stops_the_log_instead_of_starting_another(exported, refused, call):
    gate, _ = exported
    gate.database.write_sync(lambda c: c.execute(sa.text("UPDATE audit_logs SET size = 13")))
    refusal = await refused(gate.person("ana").evaluate(call("echo", '{"text":"a"}', "new")))
    assert (refusal.code.name, gate.count("decisions")) == ("DATA_LOSS", 12)


async def test_rows_deleted_from_the_end_show_in_the_next_export(exported):
    gate, out = exported
    gate.database.write_sync(lambda c: c.execute(sa.text("DELETE FROM audit_entries WHERE position >= 10")))
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out).first_bad == 10


async def test_values_lie_sealed_fit_their_commitments_and_can_be_erased_while_the_log_verifies(exported):
    gate, out = exported
    log = gate.riskgate.audit
    record = entries(read(out))[-1]["record"]
    last = rows.Place("riskgate", 11)
    values = gate.database.read_sync(lambda c: log.values(c, "acme", last))
    assert values["/arguments/content"] == "sesame-open"
    assert gate.database.read_sync(lambda c: log.commitments(c, "acme", last)) == record["values"]
    assert gate.database.read_sync(lambda c: log.values(c, "zeta", last)) is None
    assert gate.database.write_sync(lambda c: rows.erase_values(c, "acme", "riskgate", 11))
    assert not gate.database.write_sync(lambda c: rows.erase_values(c, "acme", "riskgate", 11))
    assert gate.database.read_sync(lambda c: log.values(c, "acme", last)) is None
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out).ok


async def test_after_erasure_an_approval_still_shows_and_the_same_question_gets_the_same_answer(exported, call):
    gate, _ = exported
    ana = gate.person("ana")
    gate.database.write_sync(lambda c: [rows.erase_values(c, "acme", "riskgate", index) for index in range(12)])
    asked = call("read_file", '{"path":"a3.txt"}', "c3")
    answer = await ana.evaluate(asked)
    assert answer.replayed
    assert (await ana.redeem(answer.permit, asked)).bound_call == answer.bound_call
    approval = (await ana.evaluate(run="r2", plan_step="the last")).approval
    assert approval.code
    assert len(approval.arguments) == 0


async def test_sealed_values_that_were_altered_or_moved_are_not_opened(tmp_path):
    vault = Vault(b"k" * 32)
    sealed = vault.seal(b"value", "riskgate/1")
    assert vault.open(sealed, "riskgate/1") == b"value"
    for blob, place in ((sealed, "riskgate/2"), (sealed[:-1] + bytes([sealed[-1] ^ 1]), "riskgate/1"), (b"", "x")):
        with pytest.raises(DataLoss):
            vault.open(blob, place)
    with pytest.raises(DataLoss):
        Vault(b"l" * 32).open(sealed, "riskgate/1")
    assert vault.seal(b"value", "riskgate/1") != sealed
    assert commitment(new_salt(), "yes") != commitment(new_salt(), "yes")


async def test_the_head_is_signed_in_time_once_and_by_the_key_it_names(gate, ana, call):
    assert not await gate.riskgate.housekeeping.sign_head()
    await ana.evaluate(call("echo", '{"text":"a"}'))
    assert await gate.riskgate.housekeeping.sign_head()
    assert not await gate.riskgate.housekeeping.sign_head()
    notes = gate.database.read_sync(lambda c: list(rows.checkpoints(c, "riskgate")))
    checkpoint = Checkpoint.parse(open_note(notes[-1], [Verifier("riskgate", gate.keys.public[0].raw)]))
    leaves = gate.database.read_sync(lambda c: rows.leaves(c, "riskgate", 1))
    assert (checkpoint.size, checkpoint.root) == (1, root_of(leaves))


async def test_a_work_that_fails_takes_its_record_with_it(gate):
    log: AuditLog = gate.riskgate.audit
    ghost = Entry(Kind.OUTCOME, 1, NOBODY, {"outcome": "SUCCEEDED"})

    def work(connection: sa.Connection) -> None:
        log.append(connection, ghost)
        raise RuntimeError("later fault")

    with pytest.raises(RuntimeError):
        await gate.database.write(work)
    assert gate.records() == []
    assert gate.database.write_sync(lambda c: log.append(c, ghost)) == rows.Place("riskgate", 0)


def test_a_log_that_was_not_opened_takes_nothing(tmp_path, gate):
    ring = load_keys(tmp_path / "keys")
    log = AuditLog("other", vault=Vault(ring.data_key), data_key_id=ring.data_key_id, signer=lambda: ring.signer)
    with pytest.raises(LogError, match="not opened"):
        gate.database.write_sync(lambda c: log.append(c, Entry(Kind.OUTCOME, 1, NOBODY, {})))


async def test_the_command_exports_while_the_service_runs_and_verifies_offline(gate, ana, call, tmp_path):
    run = CliRunner().invoke
    await ana.evaluate(call("echo", '{"text":"a"}'))
    out = tmp_path / "log.jsonl"
    result = run(app, ["audit", "export", "--data-dir", str(gate.folder), "--out", str(out)])
    assert (result.exit_code, "1 entries" in result.output) == (0, True)
    await ana.evaluate(call("echo", '{"text":"b"}', "c2"))
    listed = run(app, ["keys", "list", "--data-dir", str(gate.folder), "--json"])
    key = json.loads(listed.output)["keys"][0]
    jwk_file = tmp_path / "key.jwk"
    jwk_file.write_text(json.dumps(key["jwk"]))
    for trusted in (key["vkey"], json.dumps(key["jwk"]), str(jwk_file)):
        assert run(app, ["audit", "verify", str(out), "--key", trusted]).exit_code == 0
    assert run(app, ["audit", "verify", "--data-dir", str(gate.folder)]).exit_code == 0
    out.write_text(out.read_text().replace('"ALLOW"', '"BLOCKED"'))
    bad = run(app, ["audit", "verify", str(out), "--key", key["vkey"], "--json"])
    assert bad.exit_code == 1
    assert json.loads(bad.output)["first_bad_entry"] == 0
    assert "first bad entry: 0" in run(app, ["audit", "verify", str(out)]).output


@pytest.mark.parametrize(
    ("key", "receipt", "says"),
    [
        ("keys.json", "gone", "gone: cannot be read (No such file or directory)"),
        ("keys.json", ".", "cannot be read (Is a directory)"),
        ("keys.json", "bytes", "bytes: is not UTF-8 text"),
        ("empty", "receipt.json", "`riskgate keys export` prints the keys"),
        ("receipt.json", "receipt.json", "`riskgate keys export` prints the keys"),
    ],
)
def test_a_file_that_cannot_be_verified_is_told_with_what_to_do(monkeypatch, tmp_path, key, receipt, says):
    monkeypatch.chdir(tmp_path)
    for name, content in (("bytes", b"\xff"), ("empty", b""), ("receipt.json", b'{"type": "receipt"}')):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [one.jwk for one in load_keys(tmp_path / "keys").public]}))
    told = CliRunner().invoke(app, ["receipt", "verify", receipt, "--key", key])
    assert (told.exit_code, says in told.output) == (2, True), told.output


@pytest.mark.parametrize(
    "command", [["notices", "status"], ["audit", "verify"], ["audit", "retain", "--before", "90d"]]
)
def test_a_folder_without_a_database_says_that_nothing_was_started_there(tmp_path, command):
    told = CliRunner().invoke(app, [*command, "--data-dir", str(tmp_path)])
    assert (told.exit_code, "start RiskGate once" in told.output) == (2, True), told.output


@pytest.mark.parametrize("command", [["notices", "status"], ["audit", "heads"], ["audit", "export", "--out", "x"]])
def test_a_database_that_is_down_is_named_with_the_cause_and_without_its_password(monkeypatch, tmp_path, command):
    monkeypatch.setenv("RISKGATE_DATABASE_URL", "postgresql+psycopg://gate:SECRET-1@127.0.0.1:1/gate")
    load_keys(tmp_path / "keys")
    told = CliRunner().invoke(app, [*command, "--data-dir", str(tmp_path)])
    assert (told.exit_code, "SECRET-1" in told.output) == (2, False), told.output
    assert "postgresql+psycopg://gate:***@127.0.0.1:1/gate cannot be the database (connection failed" in told.output


async def test_an_export_that_nobody_gives_a_key_for_is_not_called_verified(exported, tmp_path):
    """Whoever forges a log signs it with a key of their own, and puts that key into the file."""
    gate, out = exported
    stranger, forged = load_keys(tmp_path / "stranger"), tmp_path / "forged.jsonl"
    root = root_of([bytes.fromhex(str(entry["leaf_hash"])) for entry in entries(read(out))])
    lines = [line for line in read(out) if line["type"] != "checkpoint"]
    note = sign_note(Checkpoint("riskgate", 12, root).text, "riskgate", stranger.signer)
    lines[0]["keys"] = [{"jwk": stranger.public[0].jwk, "state": "ACTIVE"}]
    write(forged, [lines[0], {"type": "checkpoint", "note": note}, *lines[1:]])
    run = CliRunner().invoke
    for path in (forged, out):
        said = run(app, ["audit", "verify", str(path)])
        assert (said.exit_code, said.output.startswith("NOT VERIFIED")) == (3, True)
        assert "--key" in said.output
        assert "verified:" not in said.output
        told = json.loads(run(app, ["audit", "verify", str(path), "--json"]).output)
        assert (told["ok"], told["whole"], told["key_trusted"]) == (False, True, False)
    keys = tmp_path / "keys.json"
    keys.write_text(run(app, ["keys", "export", "--data-dir", str(gate.folder)]).output)
    assert run(app, ["audit", "verify", str(out), "--key", str(keys)]).exit_code == 0
    assert run(app, ["audit", "verify", str(forged), "--key", str(keys)]).exit_code == 1
    out.write_text(out.read_text().replace('"ALLOW"', '"BLOCKED"'))
    assert run(app, ["audit", "verify", str(out)]).exit_code == 1, "altered is altered, whoever signed"


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "export", "--data-dir", "nowhere", "--out", "x"],
        ["keys", "list", "--data-dir", "nowhere"],
        ["audit", "verify", "x", "--key", "no-such-file"],
        ["audit", "verify", "x", "--key", '{"x":"AAAA"}'],
    ],
)
def test_a_command_that_cannot_be_carried_out_says_so_with_exit_code_two(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr.startswith("riskgate: ")) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_policy_commands_accept_the_packaged_bundle_and_name_the_fault_of_a_broken_one(bundle):
    run = CliRunner().invoke
    assert run(app, ["policy", "check", str(bundle)]).exit_code == 0
    assert run(app, ["policy", "test", str(bundle)]).exit_code == 1  # no case, so nothing was tested
    (bundle / "tests").mkdir()
    case = "cases: [{name: wrong, tool: echo, arguments: {text: a}, expect: {decision: BLOCKED}}]\n"
    (bundle / "tests" / "wrong.yaml").write_text(case)
    failing = run(app, ["policy", "test", str(bundle)])
    assert (failing.exit_code, "FAILED wrong" in failing.output) == (1, True)
    (bundle / "riskgate.yaml").write_text("revision: nothing\n")
    broken = run(app, ["policy", "check", str(bundle), "--json"])
    assert (broken.exit_code, json.loads(broken.output)["file"]) == (1, "riskgate.yaml")
