"""Signed heads outside the database: a log that was rewritten or rolled back is neither signed nor served."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import audit_pb2
from phylactery_chassis.errors import DomainError, StartError, StoreFull
from phylactery_chassis.util import durable_files
from phylactery_riskgate.app import assemble, build
from phylactery_riskgate.audit.export import verify_export
from phylactery_riskgate.audit.heads import HeadsDisagree, HeadStore, KeptHead
from phylactery_riskgate.audit.merkle import Frontier, leaf_hash
from phylactery_riskgate.cli import app
from phylactery_riskgate.domain.canonical import canonical_bytes
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from tests.support.riskgate.people import Person

READ = ("read_file", '{"path":"a.txt"}')
LOG = "riskgate"


def command(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


async def fill(person: Person, call: Callable[..., Any], count: int, name: str = "c") -> None:
    for number in range(count):
        await person.evaluate(call(*READ, f"{name}{number}"))


async def checkpoint(person: Person, **fields: Any) -> audit_pb2.GetCheckpointResponse:
    return await person.audit.GetCheckpoint(
        audit_pb2.GetCheckpointRequest(**fields), metadata=person.metadata, timeout=60
    )


def rewrite(connection: sa.Connection, log: str = LOG, *, position: int = 1, subject: str = "mallory") -> None:
    """Do what whoever writes to the database can: another record, every hash anew, no signed head left."""
    frontier = Frontier()
    query = sa.text("SELECT position, record FROM audit_entries WHERE log = :log ORDER BY position")
    for at, data in connection.execute(query, {"log": log}).all():
        record = json.loads(bytes(data)) | ({"subject": subject} if at == position else {})
        forged = canonical_bytes(record)
        frontier = frontier.append(leaf_hash(forged))
        connection.execute(
            sa.text("UPDATE audit_entries SET record = :record, leaf = :leaf WHERE log = :log AND position = :at"),
            {"record": forged, "leaf": leaf_hash(forged), "log": log, "at": at},
        )
    for table in ("audit_checkpoints", "audit_subtrees"):
        connection.execute(sa.text(f"DELETE FROM {table} WHERE log = :log"), {"log": log})
    connection.execute(
        sa.text("UPDATE audit_logs SET frontier = :frontier, signed_size = 0 WHERE name = :log"),
        {"frontier": frontier.to_bytes(), "log": log},
    )


def in_file(folder: Path, work: Callable[[sa.Connection], None]) -> None:
    """Change the database of a folder while no RiskGate serves."""
    engine = sa.create_engine(f"sqlite:///{folder}/riskgate.db")
    with engine.begin() as connection:
        work(connection)
    engine.dispose()


def forget_heads(gate: Any) -> None:
    """Leave a data folder as versions without kept heads did: nothing says that there ever were any."""
    shutil.rmtree(gate.settings.heads_dir)
    (gate.settings.keys_dir / "heads.begun").unlink()


async def refusal_to_start(gate: Any) -> str:
    with pytest.raises(StartError) as caught:
        await build(gate.settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "warned"), [(-3_600, True), (-86_400, True), (-20, False), (0, False), (60, False)]
)
async def test_a_start_with_a_clock_behind_the_newest_record_is_warned_about(make_gate, call, seconds, warned):
    gate = await make_gate()
    await gate.person("ana").evaluate(call("echo", '{"text":"a"}'))
    await gate.stop()
    gate.clock.advance(seconds)
    with capture_logs() as logs:
        again = await make_gate(clock=gate.clock)
    found = [one for one in logs if "behind the newest record" in one["event"]]
    assert [one["behind_seconds"] for one in found] == ([-seconds] if warned else [])
    await again.person("ana").evaluate(call("echo", '{"text":"b"}', "c2"))


async def test_a_history_that_was_rewritten_in_the_database_is_neither_served_nor_signed(make_gate, call, tmp_path):
    gate = await make_gate()
    await fill(gate.person("ana"), call, 5)
    await gate.stop()
    in_file(gate.folder, rewrite)
    said = await refusal_to_start(gate)
    assert "5 entries that do not begin with the 5 that were signed" in said
    assert "Restore the newest backup" in said
    assert "riskgate audit adopt --log riskgate --reason" in said
    out = tmp_path / "export.jsonl"
    exported = command("audit", "export", "--data-dir", gate.folder, "--out", out)
    assert (exported.exit_code, "without a new signature" in exported.output) == (1, True)
    assert not verify_export(out, list(gate.keys.public)).ok
    notes = [json.loads(line)["note"] for line in out.read_text().splitlines() if '"type":"checkpoint"' in line]
    assert notes == [HeadStore(gate.settings.heads_dir).last(LOG).note], "the head that was kept, and no other"
    assert command("audit", "verify", "--data-dir", gate.folder).exit_code == 1
    compared = command("audit", "heads", "--data-dir", gate.folder, "--json")
    assert compared.exit_code == 1
    assert [one["verdict"] for one in json.loads(compared.stdout)["logs"]] == ["ANOTHER LOG"]


async def test_a_log_rewritten_while_it_is_served_is_signed_as_it_was_and_the_forgery_is_found(
    make_gate, call, tmp_path
):
    gate = await make_gate(checkpoint_every=4)
    ana, aldo = gate.person("ana"), gate.person("aldo")
    await fill(ana, call, 5)
    gate.database.write_sync(rewrite)
    await fill(ana, call, 4, "later")
    out = tmp_path / "export.jsonl"
    command("audit", "export", "--data-dir", gate.folder, "--out", out)
    assert verify_export(out, list(gate.keys.public)).first_bad is not None
    head = await checkpoint(aldo)
    assert gate.heads.last(LOG).root == head.root_hash, "the head of what happened"


@pytest.mark.parametrize("again", [True, False], ids=["another of the same size", "shorter"])
async def test_a_log_that_changed_under_a_process_that_reads_it_anew_is_not_appended_to(
    make_gate, call, refused, again
):
    gate = await make_gate(checkpoint_every=2)
    ana, aldo = gate.person("ana"), gate.person("aldo")
    await fill(ana, call, 4)

    def change(connection: sa.Connection) -> None:
        if again:
            rewrite(connection)
        else:
            connection.execute(sa.text("DELETE FROM audit_entries WHERE position >= 2"))
            connection.execute(sa.text("DELETE FROM audit_checkpoints"))
            rewrite(connection)
            connection.execute(sa.text("UPDATE audit_logs SET size = 2"))

    gate.database.write_sync(change)
    gate.riskgate.audit._known = None  # as after a commit whose answer was lost
    before = gate.count("audit_entries")
    refusal = await refused(ana.evaluate(call(*READ, "next")))
    assert (refusal.code.name, "riskgate audit adopt" in refusal.message) == ("DATA_LOSS", True)
    assert (await refused(checkpoint(aldo))).code.name == "DATA_LOSS"
    assert gate.count("audit_entries") == before
    assert gate.riskgate.problem
    assert not await assemble(gate.riskgate, gate.database, gate.settings).healthy()


async def test_a_log_that_went_missing_is_missed_also_where_another_process_wrote_it(make_gate, call):
    ended = await make_gate("data", instance="ended")
    await fill(ended.person("ana"), call, 3)
    await ended.stop()
    gate = await make_gate("data", instance="other")
    await gate.stop()

    def remove(connection: sa.Connection) -> None:
        for table in ("audit_checkpoints", "audit_values", "audit_entries"):
            connection.execute(sa.text(f"DELETE FROM {table} WHERE log = 'riskgate/ended'"))
        connection.execute(sa.text("DELETE FROM audit_logs WHERE name = 'riskgate/ended'"))

    in_file(gate.folder, remove)
    assert "'riskgate/ended' of this database has 0 entries and 3 were signed" in await refusal_to_start(gate)


async def test_a_log_nobody_kept_a_head_of_is_not_signed_however_it_came_into_the_database(make_gate, call, refused):
    gate = await make_gate("data")
    await fill(gate.person("ana"), call, 2)

    def invent(connection: sa.Connection) -> None:
        names = "leaf, record, tenant, subject, kind, time_us"
        connection.execute(
            sa.text(
                "INSERT INTO audit_logs SELECT 'riskgate/9', size, frontier, 0, data_key_id, last_us FROM audit_logs"
            )
        )
        connection.execute(
            sa.text(
                f"INSERT INTO audit_entries (log, position, {names}) SELECT 'riskgate/9', position, {names} "
                "FROM audit_entries"
            )
        )

    gate.database.write_sync(invent)
    refusal = await refused(checkpoint(gate.person("aldo"), log="riskgate/9"))
    assert (refusal.reason, "no signed head" in refusal.message) == ("AUDIT_NOT_FOUND", True)
    out = gate.folder / "out.jsonl"
    exported = command("audit", "export", "--data-dir", gate.folder, "--out", out)
    assert (exported.exit_code, out.exists()) == (2, False)
    assert command("audit", "export", "--data-dir", gate.folder, "--out", out, "--log", LOG).exit_code == 0


@pytest.mark.slow
async def test_an_older_copy_of_the_database_is_refused_until_an_operator_adopts_it_with_a_reason(
    make_gate, call, tmp_path
):
    gate = await make_gate()
    await fill(gate.person("ana"), call, 3)
    await gate.stop()
    shutil.copy(gate.folder / "riskgate.db", tmp_path / "backup.db")
    gate = await make_gate()
    await fill(gate.person("ana"), call, 4, "later")
    await gate.stop()
    shutil.copy(tmp_path / "backup.db", gate.folder / "riskgate.db")
    assert "has 3 entries and 7 were signed" in await refusal_to_start(gate)
    data = ("--data-dir", gate.folder)
    assert command("audit", "adopt", "--reason", " ", *data).exit_code == 2
    adopted = command("audit", "adopt", "--reason", "disk died on Monday", *data, "--json")
    assert (adopted.exit_code, json.loads(adopted.stdout)["recorded"]) == (0, True), adopted.output
    assert json.loads(adopted.stdout)["adopted"] == [{"entries": 3, "log": LOG}]
    assert "nothing to adopt" in command("audit", "adopt", "--reason", "again", *data).output
    gate = await make_gate()
    await fill(gate.person("ana"), call, 2, "after")
    [record] = gate.records("heads_adopted")
    assert record["logs"][LOG]["size"] == 3
    lines = (gate.settings.heads_dir / "riskgate.heads").read_text().splitlines()
    assert "disk died on Monday" in lines[-1], "what was kept before stays above it"
    assert command("audit", "verify", *data).exit_code == 0


@pytest.mark.parametrize("rewritten", [True, False])
async def test_a_log_of_which_no_head_was_ever_kept_is_refused_until_an_operator_adopts_it(make_gate, call, rewritten):
    gate = await make_gate()
    await fill(gate.person("ana"), call, 3)
    await gate.stop()
    if rewritten:
        in_file(gate.folder, rewrite)
    forget_heads(gate)
    for _ in range(2):
        told = await refusal_to_start(gate)
        assert "a version before 0.2" in told
        assert "riskgate audit adopt" in told
    adopted = command("audit", "adopt", "--reason", "an old database", "--data-dir", gate.folder)
    assert adopted.exit_code == 0, adopted.output
    gate = await make_gate()
    [record] = gate.records("heads_adopted")
    assert {name: one["size"] for name, one in record["logs"].items()} == {LOG: 3}
    await gate.stop()
    gate = await make_gate()
    assert len(gate.records("heads_adopted")) == 1


async def test_a_new_replica_with_copied_keys_vouches_for_no_log_but_its_own(make_gate, call, tmp_path):
    gate = await make_gate()
    await fill(gate.person("ana"), call, 3)
    keys = tmp_path / "replica" / "keys"
    keys.mkdir(mode=0o700, parents=True)
    for name in ("code.key", "data.key", "signing.json"):
        shutil.copy(gate.settings.keys_dir / name, keys / name)
    replica = await make_gate("replica", instance="two", database_url=gate.settings.url)
    answer = await replica.person("ana").evaluate(call(*READ, "on-two"))
    assert gate.records("heads_adopted") == []
    assert (await checkpoint(replica.person("aldo"))).log == "riskgate/two"
    with pytest.raises(grpc.aio.AioRpcError, match="no signed head of the log 'riskgate' is stored"):
        await checkpoint(replica.person("aldo"), log=LOG)
    got = audit_pb2.GetReceiptRequest(decision_id=answer.decision_id)
    ana = replica.person("ana")
    assert (await ana.audit.GetReceipt(got, metadata=ana.metadata, timeout=60)).receipt


async def test_a_log_without_its_kept_head_says_what_to_do_on_another_machine(make_gate, call):
    gate = await make_gate()
    await fill(gate.person("ana"), call, 3)
    await gate.stop()
    shutil.rmtree(gate.settings.heads_dir)
    told = await refusal_to_start(gate)
    for part in ("another machine", "copy the folder", "RISKGATE_INSTANCE", "riskgate audit adopt --log riskgate"):
        assert part in told


@pytest.mark.slow
async def test_a_kill_between_commit_and_kept_head_is_made_up_for_at_the_next_start(
    rivals, tmp_path, shared_database, monkeypatch, call
):
    monkeypatch.setenv("RISKGATE_CHECKPOINT_EVERY", "3")
    doomed = await rivals("doomed", "riskgate.head#2")
    person = Person(doomed.channel, "local")
    with pytest.raises(Exception, match=r"UNAVAILABLE|Socket closed|reset"):
        await fill(person, call, 20)
    await asyncio.to_thread(doomed.process.wait, 60)
    store = HeadStore(tmp_path / "data" / "keys" / "heads")
    behind = store.last("riskgate/doomed")
    doomed.ready.unlink()
    again = await rivals("doomed")
    now = store.last("riskgate/doomed")
    assert behind.size < now.size, "what was committed, and not kept, is kept now"
    await fill(Person(again.channel, "local"), call, 4, "again")
    await again.stop()
    environment = {"RISKGATE_DATABASE_URL": shared_database} if shared_database else {}
    checked = CliRunner().invoke(app, ["audit", "verify", "--data-dir", str(tmp_path / "data")], env=environment)
    assert (checked.exit_code, "consistent with the given head" in checked.output) == (0, True), checked.output


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Take the room below the kept heads away, or give it back: a write takes half of its bytes and is refused."""
    write, taken = os.write, {"full": False}

    def half(descriptor: int, data: bytes) -> int:
        if taken["full"]:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size)
            write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr(durable_files.os, "write", half)
    return lambda *, now: taken.update(full=now)


