"""Decides recorded calls again under another bundle, and tells those that come out otherwise. Nothing is recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field

from phylactery_chassis.auth.identity import Principal, Role
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit import AuditLog
from phylactery_riskgate.bundle_acceptance import invalid
from phylactery_riskgate.core import Core
from phylactery_riskgate.domain.bundle import BundleError, read_bundle
from phylactery_riskgate.domain.bundle_files import read_parts
from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.recalling import Lost, Outlook, Recalled, openness, outlook_of, recall_page
from phylactery_riskgate.store.audit_search import Position

MAX_DECISIONS = 100_000
DEFAULT_DECISIONS = 10_000
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Flip:
    """One call that would be decided otherwise."""

    decision_id: str
    tool: str
    time_us: int
    before: Outlook
    after: Outlook
    policy_ids: tuple[str, ...]
    widens: bool


@dataclass(slots=True)
class Summary:
    """What a replay found: ``erased``, ``unbound`` and ``frozen`` decisions could not be made again."""

    revision: int
    replayed: int = 0
    flipped: int = 0
    erased: int = 0
    unbound: int = 0
    frozen: int = 0
    changes: Counter[tuple[Outlook, Outlook]] = field(default_factory=Counter)


class Replay:
    """One replay under one engine; feed it pages, and read its summary at the end."""

    def __init__(self, engine: DecisionEngine) -> None:
        self._engine = engine
        self._ranks = {one.name: one.rank for one in engine.bundle.classes}
        self.summary = Summary(engine.bundle.revision)

    def decide(self, page: Iterable[Recalled | Lost]) -> Iterator[Flip]:
        """Decides each again and answers those that flip."""
        for one in page:
            if isinstance(one, Lost):
                self.summary.erased += one.erased
                self.summary.frozen += one.frozen
                self.summary.unbound += not (one.erased or one.frozen)
                continue
            verdict = one.ask(self._engine)
            after = outlook_of(verdict)
            self.summary.replayed += 1
            if after == one.outlook:
                continue
            self.summary.flipped += 1
            self.summary.changes[one.outlook, after] += 1
            widens = openness(after, self._ranks) > openness(one.outlook, self._ranks)
            yield Flip(one.decision_id, one.call.tool, one.time_us, one.outlook, after, verdict.policy_ids, widens)


def replay_all(
    connection: Connection, audit: AuditLog, tenant: str, replay: Replay, *, since_us: int, limit: int
) -> Iterator[Flip]:
    """Replays a tenant's decisions from one connection."""
    after: Position | None = None
    while limit > 0:
        page, after = recall_page(connection, audit, tenant, since_us=since_us, after=after, limit=min(limit, _PAGE))
        yield from replay.decide(page)
        limit -= len(page)
        if after is None:
            return


class Replays:
    """The use case; see the module."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def run(
        self, who: Principal, parts: Iterable[tuple[str, bytes]], *, since_us: int, limit: int
    ) -> AsyncIterator[Flip | Summary]:
        """Answers every flip of the caller's tenant, newest first, and the summary last.

        Raises InvalidArgument BUNDLE_INVALID and Unavailable STORE_UNAVAILABLE.
        """
        if Role.INSTALLATION_OPERATOR not in who.roles:
            who.require(Role.POLICY_ADMIN)

        def prepare() -> Replay:
            try:
                return Replay(DecisionEngine(read_bundle(read_parts(parts))))
            except BundleError as error:
                raise invalid(error) from None

        replay, left, after = await asyncio.to_thread(prepare), limit or DEFAULT_DECISIONS, None
        while left > 0:
            page, after = await self._core.database.read(self._reader(who, since_us, after, min(left, _PAGE)))
            left -= len(page)
            for flip in await asyncio.to_thread(_listed, replay, page):
                yield flip
            if after is None:
                break
        yield replay.summary

    def _reader(
        self, who: Principal, since_us: int, after: Position | None, limit: int
    ) -> Callable[[Connection], tuple[list[Recalled | Lost], Position | None]]:
        return lambda connection: recall_page(
            connection, self._core.audit, who.tenant, since_us=since_us, after=after, limit=limit
        )


def _listed(replay: Replay, page: list[Recalled | Lost]) -> list[Flip]:
    return list(replay.decide(page))
