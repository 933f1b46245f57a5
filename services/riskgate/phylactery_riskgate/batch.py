"""EvaluateBatch: many questions of one caller, answered together, and each for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from phylactery_chassis.errors import STORE_FAILED, DomainError
from phylactery_chassis.identity import Principal, Role

from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.evaluation import Evaluated, Evaluation
from phylactery_riskgate.live import LiveBundle
from phylactery_riskgate.requests.decisions import EvaluateInput

Answer = Evaluated | DomainError


class Batches:
    """The use case; see the module."""

    def __init__(self, evaluation: Evaluation, live: LiveBundle) -> None:
        self._evaluation, self._live = evaluation, live

    async def evaluate(self, who: Principal, questions: Sequence[EvaluateInput | DomainError]) -> list[Answer]:
        """Answers a decision or an error for each question, in order, once all of them are durable.

        A question that could not even be read comes as its error. Decisions without a task are made in one turn of the
        event loop, and so recorded in one transaction, or in two or more where hundreds of writes wait or a database
        server is slow; others once what their task was shown is read. Raises PermissionDenied, and Unavailable
        STORE_UNAVAILABLE or StoreFull where no question could be recorded.
        """
        who.require(Role.CALLER)
        engine = await self._engine()
        answers = await asyncio.gather(*(self._answer(who, one, engine) for one in questions))
        failed = [one for one in answers if isinstance(one, STORE_FAILED)]
        if len(failed) == len(answers):
            raise failed[0]
        return answers

    async def _engine(self) -> DecisionEngine | None:
        """Answers the engine for all: questions that each looked for a later bundle would go on one after another.

        None where no engine may decide; then each question says why.
        """
        try:
            return await self._live.at_least(0)
        except DomainError:
            return None

    async def _answer(
        self, who: Principal, question: EvaluateInput | DomainError, engine: DecisionEngine | None
    ) -> Answer:
        if isinstance(question, DomainError):
            return question
        try:
            return await self._evaluation.evaluate(who, question, engine)
        except DomainError as error:
            return error