async def test_a_full_disk_below_the_kept_heads_shows_no_head_and_soon_decides_nothing(make_gate, call, refused, full):
    gate = await make_gate(checkpoint_every=3)
    ana, aldo = gate.person("ana"), gate.person("aldo")
    await fill(ana, call, 2)
    kept = await checkpoint(aldo)
    full(now=True)
    codes = []
    for number in range(8):
        try:
            await ana.evaluate(call(*READ, f"full{number}"))
            codes.append("OK")
        except Exception as error:  # noqa: BLE001 - the code is what is told
            codes.append(error.code().name)
    answered = codes.count("OK")
    assert codes == ["OK"] * answered + ["RESOURCE_EXHAUSTED"] * (8 - answered)
    assert 3 <= answered < 6, "one head behind, and no further"
    assert gate.count("audit_entries") == 2 + answered
    assert (await refused(checkpoint(aldo))).reason == "STORE_FULL"
    out = gate.folder / "out.jsonl"
    assert command("audit", "export", "--data-dir", gate.folder, "--out", out).exit_code == 2
    assert gate.heads.last(LOG).note == kept.note
    full(now=False)
    await fill(ana, call, 3, "later")
    head = await checkpoint(aldo)
    assert (head.size, gate.heads.last(LOG).size) == (gate.count("audit_entries"),) * 2
    assert command("audit", "verify", "--data-dir", gate.folder).exit_code == 0


