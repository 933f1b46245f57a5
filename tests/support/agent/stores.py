"""The agent's stores over a real SQLite file, for tests without a graph or other services."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from phylactery_agent.ports import BoundCall, ProposedCall, Told
from phylactery_agent.runtime.dispatch.claims import ClaimStore
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.leases import Leases
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.ledger import SqlLedger
from phylactery_agent.runtime.effects.outbox import OutboxStore
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.runs.queries import ThreadStore
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import EventLog, ThreadEvents
from phylactery_agent.runtime.storage.records import Claim, Ending, Incoming, Lease, Owner, StoredTurn
from phylactery_agent.runtime.storage.schema import METADATA
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_agent.runtime.turn.server import ServeTurn
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.sealed import seal_under
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from tests.support.clock import FakeClock

ANA = Owner("acme", "ana")
BEN = Owner("acme", "ben")
_TIMED = (
    ("agent_runs", "lease_until_us"),
    ("agent_runs", "due_us"),
    ("agent_duties", "until_us"),
    ("agent_escalations", "claim_until_us"),
    ("agent_escalations", "queued_us"),
)
"""Columns compared only with the database's clock, because several processes share it."""
T1 = ANA.thread_key("t1")
"""The thread used by most tests."""


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def incoming(message_id: str = "request-1", text: str = "hola", owner: Owner = ANA, **changes: Any) -> Incoming:
    fields: dict[str, Any] = {
        "owner": owner,
        "message_id": message_id,
        "thread_id": "t1",
        "body_hash": sha(text),
        "text": text,
        "language": "es",
        "turn_id": new_id("tu"),
        **changes,
    }
    return Incoming(**fields)


def call(tool_call_id: str = "c1", tool: str = "write_file") -> ProposedCall:
    return ProposedCall(tool, tool_call_id, {"path": "a"}, '{"path":"a"}', sha('{"path":"a"}'))


BOUND = BoundCall("write_file", "v1", '{"path":"a"}', sha('{"path":"a"}'))


class WrittenEvents(ThreadEvents):
    """Events written at once, without follow-up actions."""

    async def emit(self, *told: Told) -> None:
        await super().emit(*told)
        await self._writes.flush()


class Stores:
    """Every store over one database, with a clock that the test moves."""

    def __init__(self, database: Database) -> None:
        self.database, self.clock, self.news = database, FakeClock(), ThreadNotifier()
        self.tools = ToolRegistry()
        self.inbox, self.runs = InboxStore(database, self.clock), RunStore(database, self.clock, self.tools)
        self.claims = ClaimStore(database, self.clock)
        self.leases, self.outbox = Leases(database, self.clock), OutboxStore(database, self.clock)
        self.log, self.threads = EventLog(database), ThreadStore(database)

    def writes(self, lease: Lease) -> TurnWrites:
        return TurnWrites(self.database, self.clock, lease, written=lambda: self.news.tell(lease.thread_key))

    def events(self, lease: Lease) -> WrittenEvents:
        return WrittenEvents(self.writes(lease))

    def ledger(self, lease: Lease) -> SqlLedger:
        return self.ledger_of(self.writes(lease))

    def ledger_of(self, writes: TurnWrites) -> SqlLedger:
        return SqlLedger(self.database, writes, self.tools)

    async def accepted(self, message_id: str = "request-1", text: str = "hola", **changes: Any) -> StoredTurn:
        return await self.inbox.accept(incoming(message_id, text, **changes))

    def named_leases(self, holder: str = "me") -> NamedLeases:
        return NamedLeases(self.database, self.clock, holder)

    def pass_time(self, seconds: float) -> None:
        """Advance time, also for leases judged by the database's own clock."""
        self.clock.advance(seconds)
        if not self.database.dialect.is_server:
            return
        moved = (sa.text(f"UPDATE {t} SET {c} = {c} - {round(seconds * 1e6)} WHERE {c} > 0") for t, c in _TIMED)

        def work(connection: Connection) -> None:
            for statement in moved:
                connection.execute(statement)

        self.database.write_sync(work)

    async def claimed(self, thread_id: str = "t1", holder: str = "me", owner: Owner = ANA) -> Claim:
        claim = await self.claims.claim_next(owner.thread_key(thread_id), holder)
        assert claim is not None
        return claim

    async def end(
        self, claim: Claim, status: str = "done", *, writes: TurnWrites | None = None, **changes: Any
    ) -> None:
        fields: dict[str, Any] = {"reason": "ANSWERED", "reply_id": f"{claim.lease.turn_id}.r", "reply_text": "listo"}
        await self.runs.end_turn(
            writes or self.writes(claim.lease),
            claim.turn,
            Ending(status=status, **{**fields, **changes}),
            active_us=claim.run.active_us,
        )

    def rows(self, table: str, columns: str = "*") -> list[Any]:
        """Return rows, with what their columns seal opened."""
        types = {one.name: one.type for one in METADATA.tables[table.split(maxsplit=1)[0]].columns}
        query = sa.text(f"SELECT {columns} FROM {table}").columns(**types)
        return self.database.read_sync(lambda c: list(c.execute(query)))


def runner_of(
    stores: Stores,
    serve: ServeTurn,
    *,
    holder: str = "me",
    max_concurrent: int = 2,
    retry_seconds: float = 0.01,
    **more: Any,
) -> Dispatcher:
    """Return a runner over the stores, configured as in the agent."""
    return Dispatcher(
        stores.inbox,
        stores.claims,
        serve,
        stores.named_leases(holder),
        holder=holder,
        max_concurrent=max_concurrent,
        retry_seconds=retry_seconds,
        shared=stores.database.dialect.is_server,
        **more,
    )


SEALER = Sealer(bytes(32))


def opened(url: str, sealer: Sealer = SEALER) -> Database:
    """Return an agent's database, sealed under the key that all such databases of tests share, or another."""
    database = Database(url)
    seal_under(database, sealer.columns)
    return database


@contextmanager
def open_stores(url: str) -> Iterator[Stores]:
    database = opened(url)
    try:
        database.migrate("phylactery_agent")
        yield Stores(database)
    finally:
        database.close()
