"""A Pydantic AI agent under the RiskGate capability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phylactery_pydantic_ai import RiskGate
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.support.adapters.hosts import Host, Proposal, Turn


class PydanticAIHost(Host):
    """An agent with its approvals deferred."""

    edited: dict[str, Any] | None = None

    async def start(self, words: str, proposals: Sequence[Proposal]) -> Turn:
        def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            number = sum(isinstance(one, ModelResponse) for one in messages)
            if number >= len(proposals):
                return ModelResponse(parts=[TextPart("done")])
            one = proposals[number]
            return ModelResponse(parts=[ToolCallPart(one.tool, one.arguments, tool_call_id=one.id)])

        self.capability = RiskGate(self.target, connection=self.connection)
        self.agent = Agent(
            FunctionModel(scripted),
            tools=[self.tools.read_file, self.tools.write_file],
            capabilities=[self.capability],
            output_type=[str, DeferredToolRequests],
        )
        return _turn(await self.agent.run(words, conversation_id=self.thread_id))

    async def resume(self, turn: Turn, edited: dict[str, Any] | None = None) -> Turn:
        self.edited = edited or self.edited  # the history keeps what the model wrote
        approved = ToolApproved(override_args=self.edited)
        answers = DeferredToolResults(approvals={one.tool_call_id: approved for one in turn.state.output.approvals})
        history = turn.state.all_messages()
        return _turn(await self.agent.run(message_history=history, deferred_tool_results=answers))

    async def close(self) -> None:
        await self.capability.close()


def _turn(result: Any) -> Turn:
    deferred = result.output if isinstance(result.output, DeferredToolRequests) else DeferredToolRequests()
    waiting = tuple(deferred.metadata[one.tool_call_id]["approval_id"] for one in deferred.approvals)
    parts = [part for message in result.all_messages() for part in message.parts]
    return Turn(waiting, tuple(str(part.content) for part in parts if isinstance(part, ToolReturnPart)), result)