@pytest.mark.slow
async def test_replicas_exports_and_auditors_keep_heads_at_once_and_every_one_grows_out_of_the_last(
    make_gate, call, shared_database, tmp_path
):
    gates = [
        await make_gate("data", database_url=shared_database, instance=name, checkpoint_every=2)
        for name in ("one", "two")
    ]
    environment = {"RISKGATE_DATABASE_URL": shared_database} if shared_database else {}

    async def export(number: int) -> None:
        out = tmp_path / f"{number}.jsonl"
        words = ["audit", "export", "--data-dir", str(gates[0].folder), "--out", str(out)]
        done = await asyncio.to_thread(CliRunner().invoke, app, words, env=environment)
        assert done.exit_code == 0, done.output
        assert verify_export(out, list(gates[0].keys.public)).ok

    async def look(gate: Any, log: str) -> None:
        for _ in range(6):
            assert (await checkpoint(gate.person("aldo"), log=log)).log == log

    await asyncio.gather(
        *(fill(gate.person("ana"), call, 12, f"{at}-") for at, gate in enumerate(gates)),
        *(look(gate, log) for gate in gates for log in ("riskgate/one", "riskgate/two")),
        export(1),
    )
    await export(2)
    for name in ("one", "two"):
        path = gates[0].heads.path(f"riskgate/{name}")
        sizes = [json.loads(line)["size"] for line in path.read_text().splitlines()]
        assert sizes == sorted(sizes)
        assert gates[0].riskgate.problem == gates[1].riskgate.problem == ""


