"""One log per writing process: migration of an older database, and the log id of rows."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import phylactery_riskgate
import pytest
import sqlalchemy as sa
from alembic import command
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery.riskgate.v1 import riskgate_pb2
from phylactery_chassis.auth.jws import encode
from phylactery_chassis.db import migrations
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError
from phylactery_riskgate.app import PACKAGE, build
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.audit.log import AuditLog, LogError
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import audit as rows
from phylactery_riskgate.store.audit import log_names
from phylactery_riskgate.store.locks import BusyError
from phylactery_riskgate.store.tables import METADATA

from tests.support.servers.postgres import brief_database

READ = ("read_file", '{"path":"a.txt"}')
_TABLES = ("audit_logs", "audit_entries", "audit_values", "decisions", "redemptions", "outcomes")


def downgraded(gate: Any, url: str) -> None:
    """Make a database of the first schema at url, with what the gate has written."""
    engine = sa.create_engine(url)
    versions = Path(inspect.getfile(phylactery_riskgate)).parent / "migrations" / "versions"
    config = migrations._config(versions)
    with engine.begin() as connection:
        config.attributes.update(connection=connection, version_table="phylactery_riskgate_version")
        command.upgrade(config, "0001")
        for name in _TABLES:
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            columns = [column.name for column in table.columns]
            rows = gate.database.read_sync(
                lambda c, t=METADATA.tables[name], names=columns: c.execute(sa.select(*(t.c[n] for n in names))).all()
            )
            if rows:
                connection.execute(table.insert(), [row._asdict() for row in rows])
        connection.execute(sa.text("UPDATE audit_entries SET record = :r WHERE position = 2"), {"r": b"["})
    engine.dispose()


@pytest.fixture
def fresh_database(postgres_url: str) -> str:
    """A database without a schema: what is under test makes its own."""
    return brief_database(postgres_url)


async def test_a_database_of_before_gets_log_and_labels_from_its_own_records(
    make_gate, shared_database, call, tmp_path
):
    old = await make_gate("old")
    ana = old.person("ana")
    permit = (await ana.evaluate(call(*READ))).permit
    await ana.redeem(permit, call(*READ))
    await ana.report("SUCCEEDED")
    shutil.copytree(old.settings.keys_dir, tmp_path / "new" / "keys")
    downgraded(old, shared_database or f"sqlite:///{tmp_path / 'new' / 'riskgate.db'}")
    new = await make_gate("new", database_url=shared_database, instance="other")
    ana = new.person("ana")
    again = await ana.evaluate(call(*READ))
    assert (again.replayed, again.audit_log, again.audit_index) == (True, "riskgate", 0)
    assert again.bound_call.arguments_json == '{"path":"a.txt"}'
    query = sa.text("SELECT tenant, subject, kind, time_us FROM audit_entries ORDER BY position")
    labels = new.database.read_sync(lambda c: c.execute(query).all())
    now_us = old.clock.now_us()
    assert [tuple(label) for label in labels] == [
        ("acme", "ana", "decision", now_us),
        ("acme", "ana", "redeemed", now_us),
        ("", "", "", 0),  # that record was altered by hand: the verifier tells, and the start does not fail
    ]


async def test_each_instance_writes_its_own_log_and_reads_what_the_others_decided(make_gate, shared_database, call):
    one = await make_gate(database_url=shared_database, instance="one")
    two = await make_gate(database_url=shared_database, instance="two")
    first = await one.person("ana").evaluate(call(*READ))
    again = await two.person("ana").evaluate(call(*READ))
    assert (first.audit_log, first.audit_index) == ("riskgate/one", 0)
    assert (again.replayed, again.audit_log, again.bound_call) == (True, "riskgate/one", first.bound_call)
    redeemed = await two.person("ana").redeem(first.permit, call(*READ))
    assert (await one.person("ana").redeem(first.permit, call(*READ))).receipt == redeemed.receipt
    for gate in (two, one):
        report = riskgate_pb2.ReportOutcomeRequest(execution_id="execution-1", outcome="OUTCOME_SUCCEEDED")
        ana = gate.person("ana")
        answer = await ana.decisions.ReportOutcome(report, metadata=ana.metadata)
        assert (answer.audit_log, answer.audit_index) == ("riskgate/two", 1)


async def test_a_replica_with_another_data_key_does_not_start_and_says_which_log_has_another(
    make_gate, shared_database, bundle
):
    one = await make_gate(database_url=shared_database, instance="one")
    kept = one.settings.keys_dir / "data.key"
    content = kept.read_bytes()
    kept.write_text(encode(b"k" * 32))
    other = RiskGateSettings(data_dir=one.folder, database_url=shared_database, instance="two", bundle=bundle, port=0)
    with pytest.raises(StartError, match=r"the log 'riskgate/one' .*restore the keys folder") as caught:
        await build(other)
    assert one.keys.data_key_id in str(caught.value)
    assert one.database.read_sync(log_names) == ["riskgate/one"]
    kept.write_bytes(content)
    service = await build(other)
    for hook in service.on_stop:
        await hook()
    assert one.database.read_sync(log_names) == ["riskgate/one", "riskgate/two"]


def log_of(name: str, letter: bytes, folder: Path) -> AuditLog:
    return AuditLog(
        name,
        vault=Vault(letter * 32),
        data_key_id=letter.decode(),
        signer=Ed25519PrivateKey.generate,
        heads=HeadStore(folder),
    )


def test_of_two_that_begin_at_once_with_different_data_keys_one_does(fresh_database, tmp_path):
    database = Database(fresh_database)
    database.migrate(PACKAGE)
    with database.engine.begin() as opening, database.engine.connect() as other:
        log_of("one", b"k", tmp_path).open(opening)
        with pytest.raises(BusyError):
            log_of("two", b"K", tmp_path).open(other)
        other.rollback()
        opening.commit()
        with pytest.raises(LogError, match="'one'"):
            log_of("two", b"K", tmp_path).open(other)
    database.close()


def test_a_log_that_another_process_creates_between_the_look_and_the_lock_is_continued(
    fresh_database, tmp_path, monkeypatch
):
    database = Database(fresh_database)
    database.migrate(PACKAGE)
    lock = rows.lock_names

    def lock_late(connection):
        monkeypatch.setattr(rows, "lock_names", lock)
        with database.engine.begin() as faster:
            log_of("one", b"k", tmp_path).open(faster)
        lock(connection)

    monkeypatch.setattr(rows, "lock_names", lock_late)
    with database.engine.begin() as slower:
        log_of("one", b"k", tmp_path).open(slower)
    assert database.read_sync(log_names) == ["one"]
    database.close()
