"""Faults of logs and their exports: altered rows, lost rows, full disks, kills, foreign logs."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2, types_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_riskgate.audit.checkpoint import Checkpoint, sign_note
from phylactery_riskgate.audit.export import Exporter, export_log, verify_export, write_export
from phylactery_riskgate.audit.log import Entry, Kind
from phylactery_riskgate.audit.merkle import leaf_hash
from phylactery_riskgate.audit.verify import Report, check_lines
from phylactery_riskgate.cli import app
from phylactery_riskgate.keys.ring import load_keys
from typer.testing import CliRunner

from tests.support.processes.forks import Forked

READ = ("read_file", '{"path":"a.txt"}')
RUN = CliRunner().invoke


async def fill(gate, count: int, name: str = "c") -> None:
    for number in range(count):
        call = types_pb2.ToolCall(tool=READ[0], arguments_json=READ[1], tool_call_id=f"{name}{number}")
        await gate.person("ana").evaluate(call)


@pytest.fixture
async def logs(make_gate, shared_database):
    """Two replicas with a log each, ten and seven entries, signed every four."""
    one = await make_gate("data", database_url=shared_database, instance="one", checkpoint_every=4)
    two = await make_gate("data", database_url=shared_database, instance="two", checkpoint_every=4)
    await fill(one, 10, "a")
    await fill(two, 7, "b")
    return one, two


def exported(gate, out: Path, *names: str) -> Path:
    exporter = Exporter("riskgate", gate.keys.public, gate.keys.signer, gate.heads)
    gate.database.read_sync(lambda c: write_export(out, exporter.lines(c, names)))
    return out


def verdicts(found: Report) -> dict[str, int | None]:
    return {log.origin: log.first_bad for log in found.logs if not log.ok}


def change(gate, statement: str, **values: object) -> None:
    done = gate.database.write_sync(lambda c: c.execute(sa.text(statement), values).rowcount)
    assert done


OF_ONE = "WHERE log = 'riskgate/one' AND position"
DAMAGE = [
    ("altered", [f"UPDATE audit_entries SET record = :record {OF_ONE} = 6"], 6),
    ("leaf and record altered together", [f"UPDATE audit_entries SET record = :record, leaf = :leaf {OF_ONE} = 6"], 4),
    ("dropped", [f"DELETE FROM audit_entries {OF_ONE} = 2"], 2),
    ("the first dropped", [f"DELETE FROM audit_entries {OF_ONE} = 0"], 0),
    ("truncated", [f"DELETE FROM audit_entries {OF_ONE} >= 7"], 7),
    (
        "reordered",
        [
            f"UPDATE audit_entries SET position = 99 {OF_ONE} = 3",
            f"UPDATE audit_entries SET position = 3 {OF_ONE} = 5",
            f"UPDATE audit_entries SET position = 5 {OF_ONE} = 99",
        ],
        3,
    ),
    (
        "doubled",
        [
            f"DELETE FROM audit_entries {OF_ONE} = 8",
            (
                "INSERT INTO audit_entries SELECT log, 8, leaf, record, tenant, subject, kind, time_us, decision_id "
                f"FROM audit_entries {OF_ONE} = 7"
            ),
        ],
        8,
    ),
    (
        "foreign",
        [
            f"DELETE FROM audit_entries {OF_ONE} = 5",
            (
                "INSERT INTO audit_entries SELECT 'riskgate/one', 5, leaf, record, tenant, subject, kind, time_us, "
                "decision_id FROM audit_entries WHERE log = 'riskgate/two' AND position = 5"
            ),
        ],
        5,
    ),
]


@pytest.mark.parametrize(("what", "statements", "first_bad"), DAMAGE, ids=[one[0] for one in DAMAGE])
async def test_damage_in_the_database_itself_is_found_and_the_first_bad_entry_named(
    logs, tmp_path, what, statements, first_bad
):
    one, _ = logs
    record = one.database.read_sync(
        lambda c: bytes(c.execute(sa.text(f"SELECT record FROM audit_entries {OF_ONE} = 6")).scalar_one())
    ).replace(b'"ALLOW"', b'"BLOCKED"')
    given = {"record": record, "leaf": leaf_hash(record)}
    for statement in statements:
        change(one, statement, **{name: value for name, value in given.items() if f":{name}" in statement})
    found = verify_export(exported(one, tmp_path / "all.jsonl"), list(one.keys.public))
    assert verdicts(found) == {"riskgate/one": first_bad}, found.problem
    assert (found.origin, found.first_bad) == ("riskgate/one", first_bad)
    assert (f"entry {first_bad}" in found.problem) or (f"entries {first_bad}" in found.problem) or what == "truncated"


async def test_a_log_wound_back_with_its_heads_is_found_by_whoever_kept_a_signed_head(logs, tmp_path):
    one, _ = logs
    aldo = one.person("aldo")
    kept = (await aldo.audit.GetCheckpoint(audit_pb2.GetCheckpointRequest(), metadata=aldo.metadata)).note
    small = tmp_path / "small.jsonl"
    lines = exported(one, tmp_path / "log.jsonl", "riskgate/one").read_bytes().splitlines(keepends=True)
    notes = [line for line in lines if line.startswith(b'{"type":"checkpoint"')]
    entries = [line for line in lines if line.startswith(b'{"type":"entry"')]
    small.write_bytes(b"".join([lines[0], *notes[:2], *entries[:8]]))  # as it was when it had eight entries
    keys = list(one.keys.public)
    assert verify_export(small, keys).ok
    found = verify_export(small, keys, [kept])
    assert (found.first_bad, "10 were signed" in found.problem) == (8, True)
    assert not verify_export(exported(one, tmp_path / "two.jsonl", "riskgate/two"), keys, [kept]).ok


async def test_a_fork_is_found_whichever_branch_is_shown(logs, tmp_path):
    one, _ = logs
    forged = sign_note(Checkpoint("riskgate/one", 8, b"f" * 32).text, "riskgate/one", one.keys.signer)
    path = exported(one, tmp_path / "log.jsonl", "riskgate/one")
    assert "forked" in verify_export(path, list(one.keys.public), [forged]).problem
    lines = path.read_bytes().splitlines(keepends=True)
    note = json.dumps({"type": "checkpoint", "note": forged}).encode() + b"\n"
    path.write_bytes(b"".join([lines[0], note, *lines[1:]]))
    assert "forked" in verify_export(path, list(one.keys.public)).problem


async def test_no_log_can_be_left_out_of_an_export_of_all_or_slipped_into_it(logs, tmp_path):
    one, _ = logs
    keys = list(one.keys.public)
    whole = exported(one, tmp_path / "all.jsonl")
    assert [(log.origin, log.entries) for log in verify_export(whole, keys).logs] == [
        ("riskgate/one", 10),
        ("riskgate/two", 7),
    ]
    lines = whole.read_bytes().splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) if line.startswith(b'{"type":"log"')]
    index, first, second = lines[:1], lines[begins[0] : begins[1]], lines[begins[1] :]
    bad = tmp_path / "bad.jsonl"
    stranger = load_keys(tmp_path / "stranger")
    note = json.dumps(
        {"type": "export", "format": 1, "issuer": "riskgate", "note": "x\n\n— riskgate AAAA\n", "keys": []}
    )
    for parts, problem in (
        ((index, first), "'riskgate/two' is missing"),
        ((index, second), "'riskgate/one' is missing"),
        ((index, first, second, second), "twice"),
        (([note.encode() + b"\n"], first, second), "not genuine"),
    ):
        bad.write_bytes(b"".join(line for part in parts for line in part))
        assert problem in verify_export(bad, keys).problem, problem
    assert not verify_export(whole, list(stranger.public)).ok
    await fill(one, 2, "later")
    newer = exported(one, tmp_path / "newer.jsonl").read_bytes().splitlines(keepends=True)
    bad.write_bytes(b"".join([newer[0], *first, *second]))
    assert "10 entries and 12 were exported" in verify_export(bad, keys).problem


async def test_a_log_named_like_its_issuer_stands_beside_others_and_a_note_about_them_is_no_list(make_gate, tmp_path):
    one = await make_gate("data", checkpoint_every=4)
    await fill(one, 5)
    rotated = RUN(app, ["keys", "rotate", "--data-dir", str(one.folder)])  # which writes a log of its own
    assert rotated.exit_code == 0, rotated.output
    whole = tmp_path / "all.jsonl"
    assert RUN(app, ["audit", "export", "--data-dir", str(one.folder), "--out", str(whole)]).exit_code == 0
    key = tmp_path / "keys.json"
    key.write_text(RUN(app, ["keys", "export", "--data-dir", str(one.folder)]).output)
    checked = RUN(app, ["audit", "verify", "--key", str(key), str(whole)])
    assert checked.exit_code == 0, checked.output
    found = verify_export(whole)
    assert (found.ok, [(log.origin, log.entries) for log in found.logs]) == (
        True,
        [("riskgate", 5), ("riskgate/keys", 2)],
    )
    first, *rest = whole.read_bytes().splitlines(keepends=True)
    index = json.loads(first)
    for text in (
        "riskgate export\nriskgate 5\nriskgate 5\n",
        "riskgate\n5\nAAAA\n",
        "riskgate export\nriskgate many\n",
    ):
        index["note"] = sign_note(text, "riskgate", one.keys.signer)
        whole.write_bytes(b"".join([json.dumps(index).encode() + b"\n", *rest]))
        assert "about something else" in verify_export(whole).problem, text


async def test_exported_values_fit_their_commitments_or_the_entry_is_named(make_gate, call, tmp_path):
    gate = await make_gate()
    await gate.person("ana").evaluate(call("pay", '{"to":"bob","note":"hush"}', "c1"))
    await gate.person("ana").evaluate(call("echo", '{"text":"shown"}', "c2"))
    out = tmp_path / "values.jsonl"
    options = ["audit", "export", "--data-dir", str(gate.folder), "--out", str(out), "--values", "--json"]
    assert json.loads(RUN(app, options).output)["entries"] == 2
    text = out.read_text()
    assert ("bob" in text, "shown" in text, "hush" in text) == (True, True, False)
    assert verify_export(out, list(gate.keys.public)).ok
    for old, new, first_bad in (("bob", "eve", 0), ("shown", "never", 1), ('"/arguments/text"', '"/arguments/x"', 1)):
        bad = tmp_path / "bad.jsonl"
        bad.write_text("".join(line.replace(old, new, 1) for line in text.splitlines(keepends=True)))
        found = verify_export(bad, list(gate.keys.public))
        assert found.first_bad == first_bad, (old, found.problem)


@pytest.mark.slow
async def test_a_disk_that_fills_while_a_head_is_signed_loses_nothing_and_the_next_head_covers_it(
    make_gate, call, refused
):
    gate = await make_gate(checkpoint_every=3)
    ana, aldo = gate.person("ana"), gate.person("aldo")
    gate.fail_writes("audit_checkpoints")
    codes = []
    for number in range(4):
        try:
            await ana.evaluate(call(*READ, f"c{number}"))
            codes.append("OK")
        except Exception as error:  # noqa: BLE001 - the code is what is told
            codes.append(error.code().name)
    assert codes == ["OK", "OK", "UNAVAILABLE", "UNAVAILABLE"]
    current = aldo.audit.GetCheckpoint(audit_pb2.GetCheckpointRequest(), metadata=aldo.metadata)
    assert (await refused(current)).reason == "STORE_UNAVAILABLE"
    gate.database.write_sync(lambda c: c.execute(sa.text("DROP TRIGGER no_rows")) and None)
    await ana.evaluate(call(*READ, "c9"))
    answer = await aldo.audit.GetCheckpoint(audit_pb2.GetCheckpointRequest(), metadata=aldo.metadata)
    assert answer.size == gate.count("audit_entries") == 3


HOSTILE = ("\ud800", "\x1b[2J\u202e", "", "9" * 5_000, int("9" * 4_000), -1.5, None, [], {"\ud800": "\ud800"})
"""What may stand in a file from anybody: text that no terminal can print or that speaks to it, numbers out of range."""


def spoiled(value: object) -> Iterator[object]:
    """Yield a JSON value with one of its parts replaced by something hostile, for every part and every such thing."""
    yield from HOSTILE
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for changed in spoiled(part):
            yield {**value, key: changed} if isinstance(value, dict) else [*value[:key], changed, *value[key + 1 :]]


@pytest.mark.slow
async def test_whatever_stands_in_an_export_the_command_answers_with_a_sentence(make_gate, call, tmp_path):
    gate = await make_gate(checkpoint_every=1)
    await gate.person("ana").evaluate(call("echo", '{"text":"shown"}', "c2"))
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    RUN(app, ["keys", "rotate", "--data-dir", str(gate.folder)])  # which writes a second log
    RUN(app, ["audit", "export", "--data-dir", str(gate.folder), "--out", str(good), "--values"])
    lines = [json.loads(line) for line in good.read_bytes().splitlines()]
    head = next(line["note"] for line in lines if line["type"] == "checkpoint")
    key = json.dumps({"keys": [one["jwk"] for one in lines[0]["keys"]]})

    def signed(text: str) -> str:
        return sign_note(text, "riskgate", gate.keys.signer)

    def resigned(text: str) -> str:
        """Put the signature of the true head under another text: the name and the id of the key are right."""
        return text + head[head.index("\n\n") + 1 :]

    root = head.split("\n")[2]
    notes = (resigned("riskgate\n1\n\ud800\n"), signed(f"riskgate\n{'9' * 5_000}\n{root}\n"), signed("\x1b[2J\n"))
    lists = ("riskgate export\n\x1b[2J 1\n", "riskgate export\nriskgate 1 1\n", "riskgate export\nriskgate x\n")
    made = [[*lines[:2], lines[2] | {"note": note}, *lines[3:]] for note in notes]
    made += [[lines[0] | {"note": signed(text)}, *lines[1:]] for text in lists]
    made += [
        [*lines[:at], lines[at] | {name: "\ud800"}, *lines[at + 1 :]] for at, name in ((0, "issuer"), (1, "origin"))
    ]
    entry = next(at for at, line in enumerate(lines) if line["type"] == "entry")
    made += [[*lines[:entry], lines[entry] | {"index": "\x1b" + text}, *lines[entry + 1 :]] for text in ("\ud800", "x")]
    for attack in made:
        bad.write_text("".join(json.dumps(line) + "\n" for line in attack))
        for options in ([], ["--json"], ["--key", key], ["--json", "--key", key]):
            done = RUN(app, ["audit", "verify", str(bad), *options])
            assert (done.exit_code, type(done.exception)) == (1, SystemExit), (attack, done.exception)
            assert "\x1b" not in done.output
    for changed in [[*lines[:at], part, *lines[at + 1 :]] for at in (0, 1, 2, entry) for part in spoiled(lines[at])]:
        found = check_lines(json.dumps(line).encode() + b"\n" for line in changed)
        assert found.ok or found.problem.encode()  # what cannot be printed cannot be encoded
        assert all((log.origin + log.problem).encode() or found.fault for log in found.logs)


DIES_AT_500_KB = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
from phylactery_riskgate.cli import main
main()
"""
"""Exports until a file would grow further: then the kernel kills it, as abruptly as any."""


