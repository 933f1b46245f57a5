"""Interpretations of requests by a real model, by the same prompt, bounds and checks as in the agent.

INTENT_MODEL_BASE_URL and INTENT_MODEL name it; its key and its bounds are the agent's settings (AGENT_MODEL_…,
AGENT_INTERPRETER_SECONDS).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from phylactery_agent.app import open_models
from phylactery_agent.llm_client.request import Spent
from phylactery_agent.llm_client.router import Models
from phylactery_agent.llm_client.settings import ModelSettings
from phylactery_agent.ports.model import AnswerForm, ModelMessage, ModelReply, ModelTool
from phylactery_agent.runtime.intake.interpretation import Interpreter
from phylactery_agent.runtime.turn.model_session import wire_question
from phylactery_agent.tools.contract import Contract, ToolSpec
from phylactery_chassis.util.clock import SystemClock
from phylactery_riskgate.domain.model import CatalogTool
from phylactery_understanding.interpretation.model import Interpretation
from pydantic import BaseModel

MODEL: Final = "INTENT_MODEL"
BASE_URL: Final = "INTENT_MODEL_BASE_URL"

Reader = Callable[[Sequence[str], Iterable[CatalogTool]], Awaitable[list[Interpretation | None]]]
"""What returns the interpretation of each of the messages of a conversation, by the tools there are."""


class _Asked:
    """A model without a run: nothing is stored of it."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def is_news(self, reason: str) -> bool:
        """Return False: no person is told of an outage."""
        del reason
        return False

    async def reply(
        self,
        messages: Sequence[ModelMessage],
        *,
        key: str,
        tools: Sequence[ModelTool] = (),
        on_text: Callable[[str], Awaitable[None]] | None = None,
        keep: bool = True,
        form: AnswerForm | None = None,
    ) -> ModelReply:
        """Return the reply; see the port. Calls of tools are none of an interpretation."""
        del keep
        answered = await self._models.ask(wire_question(messages, tools, form), Spent(), on_text, turn=key)
        heard = answered.heard
        return ModelReply(heard.text, (), heard.finish_reason, answered.endpoint.model)


@asynccontextmanager
async def open_reader() -> AsyncIterator[Reader | None]:
    """Yield the reader of the model that the environment names, or None if it names none."""
    base_url = os.environ.get(BASE_URL, "")
    settings = ModelSettings(model_base_url=base_url, model=os.environ.get(MODEL, ""))
    models = open_models(settings, SystemClock()) if base_url else None
    if models is None:
        yield None
        return
    model = _Asked(models)

    async def read(said: Sequence[str], tools: Iterable[CatalogTool]) -> list[Interpretation | None]:
        offered = [_spec(tool) for tool in tools]
        return [
            await Interpreter(model, lambda: offered, turn_id=f"{place}", seconds=settings.interpreter_seconds).read(
                words, said[:place]
            )
            for place, words in enumerate(said)
        ]

    try:
        yield read
    finally:
        await models.close()


def _spec(tool: CatalogTool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        descriptions={"en": tool.description, "es": tool.description_es},
        schema=tool.schema,
        args_model=BaseModel,
        contract=Contract(tool.risk, tool.effect, tool.idempotency),
        verbs=(),
        patterns=(),
        examples=(),
        labels={},
    )
