"""Failing jobs of one transaction, in every way: what was acknowledged is complete, and nothing else is there."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import Unavailable
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.audit.log import AuditLog, Entry, Kind
from phylactery_riskgate.audit.merkle import Frontier, leaf_hash
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.store import audit as log_rows
from phylactery_riskgate.store import decisions
from phylactery_riskgate.store.decisions import DecisionRecord
from sqlalchemy.engine import Connection

WHO = Principal("ana", "acme", frozenset())
FAULTS = ("none", "none", "none", "before", "after", "taken", "taken at the end", "no such table")


class FaultError(Exception):
    """What a job raises of itself."""


def decision(number: int) -> DecisionRecord:
    texts = dict.fromkeys(("args_hash", "approval_id", "counted_approval_id", "permit_id", "risk", "tool_version"), "")
    return DecisionRecord(
        id=f"de_{number}",
        tenant="acme",
        subject="ana",
        run_id="r1",
        tool_call_id=f"c{number}",
        thread_id="t1",
        fingerprint="f",
        decision=Decision.BLOCKED,
        reasons=(),
        tool="t",
        policy_ids=(),
        bundle_revision=1,
        permit_us=0,
        create_us=number,
        audit_log="riskgate",
        audit_index=0,
        pathway="unspecified",
        **texts,
    )


class Bench:
    """A log and its database, and another process that writes the same log where a job says so."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        self.database.migrate(PACKAGE)
        key = Ed25519PrivateKey.generate()
        self.heads = tempfile.TemporaryDirectory(prefix="phylactery-heads-")
        store = HeadStore(Path(self.heads.name))
        vault = Vault(b"k" * 32)
        self.log = AuditLog("riskgate", vault=vault, data_key_id="k", signer=lambda: key, heads=store, sign_every=7)
        self.database.write_sync(self.log.open)

    def work(self, number: int, fault: str) -> Any:
        def run(connection: Connection) -> log_rows.Place:
            if fault == "before":
                raise FaultError
            entry = Entry(Kind.DECISION, number, WHO, {"number": number}, {"/arguments/a": number})
            place = self.log.append(connection, entry)
            record = decision(number)._replace(audit_index=place.index)
            if fault == "taken at the end":
                record = record._replace(id="de_taken")
            decisions.insert_decision(connection, record)
            found = decisions.find_decision(connection, "acme", record.id)
            assert found is not None
            if fault == "after":
                raise FaultError
            if fault == "taken":
                connection.execute(sa.text("INSERT INTO audit_logs SELECT * FROM audit_logs"))
            if fault == "no such table":
                connection.execute(sa.text("SELECT 1 FROM nowhere"))
            return place

        return run

    def numbers(self) -> dict[str, set[int]]:
        """Return which jobs left a decision, and which an entry, with its values."""

        def look(connection: Connection) -> dict[str, set[int]]:
            rows = connection.execute(sa.text("SELECT create_us FROM decisions WHERE id <> 'de_taken'")).scalars()
            entries = connection.execute(sa.text("SELECT position FROM audit_entries")).scalars()
            places = [log_rows.Place("riskgate", at) for at in entries]
            told = {(self.log.values(connection, "acme", place) or {})["/arguments/a"] for place in places}
            return {"decisions": set(rows), "entries": told}

        return self.database.read_sync(look)

    def head_fits(self) -> bool:
        def look(connection: Connection) -> bool:
            head, frontier = log_rows.find_head(connection, "riskgate"), Frontier()
            for at, entry in enumerate(log_rows.entries(connection, "riskgate")):
                assert (entry.index, entry.leaf) == (at, leaf_hash(entry.record))
                frontier = frontier.append(entry.leaf)
            assert head is not None
            return head.frontier == frontier

        return self.database.read_sync(look)


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_jobs_of_one_transaction_do_each_stands_or_falls_whole(
    tmp_path: Path, shared_database: str, seed: int
) -> None:
    chooser = random.Random(seed)
    bench = Bench(shared_database or f"sqlite:///{tmp_path / 'riskgate.db'}")
    other = Bench(shared_database or f"sqlite:///{tmp_path / 'riskgate.db'}")
    await bench.database.write(
        lambda connection: decisions.insert_decision(connection, decision(0)._replace(id="de_taken"))
    )
    kept: set[int] = set()
    for group in range(6):
        faults = [chooser.choice(FAULTS) for _ in range(chooser.randint(1, 12))]
        jobs = {1 + group * 100 + at: fault for at, fault in enumerate(faults)}
        if chooser.random() < 0.5:  # the head is not where this process left it
            number = 1 + group * 100 + 99
            await other.database.write(other.work(number, "none"))
            kept.add(number)
        answers = await asyncio.gather(
            *(bench.database.write(bench.work(number, fault)) for number, fault in jobs.items()), return_exceptions=True
        )
        lost_store = "no such table" in faults
        for (number, fault), answer in zip(jobs.items(), answers, strict=True):
            if isinstance(answer, log_rows.Place):
                assert fault == "none"
                kept.add(number)
            elif fault == "none":
                assert lost_store, answer
                assert isinstance(answer, Unavailable)
        assert bench.numbers() == {"decisions": kept, "entries": kept}
        assert bench.head_fits()
    bench.database.close()
    other.database.close()