async def test_a_file_of_kept_heads_that_was_removed_is_missed_before_anything_else_is_signed(make_gate, call, refused):
    gate = await make_gate(checkpoint_every=2)
    ana = gate.person("ana")
    await fill(ana, call, 3)
    content = gate.heads.path(LOG).read_bytes()
    gate.heads.path(LOG).unlink()
    refusal = await refused(ana.evaluate(call(*READ, "next")))
    assert (refusal.code.name, "the file was removed" in refusal.message) == ("DATA_LOSS", True)
    assert not gate.heads.path(LOG).exists()
    gate.heads.path(LOG).write_bytes(content)
    await fill(ana, call, 1, "later")
    await gate.stop()
    gate.heads.path(LOG).unlink()
    assert "the file was removed" in await refusal_to_start(gate)


@pytest.mark.parametrize("rewritten", [True, False])
@pytest.mark.parametrize("how", ["removed", "emptied", "another folder", "cut"])
async def test_heads_that_are_gone_are_missed_and_nothing_is_adopted_in_their_place(
    make_gate, call, tmp_path, how, rewritten
):
    gate = await make_gate(checkpoint_every=2)
    await fill(gate.person("ana"), call, 3)
    await gate.stop()
    if rewritten:
        in_file(gate.folder, rewrite)
    if how == "another folder":
        gate.settings = gate.settings.model_copy(update={"heads_dir": tmp_path / "elsewhere"})
        gate.settings.heads_dir.mkdir()
    elif how == "cut":
        for file in gate.settings.heads_dir.glob("*.heads"):
            file.write_text("")
    else:
        shutil.rmtree(gate.settings.heads_dir)
        if how == "emptied":
            gate.settings.heads_dir.mkdir()
    for _ in range(2):
        told = await refusal_to_start(gate)
        assert "the file was removed" in told, told
        assert "riskgate audit adopt" in told
    assert not [one for one in gate.settings.heads_dir.glob("*.heads") if one.stat().st_size]


