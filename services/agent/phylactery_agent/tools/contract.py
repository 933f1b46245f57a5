"""The words a tool is written in: its specification, its contract, and how an implementation is called and fails.

Nothing here can run a tool. Implementations live in tools.builtin and in plug-in modules, which the executor alone
imports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import rfc8785
from pydantic import BaseModel

from phylactery_agent.ports import Language, Memories, Outputs, Reminders

Risk = Literal["low", "medium", "high", "critical"]
Effect = Literal["read", "write", "irreversible"]
Arguments = TypeVar("Arguments", bound=BaseModel)
Idempotency = Literal["read_only", "idempotent_by_key", "reconcilable", "unsafe"]
FINAL_ERRORS: Final = frozenset(
    {
        "UNKNOWN_TOOL",
        "TOOL_DISABLED",
        "INVALID_ARGUMENTS",
        "INVALID_REQUEST",
        "NOT_FOUND",
        "NOT_A_FILE",
        "NOT_A_FOLDER",
        "NOT_UTF8",
        "FILE_TOO_LARGE",
        "PATH_INVALID",
        "PATH_OUTSIDE_SANDBOX",
        "ACCESS_DENIED",
        "PATTERN_INVALID",
        "NOTHING_TO_UNDO",
        "NOT_NOTED",
        "CHANGED_SINCE",
        "OUTPUT_NOT_FOUND",
        "OUTPUT_NOT_REHYDRATABLE",
        "RANGE_PAST_END",
        "SECRET_PASSWORD",
        "SECRET_CARD",
        "SECRET_KEY",
        "MEMORY_LIMIT",
        "TIME_NOT_UNDERSTOOD",
        "TIME_PAST",
        "TIME_ZONE_UNKNOWN",
        "REPEAT_INVALID",
        "TOO_MANY_REMINDERS",
        "REMINDER_NOT_FOUND",
        "REMINDER_AMBIGUOUS",
        "REMINDERS_UNAVAILABLE",
        "URL_REFUSED",
        "HOST_NOT_ALLOWED",
        "ADDRESS_REFUSED",
        "TOO_MANY_REDIRECTS",
        "RESPONSE_TOO_LARGE",
        "CONTENT_TYPE_REFUSED",
        "HTTP_REFUSED",
        "ADDRESS_INVALID",
        "RECIPIENT_REFUSED",
        "MAIL_REFUSED",
    }
)
"""Codes of a tool's own no that the same call would get again: it is not made again. Every other code may pass, also
one of a plug-in's own."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What may be relied on when a tool is run: its risk, its effect, its time in seconds, and how it is repeated."""

    risk: Risk
    effect: Effect
    idempotency: Idempotency
    timeout_seconds: float = 10.0
    retries: int = 0
    """Extra attempts inside one execution; used only where read_only or idempotent_by_key."""
    controls: tuple[str, ...] = ()
    """JSON Pointers of the arguments that decide where the effect goes."""
    evictable: bool = True
    """False for a tool whose result must never be evicted again, as read_output."""
    answers: Literal["text", "json"] = "text"
    """What the result is. JSON is the tool's own form: RiskGate tells its fields apart by what the catalog says of
    them. A text that only happens to be JSON, as a file's, is text: whoever wrote it would choose the fields."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to ask for a tool in static mode: an RE2 expression over a whole clause.

    A named group is the argument of that name; ``until`` is the exclusive end that belongs to ``offset``.
    """

    language: Language
    expression: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    meant: Callable[[Mapping[str, Any]], dict[str, Any] | None] | None = None
    """Answers the arguments as they are meant; None where they make no sense, and then the next pattern is asked."""


@dataclass(frozen=True, slots=True)
class Example:
    """What a person may say, and the arguments it stands for. Tests hold every example against the patterns."""

    language: Language
    text: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as everybody may know it; the function that runs it is not reachable from here."""

    name: str
    descriptions: Mapping[Language, str]
    schema: Mapping[str, Any]
    args_model: type[BaseModel]
    contract: Contract
    verbs: tuple[str, ...]
    """RE2 alternatives that open a clause for this tool."""
    patterns: tuple[Pattern, ...]
    examples: tuple[Example, ...]
    labels: Mapping[Language, str]
    """What a reply says above the result; str.format fields are arguments."""
    output_schema: Mapping[str, Any] | None = None
    """The JSON Schema of what it answers, where that is known."""
    quotes_output: bool = True
    """Whether a reply quotes the output."""
    shown: Callable[[str, Language], str] | None = None
    """How a reply quotes an output that is JSON; None quotes it as it is."""

    nothing: Mapping[Language, str] = field(default_factory=dict)
    """What a reply says instead of label and result where nothing was found; empty says both."""

    def quoted(self, output: str, language: Language) -> str:
        """Return what a reply quotes of the output."""
        if not self.quotes_output:
            return ""
        return output if self.shown is None else self.shown(output, language)

    @property
    def schema_hash(self) -> str:
        """The SHA-256 over the RFC 8785 form of the schema, as RiskGate's catalog computes it."""
        return "sha256:" + hashlib.sha256(rfc8785.dumps(_plain(self.schema))).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class ToolFailedError(Exception):
    """A tool's own no: nothing happened outside. Holds a stable code and a sentence without secrets."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


TOOL_ERROR: Final = "TOOL_ERROR"
"""The code of a tool that says itself that it failed; what it says goes with it, as the words of whoever wrote it."""


class EffectUnknownError(Exception):
    """An implementation cannot tell whether its effect happened: the executor judges it by the contract.

    ``code`` is a stable word for why, and ``said`` what the other side says about it, which nobody inspected.
    """

    def __init__(self, message: str, *, code: str = "EFFECT_UNKNOWN", said: str = "") -> None:
        super().__init__(message)
        self.code, self.said = code, said


@dataclass(frozen=True, slots=True)
class Invocation:
    """What an implementation gets: checked arguments, the effect's key, whose effect it is, and what is the user's."""

    args: BaseModel
    effect_key: str
    outputs: Outputs
    memories: Memories
    tenant: str
    user_id: str
    reminders: Reminders | None = None
    """None where nobody keeps any."""
    thread_id: str = ""
    """The conversation that asked for it."""


def arguments_of(invocation: Invocation, model: type[Arguments]) -> Arguments:
    """Return the arguments as the tool's own model. Raise TypeError where they are another tool's."""
    if not isinstance(invocation.args, model):
        raise TypeError(f"expected {model.__name__}, not {type(invocation.args).__name__}")
    return invocation.args


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The other side's answer about an effect; output is set where it is done."""

    state: Literal["done", "not_done", "unknown"]
    output: str = ""


@dataclass(frozen=True, slots=True)
class Implementation:
    """The functions behind a tool. reconcile belongs to the reconcilable ones."""

    run: Callable[[Invocation], Awaitable[str]]
    reconcile: Callable[[Invocation], Awaitable[Reconciled]] | None = None
