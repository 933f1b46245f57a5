"""Beginning a run that failed once more: a new run with the same words, and nothing the old one did is hidden."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Record
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition, Unavailable
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crypto import sha256
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_agent.ports import EffectState
from phylactery_agent.runtime.intake.coalescing import as_one
from phylactery_agent.runtime.intake.inbox import next_position
from phylactery_agent.runtime.intake.rows import find_turn, insert_run, insert_turn, turn_of
from phylactery_agent.runtime.intake.waiting import MAX_WAITING
from phylactery_agent.runtime.runs.status import ACTIVE, SERVED, RunStatus
from phylactery_agent.runtime.runs.store import owned_run, run_of, tool_call_of, with_thread
from phylactery_agent.runtime.storage.records import Incoming, Owner, StoredRun, StoredToolCall, StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX, RUNS, TOOL_CALLS
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import ToolRegistry

_RETRYABLE: Final = (RunStatus.FAILED, RunStatus.DEAD)
_BEGUN: Final = (EffectState.STARTED, EffectState.FINISHED, EffectState.IN_DOUBT)
_NAMED: Final = 10
"""How many calls an error names."""
_TRIES: Final = 5

EFFECTS: Final = "EFFECTS"
"""Why a run is not begun once more that did something outside, or may have."""

Why = Literal["NOT_FAILED", "RETRIED", "WORDS_GONE", "NO_TOOLS", "THREAD_BUSY", "EFFECTS"]


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """Who wants which run once more; level, credential_hash and tools are the caller's of today, not of the old run."""

    owner: Owner
    run_id: str
    request_id: str
    acknowledge_effects: bool
    level: str
    credential_hash: str
    traceparent: str
    tools: tuple[str, ...] = ()
    """The only tools the caller may use; empty narrows nothing."""


@dataclass(frozen=True, slots=True)
class Retried:
    """The new run, and what the runs before it did outside or may have done."""

    run: StoredRun
    effects: Sequence[StoredToolCall]
    fresh: bool
    """Says that this very call began it."""


class Retries:
    """Retry of ended runs."""

    def __init__(self, database: Database, clock: Clock, tools: ToolRegistry) -> None:
        self._database, self._clock, self._tools = database, clock, tools

    async def retry(self, request: RetryRequest) -> Retried:
        """Commit the new run, queued, with its message; the same request_id answers the same run.

        Raise NotFound RUN_NOT_FOUND, FailedPrecondition RUN_NOT_RETRYABLE, AlreadyExists REQUEST_CONFLICT.
        """
        clock, tools = self._clock, self._tools
        for _ in range(_TRIES):
            try:
                return await self._database.write(lambda connection: _retry(connection, request, tools, clock.now_us()))
            except IntegrityError:  # another process was faster with the thread's next run: now it shows
                continue
        raise Unavailable("STORE_UNAVAILABLE", "other processes begin runs of this thread faster; try again")


def _retry(connection: Connection, request: RetryRequest, tools: ToolRegistry, now: int) -> Retried:
    owner = request.owner
    old = owned_run(connection, owner, request.run_id, lock=True)
    there = find_turn(connection, owner.tenant, owner.user_id, request.request_id)
    if there is not None:
        return _answered(connection, request, tools, there)
    # accepting a message for the thread writes this row
    position = next_position(connection, old.thread_key, now)
    effects = _effects(connection, old, tools)
    words = _checked(connection, request, old, effects)
    opening = Incoming(
        owner=owner,
        message_id=request.request_id,
        thread_id=old.thread_id,
        body_hash=_body_hash(request.run_id),
        text=words.text,
        language=words.language,
        turn_id=new_id("tu"),
        findings=words.findings,
        allowed_tools=_narrowed(words.allowed_tools, request.tools),
        level=request.level,
        credential_hash=request.credential_hash,
        traceparent=request.traceparent,
        do_not_store=words.do_not_store,
        attachments=words.attachments,
        others=words.others,
        message_starts=words.message_starts,
    )
    run_id = insert_run(connection, opening, now)
    connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(retry_of=old.run_id, graph=old.graph))
    insert_turn(connection, opening, now, position=position, source=owner.user_id, approval_id="", run_id=run_id)
    return Retried(run_of(owned_run(connection, owner, run_id)), effects, fresh=True)


def _answered(connection: Connection, request: RetryRequest, tools: ToolRegistry, there: Record) -> Retried:
    """Return what this request_id came to before. Raise AlreadyExists where it asked for something else."""
    if there.body_hash != _body_hash(request.run_id):
        raise AlreadyExists(
            "REQUEST_CONFLICT",
            f"request_id '{request.request_id}' came with another body before; use a new one",
            metadata={"request_id": request.request_id},
        )
    run = owned_run(connection, request.owner, there.run_id)
    effects = _effects(connection, owned_run(connection, request.owner, request.run_id), tools)
    return Retried(run_of(run), effects, fresh=False)