async def test_an_installation_that_was_begun_before_is_marked_at_its_next_start(make_gate, call):
    gate = await make_gate()
    await fill(gate.person("ana"), call, 2)
    await gate.stop()
    mark = gate.settings.keys_dir / "heads.begun"
    mark.unlink()
    gate = await make_gate()
    await gate.stop()
    assert mark.exists()
    shutil.rmtree(gate.settings.heads_dir)
    assert "the file was removed" in await refusal_to_start(gate)


def head_of(count: int, note: str = "n") -> KeptHead:
    frontier = Frontier()
    for number in range(count):
        frontier = frontier.append(leaf_hash(b"%d" % number))
    return KeptHead.of(frontier, note)


def test_a_line_that_a_crash_left_unfinished_is_dropped_and_any_other_damage_is_an_error(tmp_path):
    store = HeadStore(tmp_path / "heads")
    assert store.keep(LOG, head_of(1))
    path = store.path(LOG)
    path.write_bytes(path.read_bytes() + b'{"size": 2, "ro')
    assert store.last(LOG) == head_of(1)
    assert store.keep(LOG, head_of(2))
    assert [json.loads(line)["size"] for line in path.read_text().splitlines()] == [1, 2]
    assert not store.keep(LOG, head_of(1)), "an older one is not appended"
    with pytest.raises(HeadsDisagree, match="2 entries"):
        store.keep(LOG, KeptHead(2, b"f" * 32))
    for damage in (b"x\n", b"[]\n", b'{"size": -1, "root": "", "note": ""}\n', b'{"size": 3, "root": "zz"}\n'):
        path.write_bytes(damage)
        with pytest.raises(HeadsDisagree, match="restore the file"):
            store.last(LOG)


def test_an_append_that_found_no_room_leaves_the_file_as_it_was(tmp_path, full):
    store = HeadStore(tmp_path / "heads")
    store.keep(LOG, head_of(1))
    before = store.path(LOG).read_bytes()
    full(now=True)
    with pytest.raises(StoreFull, match="stored heads"):
        store.keep(LOG, head_of(2))
    assert store.path(LOG).read_bytes() == before


async def test_a_folder_that_takes_no_heads_keeps_riskgate_from_starting_and_is_named(make_gate, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DomainError, match="RISKGATE_HEADS_DIR"):
        await make_gate(heads_dir=blocked / "heads")
