"""Data types for requests to endpoints, answers, and usage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phylactery_agent.llm_client.config import Endpoint
from phylactery_agent.llm_client.response import Heard


@dataclass(frozen=True, slots=True)
class Question:
    """A request to an endpoint in wire form: messages, tools, and the name and JSON Schema of its answer."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    form: Mapping[str, Any] | None = None

    @property
    def size_bytes(self) -> int:
        """Return the approximate size on the wire in bytes."""
        return len(json.dumps([self.messages, self.tools], ensure_ascii=False).encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply and the endpoint it came from."""

    heard: Heard
    endpoint: Endpoint


@dataclass(slots=True)
class Spent:
    """Usage so far: requests sent, tokens, and millionths of the currency."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_micros: int = 0

    def add(self, endpoint: Endpoint, prompt_tokens: int, completion_tokens: int) -> None:
        """Add the usage of one request."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.cost_micros += endpoint.cost_micros(prompt_tokens, completion_tokens)
