"""Stored model replies, so that a node that runs again pays only once, and each run's model usage.

A call is charged with its maximum cost before any model is called, so that a crash in between resets nothing. The
actual cost replaces that charge together with the reply, in one transaction, before the reply is used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowInsert, RowUpdate, Update
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection, Row

from phylactery_agent.llm_client.config import RunLimits
from phylactery_agent.llm_client.response import arguments_of
from phylactery_agent.ports import ModelBudgetError, ModelCall, ModelReply
from phylactery_agent.runtime.dispatch.leases import RunCancelledError, require_lease, require_wanted
from phylactery_agent.runtime.guests.shares import NO_LIMITS, Shares
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.schema import MODEL_CALLS, RUNS

CALL_LIMIT = "MODEL_CALL_LIMIT"
TOKEN_LIMIT = "TOKEN_LIMIT"  # noqa: S105 - tokens of a model
MONEY_LIMIT = "MONEY_LIMIT"
DAILY_LIMIT = "DAILY_TOKEN_LIMIT"

_ROW = Query(
    sa.select(MODEL_CALLS).where(
        MODEL_CALLS.c.run_id == sa.bindparam("of_run"), MODEL_CALLS.c.key == sa.bindparam("of_key")
    )
)
_BEGUN = (
    "request_hash",
    "reply",
    "model",
    "prompt_tokens",
    "completion_tokens",
    "cost_micros",
    "fence",
    "created_us",
)
_ADD = RowInsert(MODEL_CALLS, "run_id", "key", *_BEGUN)
_SET = RowUpdate(MODEL_CALLS, "run_id", "key")
_SET_OF_RUN = RowUpdate(MODEL_CALLS, "run_id")
_COUNTERS = Query(
    sa.select(RUNS.c.model_calls, RUNS.c.tokens, RUNS.c.cost_micros).where(RUNS.c.run_id == sa.bindparam("of_run"))
)
_COUNT = Update(
    sa.update(RUNS)
    .where(RUNS.c.run_id == sa.bindparam("of_run"))
    .values(
        model_calls=RUNS.c.model_calls + sa.bindparam("more_calls", type_=sa.BigInteger),
        tokens=RUNS.c.tokens + sa.bindparam("more_tokens", type_=sa.BigInteger),
        cost_micros=RUNS.c.cost_micros + sa.bindparam("more_cost", type_=sa.BigInteger),
    )
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens, and cost in millionths of the currency unit."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_micros: int = 0

    @property
    def tokens(self) -> int:
        """Return the number of prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens


class ModelCallStore:
    """The model calls of runs. Every write proves the lease in its own transaction."""

    def __init__(self, database: Database, clock: Clock, shares: Shares = NO_LIMITS) -> None:
        """``shares`` limits the tokens each person may use a day."""
        self._database, self._clock, self._shares = database, clock, shares

    async def begin(
        self, lease: Lease, key: str, request_hash: str, *, most: Usage, limits: RunLimits
    ) -> ModelReply | None:
        """Return the stored reply of an earlier, identical call; otherwise charge the maximum and return None.

        A key reused with a different request is a new call that replaces the old row. Raise ModelBudgetError, in which
        case nothing is charged; LeaseLostError; RunCancelledError.
        """
        clock = self._clock

        def work(connection: Connection) -> ModelReply | None:
            now = clock.now_us()
            if require_lease(connection, lease, now):
                raise RunCancelledError(f"run {lease.run_id} was cancelled")
            row = _ROW.one(connection, {"of_run": lease.run_id, "of_key": key})
            if row is not None and row.request_hash == request_hash and row.reply is not None:
                return reply_of(row)
            _charge(connection, lease, most, limits)
            if not self._shares.take_for_turn(connection, lease, "tokens", now, amount=most.tokens):
                raise ModelBudgetError(DAILY_LIMIT)
            took = (most.prompt_tokens, most.completion_tokens, most.cost_micros)
            begun = (request_hash, None, "", *took, lease.fence, now)
            if row is None:
                _ADD.later(connection, [(lease.run_id, key, *begun)])
            else:
                _SET.later(connection, lease.run_id, key, **dict(zip(_BEGUN, begun, strict=True)))
            return None

        return await self._database.write(work)

    async def settle(
        self, lease: Lease, key: str, *, counted: Usage, took: Usage, reply: ModelReply | None, model: str = ""
    ) -> None:
        """Replace the charged maximum by the actual usage, and store the reply if there is one to keep.

        Raise LeaseLostError: the process that holds the run now charges and makes the call itself.
        """
        clock = self._clock

        def work(connection: Connection) -> None:
            now = clock.now_us()
            require_lease(connection, lease, now)
            self._shares.give_back(connection, lease.owner, "tokens", now, counted.tokens - took.tokens)
            _add(
                connection,
                lease,
                calls=took.calls - counted.calls,
                tokens=took.tokens - counted.tokens,
                cost=took.cost_micros - counted.cost_micros,
            )
            _SET.later(
                connection,
                lease.run_id,
                key,
                reply=None if reply is None else _to_bytes(reply),
                model=model,
                prompt_tokens=took.prompt_tokens,
                completion_tokens=took.completion_tokens,
                cost_micros=took.cost_micros,
                fence=lease.fence,
            )

        await self._database.write(work)

    async def require_wanted(self, lease: Lease) -> None:
        """Raise RunCancelledError if the run was cancelled."""
        await self._database.read_quickly(lambda connection: require_wanted(connection, lease.run_id), one=True)


def forget_replies(connection: Connection, run_id: str) -> None:
    """Drop the replies of a run that has ended: they are not needed again. The usage counters stay."""
    _SET_OF_RUN.later(connection, run_id, reply=None)


def _charge(connection: Connection, lease: Lease, most: Usage, limits: RunLimits) -> None:
    """Charge a call. Raise ModelBudgetError if it would exceed the run's limits."""
    used = _COUNTERS.one(connection, {"of_run": lease.run_id})
    assert used is not None, "a run whose lease was proved is there"
    if used.model_calls + most.calls > limits.calls:
        raise ModelBudgetError(CALL_LIMIT)
    if used.tokens + most.tokens > limits.tokens:
        raise ModelBudgetError(TOKEN_LIMIT)
    if limits.cost_micros and used.cost_micros + most.cost_micros > limits.cost_micros:
        raise ModelBudgetError(MONEY_LIMIT)
    _add(connection, lease, calls=most.calls, tokens=most.tokens, cost=most.cost_micros)


def _add(connection: Connection, lease: Lease, *, calls: int, tokens: int, cost: int) -> None:
    more = {"more_calls": calls, "more_tokens": tokens, "more_cost": cost}
    _COUNT.later(connection, {"of_run": lease.run_id, **more})


def _to_bytes(reply: ModelReply) -> bytes:
    calls = [{"id": call.id, "name": call.name, "raw": call.raw} for call in reply.calls]
    kept = {"text": reply.text, "calls": calls, "finish_reason": reply.finish_reason, "model": reply.model}
    return json.dumps(kept, ensure_ascii=False).encode()


def reply_of(row: Row[Any] | Record) -> ModelReply:
    """Return the reply stored in a row."""
    kept = json.loads(row.reply)
    return ModelReply(
        text=kept["text"],
        calls=tuple(
            ModelCall(call["id"], call["name"], arguments_of(call["raw"]), call["raw"]) for call in kept["calls"]
        ),
        finish_reason=kept["finish_reason"],
        model=kept["model"],
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cost_micros=row.cost_micros,
    )
