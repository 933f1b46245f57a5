"""EvaluateBatch: many questions of one caller, answered together but decided independently.

A batch is processed in passes: all questions are decided, then all are recorded, then every permit is signed. So no
question needs its own task or future.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.jobs import Work
from phylactery_chassis.errors import STORE_FAILED, DomainError, InvalidArgument, Violation
from phylactery_chassis.util.crashpoints import reach

from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.evaluate import Evaluation
from phylactery_riskgate.decisions.proposals import key_of
from phylactery_riskgate.decisions.questions import Evaluated, Question, Stored
from phylactery_riskgate.decisions.requests import EvaluateInput
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.store.decisions import look_ahead

Answer = Evaluated | DomainError


class Batches:
    """The EvaluateBatch use case."""

    def __init__(self, core: DecisionContext, evaluation: Evaluation) -> None:
        self._core, self._evaluation = core, evaluation

    async def evaluate(self, who: Principal, questions: Sequence[EvaluateInput | DomainError]) -> list[Answer]:
        """Return a decision or an error for each question, in order, once all of them are durable.

        A question that could not be parsed is passed as its error. All are recorded in order, in one transaction, or in
        several if hundreds of writes are queued or the database server is slow. Raise PermissionDenied, and Unavailable
        STORE_UNAVAILABLE or StoreFull if no question could be recorded.
        """
        who.require(Role.CALLER)
        engine = await self._engine()
        decided = await self._decide(who, questions, engine)
        made = [one for one in decided if isinstance(one, Question)]
        stored = iter(await self._record(who, made))
        reach("riskgate.2")
        answers = [self._answer(one, next(stored)) if isinstance(one, Question) else one for one in decided]
        failed = [one for one in answers if isinstance(one, STORE_FAILED)]
        if len(failed) == len(answers):
            raise failed[0]
        return answers

    async def _engine(self) -> DecisionEngine | None:
        """Return one engine for all questions, or None if no engine may decide; each question then reports why.

        If each question looked for a later bundle, they would be processed one after another.
        """
        try:
            return await self._core.live.at_least(0)
        except DomainError:
            return None

    async def _decide(
        self, who: Principal, questions: Sequence[EvaluateInput | DomainError], engine: DecisionEngine | None
    ) -> list[Question | DomainError]:
        """Decide about each question; start those that have to read first concurrently, so the others do not wait."""
        reading = [at for at, one in enumerate(questions) if isinstance(one, EvaluateInput) and _reads(one)]
        read = await asyncio.gather(*(self._decide_one(who, questions[at], engine) for at in reading))
        found = dict(zip(reading, read, strict=True))
        return [
            found[at] if at in found else await self._decide_one(who, one, engine) for at, one in enumerate(questions)
        ]

    async def _decide_one(
        self, who: Principal, question: EvaluateInput | DomainError, engine: DecisionEngine | None
    ) -> Question | DomainError:
        if isinstance(question, DomainError):
            return question
        if question.execution_id:
            return _redeeming()
        try:
            return await self._evaluation.decide(who, question, engine)
        except DomainError as error:
            return error

    async def _record(self, who: Principal, questions: Sequence[Question]) -> list[Stored | DomainError]:
        """Record each question as if it came alone, after one lookup of all their places."""
        places = [
            key_of(who, one.asked.run_id, one.asked.call.tool_call_id) for one in questions if not one.asked.approval_id
        ]
        works: list[Work[Any]] = [partial(look_ahead, keys=places)]
        works += [self._evaluation.work_of(one) for one in questions]
        return (await self._core.write_all(works))[1:]

    def _answer(self, question: Question, stored: Stored | DomainError) -> Answer:
        return stored if isinstance(stored, DomainError) else self._evaluation.answer(question, stored)


def _redeeming() -> InvalidArgument:
    why = "a call of a batch is redeemed by Redeem"
    return InvalidArgument(
        "INVALID_REQUEST", f"the request is not valid: execution_id: {why}", violations=[Violation("execution_id", why)]
    )


def _reads(question: EvaluateInput) -> bool:
    return bool(question.approval_id or question.task_id)
