"""What TaskService is asked. A JSON text is read later, away from others where it is long; its size is bounded here."""

from __future__ import annotations

from typing import Annotated, Literal

from phylactery_chassis.edge import EdgeModel, Identifier, OptionalIdentifier, ToolName
from pydantic import AfterValidator, Field

MAX_WORDS = 100_000
"""Characters of a user's words."""
MAX_SHOWN_BYTES = 1024 * 1024
"""Bytes of the arguments of a call, and of its result."""


def _fits(text: str) -> str:
    if len(text) > MAX_SHOWN_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_SHOWN_BYTES:
        raise ValueError(f"holds more than {MAX_SHOWN_BYTES:,} bytes in UTF-8; show its beginning")
    return text


_Shown = Annotated[str, AfterValidator(_fits), Field(repr=False)]


class BeginInput(EdgeModel):
    """One request of a user."""

    request_id: Identifier
    thread_id: Identifier
    words: Annotated[str, Field(min_length=1, max_length=MAX_WORDS, repr=False)]
    continues_task_id: OptionalIdentifier = ""


class ObserveInput(EdgeModel):
    """What one tool call answered; ``form`` says what the text of the result is, and None that there is none."""

    task_id: Identifier
    tool_call_id: Identifier
    tool: ToolName
    arguments_json: _Shown = ""
    form: Literal["result_json", "result_text"] | None = None
    result_json: _Shown = ""
    result_text: _Shown = ""
    failed: bool = False

    @property
    def text(self) -> str:
        """Answers the result as it came."""
        return self.result_json if self.form == "result_json" else self.result_text


class TaskInput(EdgeModel):
    """One task's id."""

    task_id: Identifier
