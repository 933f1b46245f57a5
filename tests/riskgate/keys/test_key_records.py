"""Every change of the signing keys is in the audit log: written by the command if possible, else by the service."""

from __future__ import annotations

import asyncio
import getpass
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.clock import SystemClock
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.audit.export import Exporter, verify_export, write_export
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.cli import app
from phylactery_riskgate.keys.ring import load_keys, read_signing
from typer.testing import CliRunner, Result


def run(*words: object, url: str = "") -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"RISKGATE_DATABASE_URL": url})


def answered(*words: object, url: str = "") -> dict[str, Any]:
    """Run a command that works, and return what it says."""
    done = run(*words, "--json", url=url)
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def changed(database: Database) -> list[dict[str, Any]]:
    """Return the records of changes, oldest first."""
    query = "SELECT record FROM audit_entries WHERE kind = 'key_changed' ORDER BY time_us, log, position"
    return [json.loads(bytes(one)) for one in database.read_sync(lambda c: c.execute(sa.text(query)).scalars().all())]


@pytest.fixture
def stored(tmp_path: Path, shared_database: str):
    """A data folder with keys and a database; no RiskGate serves."""
    folder = tmp_path / "data"
    load_keys(folder / "keys")
    database = Database(shared_database or f"sqlite:///{folder}/riskgate.db")
    database.migrate(PACKAGE)
    yield folder, database, shared_database
    database.close()


def test_the_command_records_each_change_once_and_the_export_verifies(stored, tmp_path):
    folder, database, url = stored
    data = ("--data-dir", folder)
    first = read_signing(folder / "keys" / "signing.json")[0][0].kid
    rotated = answered("keys", "rotate", *data, url=url)
    assert rotated["recorded"]
    second = rotated["active"]
    assert answered("keys", "revoke", first, *data, url=url)["recorded"]
    assert run("keys", "revoke", first, *data, url=url).exit_code == 0
    records = changed(database)
    assert [(one["kid"], one["previous_state"], one["state"]) for one in records] == [
        (second, "", "ACTIVE"),
        (first, "", "RETIRING"),
        (first, "RETIRING", "REVOKED"),
    ]
    keys = {key.kid: key for key in read_signing(folder / "keys" / "signing.json")[0]}
    assert [one["change_us"] for one in records] == [
        keys[second].create_us,
        keys[first].retire_us,
        keys[first].revoke_us,
    ]
    assert {(one["log"], one["tenant"], one["source"], one["active_kid"]) for one in records} == {
        ("riskgate/keys", "", "command", second)
    }
    assert {tuple(one["values"]) for one in records} == {("/os_user",)}, "auditors of every tenant read the records"
    assert not any("os_user" in one for one in records)
    whole = tmp_path / "values.jsonl"
    assert run("audit", "export", "--values", *data, "--out", whole, url=url).exit_code == 0
    shown = [json.loads(line) for line in whole.read_text().splitlines() if '"kind":"key_changed"' in line]
    assert {one["values"]["/os_user"]["value"] for one in shown} == {getpass.getuser()}
    ring, out = load_keys(folder / "keys"), tmp_path / "out.jsonl"
    exporter = Exporter("riskgate", ring.public, ring.signer, HeadStore(folder / "keys" / "heads"))
    database.read_sync(lambda c: write_export(out, exporter.lines(c)))
    assert verify_export(out, [key for key in ring.public if key.kid == second]).ok
    out.write_text(out.read_text().replace('"previous_state":"RETIRING"', '"previous_state":"ACTIVE"'))
    assert not verify_export(out, [key for key in ring.public if key.kid == second]).ok


def test_a_change_stands_where_no_database_takes_the_record_and_the_command_says_so(tmp_path):
    folder = tmp_path / "data"
    run("keys", "create", "--data-dir", folder)
    alone = run("keys", "rotate", "--data-dir", folder, "--json")
    assert (json.loads(alone.stdout)["recorded"], alone.stderr) == (False, "")
    (folder / "riskgate.db").write_bytes(b"no database at all" * 100)
    told = run("keys", "rotate", "--data-dir", folder, "--json")
    assert (told.exit_code, json.loads(told.stdout)["recorded"]) == (0, False)
    assert "not in the audit log yet" in told.stderr
    assert json.loads(told.stdout)["active"] == load_keys(folder / "keys").kid


async def test_who_serves_records_what_no_command_did(make_gate):
    gate = await make_gate(checkpoint_seconds=3_600, clock=SystemClock())  # or it may be faster than the command
    signing = gate.settings.signing_file
    first = gate.keys.kid
    assert await gate.riskgate.housekeeping.record_keys() == 1
    (record,) = gate.records("key_changed")
    assert (record["kid"], record["source"], record["log"]) == (first, "service", "riskgate")
    before = signing.read_bytes()
    rotated = await asyncio.to_thread(run, "keys", "rotate", "--data-dir", gate.folder / "nowhere-near-the-database")
    assert rotated.exit_code != 0
    assert (await asyncio.to_thread(run, "keys", "rotate", "--data-dir", gate.folder)).exit_code == 0
    signing.write_bytes(before)  # somebody brings the old file back: that is no secret, either
    assert await gate.riskgate.housekeeping.record_keys() == 2
    assert await gate.riskgate.housekeeping.record_keys() == 0
    assert [(one["state"], one["source"]) for one in changed(gate.database)] == [
        ("ACTIVE", "service"),
        ("ACTIVE", "command"),
        ("RETIRING", "command"),
        ("ACTIVE", "service"),
        ("REMOVED", "service"),
    ]


async def test_two_replicas_record_a_change_once(make_gate, shared_database, until):
    gates = [
        await make_gate("data", instance=f"i{number}", database_url=shared_database, checkpoint_seconds=0.05)
        for number in range(2)
    ]
    await until(lambda: all(gate.riskgate.housekeeping._keys_on_record for gate in gates))
    assert len(changed(gates[0].database)) == 1


@pytest.fixture
def until():
    """Wait until a check says yes; the test's own time limit is the bound."""

    async def wait(check) -> None:
        while not check():  # noqa: ASYNC110 - what is waited for is a task of the service
            await asyncio.sleep(0.02)

    return wait


@pytest.mark.parametrize("kid", ["-unknown-key", "-jd", "_x"])
def test_a_key_whose_id_begins_with_a_hyphen_is_an_id_and_no_option(stored, kid):
    folder, _, url = stored
    result = run("keys", "revoke", kid, "--data-dir", folder, url=url)
    assert result.exit_code != 0
    assert kid in result.output
    assert "Usage" not in result.output
