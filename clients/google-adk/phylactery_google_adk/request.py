"""The user's request that an invocation serves, as the session's events tell it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

CONFIRMATION: Final = "adk_request_confirmation"
"""The name under which the framework asks for a confirmation, and under which it is answered."""


@dataclass(frozen=True)
class Request:
    """One request of a user: their words, its thread and its run, the same ones when its approvals are answered."""

    words: str
    thread_id: str
    request_id: str


served: ContextVar[Request | None] = ContextVar("phylactery_google_adk_request", default=None)
"""The request for which a tool runs, for agents that are tools."""


def request_of(session: Session) -> Request:
    """Return the request that a session serves now.

    What an agent is told by the tool of another was written by a model, so its request is that of the other.
    """
    outer = served.get()
    if outer is not None:
        return outer
    thread_id = f"{session.app_name}:{session.user_id}:{session.id}"
    event = _newest_request(session.events)
    named = hashlib.sha256(f"{thread_id} {'' if event is None else event.invocation_id}".encode()).hexdigest()[:40]
    return Request("" if event is None else _words(event.content), thread_id, f"adk-{named}")


def unanswered_calls(session: Session) -> Iterator[types.FunctionCall]:
    """Return the calls that wait for a confirmation and did not run since."""
    ran: set[str] = set()
    asked: dict[str, types.FunctionCall] = {}
    for event in session.events:
        for call in event.get_function_calls():
            original = (call.args or {}).get("originalFunctionCall")
            if call.name == CONFIRMATION and original:
                made = types.FunctionCall(**original)
                asked[made.id or ""] = made
        for response in event.get_function_responses():
            waits = response.id in (event.actions.requested_tool_confirmations or {})
            if event.author != "user" and response.id and not waits:
                ran.add(response.id)
    return (call for call_id, call in asked.items() if call_id not in ran)


def _newest_request(events: Sequence[Event]) -> Event | None:
    """Return the user's newest message that is no answer to a confirmation."""
    for event in reversed(events):
        if event.author == "user" and not event.get_function_responses():
            return event
    return None


def _words(content: types.Content | None) -> str:
    parts: list[Any] = [] if content is None else content.parts or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)
