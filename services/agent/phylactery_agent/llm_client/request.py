"""What endpoints are asked, what they answered, and what it took."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phylactery_agent.llm_client.config import Endpoint
from phylactery_agent.llm_client.response import Heard


@dataclass(frozen=True, slots=True)
class Question:
    """What an endpoint is asked, as the wire has it: messages and tools."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes it is on the wire."""
        return len(json.dumps([self.messages, self.tools], ensure_ascii=False).encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and the endpoint it came from."""

    heard: Heard
    endpoint: Endpoint


@dataclass(slots=True)
class Spent:
    """What was used so far: requests sent, tokens, and millionths of the currency."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_micros: int = 0

    def add(self, endpoint: Endpoint, prompt_tokens: int, completion_tokens: int) -> None:
        """Add what one request took."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.cost_micros += endpoint.cost_micros(prompt_tokens, completion_tokens)
