"""Hosts: how each names its events, and how it reads an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Kind(Enum):
    """What happened in the host."""

    WORDS = "the user wrote something"
    BEFORE = "a tool is about to run"
    AFTER = "a tool ran"
    FAILED = "a tool failed"
    STOP = "the turn ended"
    END = "the session ended"


EVENTS: Final[dict[str, dict[str, Kind]]] = {
    "claude-code": {
        "UserPromptSubmit": Kind.WORDS,
        "PreToolUse": Kind.BEFORE,
        "PostToolUse": Kind.AFTER,
        "PostToolUseFailure": Kind.FAILED,
        "Stop": Kind.STOP,
        "SessionEnd": Kind.END,
    },
    "codex": {
        "UserPromptSubmit": Kind.WORDS,
        "PreToolUse": Kind.BEFORE,
        "PostToolUse": Kind.AFTER,
        "Stop": Kind.STOP,
    },
    "gemini": {
        "BeforeAgent": Kind.WORDS,
        "BeforeTool": Kind.BEFORE,
        "AfterTool": Kind.AFTER,
        "AfterAgent": Kind.STOP,
        "SessionEnd": Kind.END,
    },
}


class EventError(Exception):
    """An event that cannot be served; the text says why, without any of its values."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a host."""

    host: str
    name: str
    kind: Kind
    session_id: str
    directory: str
    tool: str = ""
    tool_call_id: str = ""
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    result: Any = field(default=None, repr=False)
    words: str = field(default="", repr=False)

    @property
    def for_user(self) -> bool:
        """Return True for a tool whose whole point is the user's answer: allowing it would answer in their place."""
        return self.host == "claude-code" and self.tool in {"AskUserQuestion", "ExitPlanMode"}

    @property
    def bound(self) -> dict[str, Any]:
        """Return the input that has to stay as RiskGate bound it; into some the user's answer is written."""
        return {} if self.for_user else dict(self.given)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the hook process prints and how it ends."""

    code: int = 0
    out: str = "{}\n"
    told: str = ""

    def packed(self) -> bytes:
        """Return the answer as the hook process reads it."""
        out = self.out.encode("utf-8", "replace")
        return bytes([self.code]) + len(out).to_bytes(4, "big") + out + self.told.encode("utf-8", "replace")


def read(host: str, named: str, payload: bytes) -> Event:
    """Return the event in a payload. Raise EventError; ``named`` is the event that the settings name, if they do."""
    if host not in EVENTS:
        raise EventError("the host is not known")
    try:
        found = json.loads(payload.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise EventError("the event is not JSON with unique keys and finite numbers") from None
    if not isinstance(found, dict):
        raise EventError("the event is not a JSON object")
    name = found.get("hook_event_name")
    kind = EVENTS[host].get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(name, str):
        raise EventError("the event is not known")
    if named and named != name:
        raise EventError(f"the settings call this hook for {named}, and the event is another")
    event = Event(
        host=host,
        name=name,
        kind=kind,
        session_id=_text(found, "session_id"),
        directory=_text(found, "cwd"),
        words=_text(found, "prompt", empty=True) if kind is Kind.WORDS else "",
    )
    if kind not in {Kind.BEFORE, Kind.AFTER, Kind.FAILED}:
        return event
    given = found.get("tool_input")
    if not isinstance(given, dict):
        raise EventError("tool_input is not an object")
    result = found.get("error") if kind is Kind.FAILED else found.get("tool_response")
    call = found.get("tool_use_id", "")
    return Event(
        host, name, kind, event.session_id, event.directory, _text(found, "tool_name"),
        call if isinstance(call, str) else "", given, result,
    )  # fmt: skip


def allowed(event: Event, bound: Mapping[str, Any], reason: str) -> Answer:
    """Return the answer that lets the tool run with exactly this input."""
    if event.for_user:
        return Answer()
    if event.host == "gemini":
        told: dict[str, Any] = {
            "decision": "allow",
            "reason": reason,
            "hookSpecificOutput": {"hookEventName": event.name, "tool_input": bound},
        }
    else:
        told = {
            "hookSpecificOutput": {
                "hookEventName": event.name,
                "permissionDecision": "allow",
                "permissionDecisionReason": reason,
                "updatedInput": bound,
            }
        }
    return Answer(out=json.dumps(told, allow_nan=False) + "\n")


def denied(event: Event, reason: str, *, shown: str = "") -> Answer:
    """Return the answer that keeps the tool from running; ``shown`` is for the user, if the host tells them apart."""
    if event.host == "gemini":
        told: dict[str, Any] = {"decision": "deny", "reason": reason}
    else:
        told = {
            "hookSpecificOutput": {
                "hookEventName": event.name,
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }
        }
        if shown and event.host == "claude-code":  # Codex refuses fields that it does not know
            told["systemMessage"] = shown
    return Answer(out=json.dumps(told) + "\n")


def noted(event: Event, text: str) -> Answer:
    """Return the answer that tells the model something beside the user's words."""
    told = {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}
    return Answer(out=json.dumps(told) + "\n")


def refused(text: str) -> Answer:
    """Return the answer that every host takes for a refusal."""
    return Answer(2, "", f"RiskGate: {text}\n")


def over_http(host: str, payload: bytes, answer: Answer) -> str:
    """Return an answer as JSON alone, for a host that reads no exit code.

    A host takes an HTTP status that is no success for a yes, so a refusal has to be said in its own words,
    as far as the event can be read.
    """
    if answer.code == 0:
        return answer.out
    reason = answer.told.strip()
    name = _name_of(payload)
    kind = EVENTS[host].get(name)
    if kind in {Kind.STOP, Kind.END}:
        return "{}\n"  # refusing an end would keep the agent going
    if host == "gemini":
        told: dict[str, Any] = {"decision": "deny", "reason": reason}
    elif kind is Kind.BEFORE:
        return denied(Event(host, name, kind, "", ""), reason).out
    else:
        told = {"decision": "block", "reason": reason}
    if kind is None:
        told |= {"continue": False, "stopReason": reason}  # whatever it is, the agent does not go on from here
    return json.dumps(told) + "\n"


def _name_of(payload: bytes) -> str:
    """Return the name of an event that may be broken otherwise, empty if it cannot be told."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return ""
    name = found.get("hook_event_name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""


def _text(found: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise EventError(f"{name} is missing")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refused(_: str) -> None:
    raise ValueError("a number is not finite")
