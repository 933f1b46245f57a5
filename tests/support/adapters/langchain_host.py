"""LangChain's create_agent under RiskGateMiddleware, asynchronous and synchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from phylactery_langchain import RiskGateMiddleware

from tests.support.adapters.hosts import Host, Proposal, Turn


class ScriptedChatModel(BaseChatModel):
    """Makes the next call of a script for each answer it was given, and then says that it is done."""

    script: list[Any] = []  # noqa: RUF012 - a field of pydantic

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> ScriptedChatModel:
        return self

    def _generate(self, messages: list[AnyMessage], *words: Any, **options: Any) -> ChatResult:
        since = messages[[isinstance(one, HumanMessage) for one in messages].index(True) :]
        number = sum(isinstance(one, AIMessage) for one in since)
        said = AIMessage("done")
        if number < len(self.script):
            one = self.script[number]
            said = AIMessage("", tool_calls=[{"name": one.tool, "args": one.arguments, "id": one.id}])
        return ChatResult(generations=[ChatGeneration(message=said)])


class LangChainHost(Host):
    """create_agent with its async methods."""

    def _agent(self, proposals: Sequence[Proposal]) -> Any:
        self.middleware = RiskGateMiddleware(self.target, connection=self.connection)
        return create_agent(
            ScriptedChatModel(script=list(proposals)),
            [tool(self.tools.read_file), tool(self.tools.write_file)],
            middleware=[self.middleware],
            checkpointer=InMemorySaver(),
        )

    @property
    def _config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread_id}}

    async def start(self, words: str, proposals: Sequence[Proposal]) -> Turn:
        self.agent = self._agent(proposals)
        return await self._turn(await self._invoke({"messages": [HumanMessage(words)]}, self._config))

    async def resume(self, turn: Turn, edited: dict[str, Any] | None = None) -> Turn:
        config = turn.state
        if edited is not None:
            (*_, last) = (await self.agent.aget_state(config)).values["messages"]
            call = {**last.tool_calls[0], "args": edited}
            config = await self.agent.aupdate_state(
                config, {"messages": [last.model_copy(update={"tool_calls": [call]})]}
            )
        return await self._turn(await self._invoke(Command(resume=True), config))

    async def close(self) -> None:
        await asyncio.to_thread(self.middleware.close)

    async def _invoke(self, given: Any, config: Any) -> dict[str, Any]:
        return await self.agent.ainvoke(given, config)

    async def _turn(self, result: dict[str, Any]) -> Turn:
        waiting = tuple(one.value["approval_id"] for one in result.get("__interrupt__", ()))
        seen = tuple(one.text for one in result["messages"] if isinstance(one, ToolMessage))
        return Turn(waiting, seen, (await self.agent.aget_state(self._config)).config)


class SynchronousLangChainHost(LangChainHost):
    """The same with its synchronous methods."""

    async def _invoke(self, given: Any, config: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self.agent.invoke, given, config)
