"""A scripted model that returns the test's answers in order and, like the runtime's, pays once per key.

It does not use HTTP and only serves graph tests. The system tests call a real endpoint on loopback.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from phylactery_agent.ports import ModelCall, ModelMessage, ModelReply, ModelTool
from phylactery_agent.ports.model import AnswerForm

Answer = ModelReply | Exception


def says(text: str) -> ModelReply:
    return ModelReply(text, (), "stop", "test")


def drafts(*steps: tuple[str, dict[str, Any] | None]) -> ModelReply:
    """Return a plan as JSON; None stands for arguments to be decided later."""
    return says(json.dumps({"steps": [{"tool": tool, "args": args, "goal": f"do {tool}"} for tool, args in steps]}))


def proposes(*calls: tuple[str, dict[str, Any]], text: str = "") -> ModelReply:
    made = (ModelCall(f"call_{number}", tool, args, json.dumps(args)) for number, (tool, args) in enumerate(calls))
    return ModelReply(text, tuple(made), "tool_calls", "test")


@dataclass
class ScriptedModel:
    """ports.Model with scripted answers. ``asked`` is every question in order, ``paid`` the keys paid for."""

    answers: list[Answer] = field(default_factory=list)
    otherwise: Answer | None = None
    asked: list[tuple[str, list[ModelMessage], list[str]]] = field(default_factory=list)
    told_away: list[str] = field(default_factory=list)
    paid: list[str] = field(default_factory=list)
    kept: dict[str, ModelReply] = field(default_factory=dict)

    def script(self, *answers: Answer) -> None:
        self.answers += answers

    @property
    def keys(self) -> list[str]:
        return [key for key, _, _ in self.asked]

    def shown(self, place: int) -> str:
        """Return the whole prompt of a question."""
        return "\n".join(f"[{message.role}] {message.content}" for message in self.asked[place][1])

    def is_news(self, reason: str) -> bool:
        self.told_away.append(reason)
        return self.told_away.count(reason) == 1

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
        self.asked.append((key, list(messages), [tool.name for tool in tools]))
        if key in self.kept:
            return self.kept[key]
        answer = self.answers.pop(0) if self.answers else self.otherwise
        assert answer is not None, f"nobody said what to answer to {key}"
        self.paid.append(key)
        if isinstance(answer, Exception):
            raise answer
        if on_text is not None:
            for end in range(50, len(answer.text) + 50, 50):
                await on_text(answer.text[:end])
        if keep:
            self.kept[key] = answer
        return answer
