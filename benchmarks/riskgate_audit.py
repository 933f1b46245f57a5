"""The audit log: appending entries, and offline verification of an export of a hundred thousand."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import time
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.audit.export import export_log, verify_export
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.audit.log import AuditLog, Entry, Kind
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.keys.ring import KeyRing, load_keys
from phylactery_riskgate.store.audit import Place

from benchmarks.measure import emit

_ENTRIES, _AT_ONCE = 100_000, 256
_WHO = Principal("ana", "acme", frozenset())
_HASH = "sha256:" + "0" * 64


def _entry(number: int) -> Entry:
    body = {
        "decision_id": f"de_{number:026d}",
        "decision": "ALLOW",
        "reasons": [{"code": "POLICY_PERMIT", "message": "Allowed by: read", "path": "", "policy_id": "read.allow"}],
        "policy_ids": ["read.allow"],
        "bundle_revision": 1,
        "bundle_hash": _HASH,
        "thread_id": "bench",
        "run_id": "run",
        "tool_call_id": f"call-{number}",
        "tool": "read_file",
    }
    values = {"/arguments/path": f"{number}.txt", "/args_hash": _HASH}
    return Entry(Kind.DECISION, 1_790_000_000_000_000 + number, _WHO, body, values)


async def run() -> None:
    """Print the lines."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        ring = load_keys(Path(folder) / "keys")
        vault, heads = Vault(ring.data_key), HeadStore(Path(folder) / "keys" / "heads")
        log = AuditLog("bench", vault=vault, data_key_id=ring.data_key_id, signer=lambda: ring.signer, heads=heads)
        database = Database(f"sqlite:///{folder}/bench.db")
        try:
            database.migrate(PACKAGE)
            await database.write(log.open)
            await _append(database, log, Path(folder))
            _verify(database, ring, heads, Path(folder) / "export.jsonl")
        finally:
            database.close()


async def _append(database: Database, log: AuditLog, folder: Path) -> None:
    async def one(number: int) -> Place:
        return await database.write(lambda connection: log.append(connection, _entry(number)))

    began, cpu = time.perf_counter(), time.process_time()
    for at in range(0, _ENTRIES, _AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(at, min(at + _AT_ONCE, _ENTRIES))))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    emit(
        "audit_append_per_s",
        _ENTRIES / seconds,
        "entries/s",
        seconds_100k=seconds,
        cpu_us=cpu / _ENTRIES * 1e6,
        at_once=_AT_ONCE,
        floor_plain_insert_per_s=_plain_inserts(folder),
    )


def _plain_inserts(folder: Path) -> float:
    """Return how many rows of that size the store inserts per second, without hash, seal or tree."""
    plain = Database(f"sqlite:///{folder}/plain.db")
    row = {"record": json.dumps(_entry(0).body).encode()}
    try:
        plain.write_sync(lambda c: c.execute(sa.text("CREATE TABLE t (id INTEGER PRIMARY KEY, record BLOB)")).rowcount)
        insert, batches = sa.text("INSERT INTO t (record) VALUES (:record)"), _ENTRIES // _AT_ONCE // 10
        began = time.perf_counter()
        for _ in range(batches):
            plain.write_sync(lambda c: c.execute(insert, [row] * _AT_ONCE).rowcount)
        return batches * _AT_ONCE / (time.perf_counter() - began)
    finally:
        plain.close()


def _verify(database: Database, ring: KeyRing, heads: HeadStore, out: Path) -> None:
    export = partial(export_log, name="bench", out=out, keys=ring.public, signer=ring.signer, heads=heads)
    count = database.read_sync(export)
    began = time.perf_counter()
    found = verify_export(out, list(ring.public))
    seconds = time.perf_counter() - began
    assert found.ok, found.problem
    began = time.perf_counter()
    with out.open("rb") as file:
        for line in file:
            json.loads(line)
            hashlib.sha256(line).digest()
    floor = time.perf_counter() - began
    emit("audit_verify_100k_s", seconds, "s", entries=count, floor_parse_and_hash_s=floor)
