"""An agent of the Microsoft Agent Framework under RiskGate's middleware."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from phylactery_agent_framework import RiskGate

from tests.support.adapters.hosts import Host, Proposal, Turn


class ScriptedChatClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Makes the next call of a script for each answer it was given, and then says that it is done."""

    def __init__(self, script: Sequence[Proposal]) -> None:
        super().__init__()
        self.script = list(script)

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **words: Any) -> Any:
        number = sum(one.type == "function_call" for message in messages for one in message.contents)
        said = Content.from_text("done")
        if number < len(self.script):
            one = self.script[number]
            said = Content.from_function_call(one.id, one.tool, arguments=one.arguments)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[said])

        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [said])])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else answer()


class AgentFrameworkHost(Host):
    """An agent whose session is kept between its runs."""

    async def start(self, words: str, proposals: Sequence[Proposal]) -> Turn:
        self.gate = RiskGate(self.target, connection=self.connection)
        self.agent = Agent(
            client=ScriptedChatClient(proposals),
            tools=[tool(self.tools.read_file), tool(self.tools.write_file)],
            middleware=self.gate.middleware,
        )
        return await self._turn(words, AgentSession(session_id=self.thread_id))

    async def resume(self, turn: Turn, edited: dict[str, Any] | None = None) -> Turn:
        saved, requests = json.loads(turn.state)
        for call in _calls([saved, requests]) if edited is not None else ():
            call["arguments"] = edited
        answers = [Content.from_dict(one).to_function_approval_response(approved=True) for one in requests]
        return await self._turn(Message("user", answers), AgentSession.from_dict(saved))

    async def close(self) -> None:
        await self.gate.close()

    async def _turn(self, given: Any, session: AgentSession) -> Turn:
        response = await self.agent.run(given, session=session)
        waiting = tuple(one.additional_properties["approval_id"] for one in response.user_input_requests)
        saved = session.to_dict()
        requests = [one.to_dict() for one in response.user_input_requests]
        history = session.state["in_memory"]["messages"]
        seen = tuple(one.result for message in history for one in message.contents if one.type == "function_result")
        return Turn(waiting, seen, json.dumps([saved, requests]))


def _calls(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") == "function_call":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _calls(one)