def _checked(
    connection: Connection, request: RetryRequest, old: Record, effects: Sequence[StoredToolCall]
) -> StoredTurn:
    """Return the message to begin with. Raise FailedPrecondition RUN_NOT_RETRYABLE, and says what to do."""
    run_id = old.run_id
    if old.status not in _RETRYABLE:
        raise _refusal("NOT_FAILED", f"the run '{run_id}' is {old.status}; only one that failed begins once more")
    newer = connection.execute(sa.select(RUNS.c.run_id).where(RUNS.c.retry_of == run_id)).scalar()
    if newer is not None:
        raise _refusal("RETRIED", f"the run '{run_id}' was already retried as '{newer}'", run_id=newer)
    words = _words(connection, run_id)
    if words is None or not words.text.strip():
        raise _refusal("WORDS_GONE", f"the words of the run '{run_id}' are not kept any more; say them again")
    if words.allowed_tools and request.tools and not _narrowed(words.allowed_tools, request.tools):
        raise _refusal(
            "NO_TOOLS",
            f"the run '{run_id}' began with other tools than you may use; retry it as its caller",
        )
    if _busy(connection, old.thread_key):
        raise _refusal("THREAD_BUSY", "the thread is serving something else; let it end, or cancel it, and try again")
    if effects and not request.acknowledge_effects:
        raise _refusal(
            EFFECTS,
            f"{_told(effects)}: beginning once more may do it a second time; look at the outside, and say "
            "acknowledge_effects if that is what you want",
            tool_call_ids=",".join(call.tool_call_id for call in effects[:_NAMED]),
        )
    return words


def _narrowed(then: tuple[str, ...], today: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools both callers may use; a caller with none named is not narrowed, and take none away."""
    return tuple(tool for tool in then if tool in today) if then and today else then or today


def _refusal(why: Why, message: str, **metadata: str) -> FailedPrecondition:
    return FailedPrecondition("RUN_NOT_RETRYABLE", message, metadata={"why": why, **metadata})


def _told(effects: Sequence[StoredToolCall]) -> str:
    """Return what happened, by tool, call and state; arguments are for RiskGate to show."""
    named = [f"{call.tool} ('{call.tool_call_id}') is {call.state.replace('_', ' ')}" for call in effects[:_NAMED]]
    more = len(effects) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more > 0 else [])])


def _words(connection: Connection, run_id: str) -> StoredTurn | None:
    """Return the message that opened a run as one with those that were answered together with it."""
    row = connection.execute(
        sa.select(INBOX)
        .where(INBOX.c.run_id == run_id, INBOX.c.kind == "message", INBOX.c.resumed == sa.false())
        .order_by(INBOX.c.position)
        .limit(1)
    ).one_or_none()
    if row is None or row.message_starts is None:  # of a message from before it is not known who wrote it
        return None
    joined = sa.select(INBOX).where(INBOX.c.lead_turn == row.turn_id).order_by(INBOX.c.position)
    return as_one(tuple(turn_of(one) for one in (row, *connection.execute(joined))))


def _busy(connection: Connection, thread_key: str) -> bool:
    """Return whether the thread is served, waits for an answer to a question, or has its bound of waiting runs."""
    suspended = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key == thread_key, RUNS.c.status == RunStatus.SUSPENDED)
    if len(connection.execute(suspended).all()) >= MAX_WAITING:
        return True
    active = sa.select(RUNS.c.run_id).where(
        RUNS.c.thread_key == thread_key,
        sa.or_(RUNS.c.status.in_(SERVED), sa.and_(RUNS.c.status.in_(ACTIVE), RUNS.c.approval_id == "")),
    )
    waiting = sa.select(INBOX.c.turn_id).where(INBOX.c.thread_key == thread_key, INBOX.c.state == "waiting")
    return any(connection.execute(query.limit(1)).first() is not None for query in (active, waiting))


def _effects(connection: Connection, old: Record, tools: ToolRegistry) -> Sequence[StoredToolCall]:
    """Return every call of a run, and of those it is a retry of, that changed something outside or may have.

    One that failed counts: only a person knows that nothing of it happened. Read never matter.
    """
    line, before = [old.run_id], old.retry_of
    while before and before not in line:
        line.append(before)
        before = connection.execute(sa.select(RUNS.c.retry_of).where(RUNS.c.run_id == before)).scalar() or ""
    query = with_thread().where(
        TOOL_CALLS.c.run_id.in_(line), TOOL_CALLS.c.state.in_(_BEGUN), TOOL_CALLS.c.resolution != "did_not_happen"
    )
    rows = connection.execute(query.order_by(TOOL_CALLS.c.created_us, TOOL_CALLS.c.run_id, TOOL_CALLS.c.ordinal))
    return [tool_call_of(row) for row in rows if not _only_reads(tools.get(row.tool))]


def _only_reads(spec: ToolSpec | None) -> bool:
    """Return True if a tool changes nothing; one this process does not know may."""
    return spec is not None and spec.contract.effect == "read"


def _body_hash(run_id: str) -> str:
    """Return what tells this request from a message with the same request_id."""
    body = json.dumps(["retry", run_id])
    return sha256(body)