@pytest.mark.slow
async def test_a_kill_in_the_middle_of_an_export_leaves_no_half_file(make_gate, call, tmp_path):
    gate = await make_gate()
    await fill_directly(gate, 2_000)
    out = tmp_path / "out" / "log.jsonl"
    out.parent.mkdir()
    command = ["audit", "export", "--out", str(out), "--data-dir", str(gate.folder)]
    code = await asyncio.to_thread(Forked("-c", [DIES_AT_500_KB, *command]).wait, 60)
    assert code == -signal.SIGXFSZ
    assert max(part.stat().st_size for part in out.parent.glob("*.part")) == 500_000
    assert not out.exists()
    assert RUN(app, command).exit_code == 0
    assert verify_export(out, list(gate.keys.public)).entries >= 2_000  # a record of the keys may have come since


async def fill_directly(gate, count: int) -> None:
    """Append entries without the way through the service."""
    who = Principal("ana", "acme", frozenset())
    log = gate.riskgate.audit

    def work(connection: sa.Connection) -> None:
        for number in range(count):
            log.append(connection, Entry(Kind.OUTCOME, number, who, {"outcome": "SUCCEEDED", "note": "x" * 400}))

    await gate.database.write(work)


@pytest.mark.slow
async def test_a_long_log_is_verified_whole(make_gate, tmp_path):
    gate = await make_gate()
    await fill_directly(gate, 20_000)
    out = tmp_path / "log.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    found = verify_export(out, list(gate.keys.public))
    assert (found.ok, found.entries) == (True, 20_000)


@pytest.mark.slow
def test_the_command_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "phylactery_riskgate.cli", "audit", "--help"], check=True, capture_output=True, text=True
    )
    assert all(name in done.stdout for name in ("list", "tail", "verify", "export", "proof", "erase", "checkpoint"))
