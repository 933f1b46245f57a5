"""Tool vocabulary: specification, contract, invocation and errors.

Nothing here can run a tool. Implementations are in tools.builtin and in plug-in modules, which only the executor
imports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import rfc8785
from phylactery_chassis.util.crypto import sha256
from pydantic import BaseModel

from phylactery_agent.ports import (
    DoneEffect,
    Language,
    LedgerRow,
    Memories,
    Outputs,
    Reminders,
    SentFiles,
    Submissions,
    Undoing,
)

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
        "NAME_AMBIGUOUS",
        "NAME_ALIKE",
        "NOT_A_FOLDER",
        "NOT_UTF8",
        "FILE_EMPTY",
        "FILE_TYPE_REFUSED",
        "HANDED_OFF",
        "FILES_UNAVAILABLE",
        "FILE_TOO_LARGE",
        "PATH_INVALID",
        "PATH_OUTSIDE_SANDBOX",
        "READ_ONLY",
        "ACCESS_DENIED",
        "PATTERN_INVALID",
        "NOTHING_TO_UNDO",
        "NOT_NOTED",
        "CHANGED_SINCE",
        "REPLACES_UNKNOWN",
        "UNDO_OTHER",
        "UNDO_FAILED",
        "UNDO_GONE",
        "UNDO_LOST",
        "REMINDER_RANG",
        "REMINDER_CANCELLED",
        "MEMORY_SUPERSEDED",
        "KNOWN_BEFORE",
        "NOT_REVERSIBLE",
        "OUTPUT_NOT_FOUND",
        "OUTPUT_NOT_REHYDRATABLE",
        "ATTACHMENT_INVALID",
        "DOCUMENT_ENCRYPTED",
        "DOCUMENT_TOO_LARGE",
        "DOCUMENT_UNREADABLE",
        "DOCUMENT_WITHOUT_TEXT",
        "DOCUMENT_TIMEOUT",
        "MEDIA_WITHOUT_TEXT",
        "IMAGE_NOT_CONFIGURED",
        "AUDIO_NOT_CONFIGURED",
        "RANGE_PAST_END",
        "SECRET_PASSWORD",
        "SECRET_CARD",
        "SECRET_KEY",
        "MEMORY_LIMIT",
        "MEMORY_NOT_FOUND",
        "TIME_NOT_UNDERSTOOD",
        "TIME_PAST",
        "TIME_HALF_UNSAID",
        "DAY_NOT_IN_ALL_MONTHS",
        "TIME_ZONE_UNKNOWN",
        "REPEAT_INVALID",
        "TOO_MANY_REMINDERS",
        "REMINDER_NOT_FOUND",
        "REMINDER_AMBIGUOUS",
        "REMINDERS_UNAVAILABLE",
        "SUBMISSIONS_UNAVAILABLE",
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
"""Codes of a tool's own refusal that an identical call would get again, so it is not repeated.

Every other code may be transient, including a plug-in's own.
"""


@dataclass(frozen=True, slots=True)
class Contract:
    """The guarantees for running a tool: its risk, its effect, its timeout in seconds, and how it may be repeated."""

    risk: Risk
    effect: Effect
    idempotency: Idempotency
    timeout_seconds: float = 10.0
    retries: int = 0
    """Extra attempts inside one execution; used only for read_only and idempotent_by_key."""
    controls: tuple[str, ...] = ()
    """JSON Pointers of the arguments that determine the target of the effect."""
    evictable: bool = True
    """False for a tool whose result must never be evicted again, such as read_output."""
    reversible: bool = False
    """Whether the tool keeps what its effect replaces, and its implementation can restore it."""
    answers: Literal["text", "json"] = "text"
    """The kind of result. JSON is the tool's own format, whose fields RiskGate interprets by the catalog.

    A text that only happens to be JSON, such as a file's content, is text: otherwise its author would choose the
    fields.
    """


@dataclass(frozen=True, slots=True)
class Pattern:
    """One phrasing of a request for a tool in static mode: an RE2 expression over a whole clause.

    A named group is the argument of that name; ``until`` is the exclusive end that belongs to ``offset``.
    """

    language: Language
    expression: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    meant: Callable[[Mapping[str, Any]], dict[str, Any] | None] | None = None
    """Function that returns the arguments as meant, or None if they make no sense; then the next pattern is tried."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example utterance and the arguments it means. Tests check every example against the patterns."""

    language: Language
    text: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The public specification of one tool; the function that runs it is not reachable from here."""

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
    """The text above the result in a reply; str.format fields are arguments."""
    output_schema: Mapping[str, Any] | None = None
    """The JSON Schema of the output, if it is known."""
    quotes_output: bool = True
    """Whether a reply quotes the output."""
    shown: Callable[[str, Language], str] | None = None
    """Function that renders JSON output for a reply; None quotes the output unchanged."""
    shown_with: Callable[[str, Language, Callable[[str], str]], str] | None = None
    """The same for an output that names tools: its last argument returns what one does, in words of the language."""
    forms_only: bool = False
    """Whether only a form calls it, at its review: no model is offered it, and no pattern reads it."""
    nothing: Mapping[Language, str] = field(default_factory=dict)
    """The reply that replaces label and result if nothing was found; if empty, both are used."""

    def quoted(self, output: str, language: Language, title: Callable[[str], str]) -> str:
        """Return what a reply quotes of the output; ``title`` returns what a tool does, in words of the language."""
        if not self.quotes_output:
            return ""
        if self.shown_with is not None:
            return self.shown_with(output, language, title)
        return output if self.shown is None else self.shown(output, language)

    @property
    def schema_hash(self) -> str:
        """Return the SHA-256 over the RFC 8785 form of the schema, as RiskGate's catalog computes it."""
        return sha256(rfc8785.dumps(_plain(self.schema)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class ToolFailedError(Exception):
    """Error for a tool's own refusal: nothing happened outside. Holds a stable code and a sentence without secrets."""

    def __init__(self, code: str, message: str, *, not_done: bool = True) -> None:
        """``not_done`` False is for what may have happened although it failed, and may happen twice without harm."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.not_done = not_done


TOOL_ERROR: Final = "TOOL_ERROR"
"""The code of a tool that itself reports a failure; its message is passed on as its author's words."""


class EffectUnknownError(Exception):
    """Error of an implementation that cannot tell whether its effect happened: the executor applies the contract.

    ``code`` is a stable word for the cause, and ``said`` the other side's uninspected message about it.
    """

    def __init__(self, message: str, *, code: str = "EFFECT_UNKNOWN", said: str = "") -> None:
        super().__init__(message)
        self.code, self.said = code, said


@dataclass(frozen=True, slots=True)
class Invocation:
    """The input of an implementation: checked arguments, the effect's key and owner, and the user's services."""

    args: BaseModel
    effect_key: str
    outputs: Outputs
    memories: Memories
    tenant: str
    user_id: str
    reminders: Reminders | None = None
    """None without a reminder store."""
    thread_id: str = ""
    """The conversation that requested it."""
    files: SentFiles | None = None
    """None where no files are sent."""
    content_hash: str = ""
    """The file that the call may send or replace, as it was when it was proposed: see ProposedCall.

    UNHASHED for a write of which that is not known: it may make a file, and replaces none.
    """
    submissions: Submissions | None = None
    """None without a store of submissions."""
    calls: Sequence[LedgerRow] = ()
    """The calls of the run, which say what of a file it has read and written; empty where the tool is not told."""
    undoing: Undoing | None = None
    """What was done in the thread and can be taken back; None where nothing is."""
    low_stakes: bool = False
    """Whether nothing but its low stakes allows the call: then it must be possible to take it back."""


def arguments_of(invocation: Invocation, model: type[Arguments]) -> Arguments:
    """Return the arguments as the tool's own model. Raise TypeError if they are another tool's."""
    if not isinstance(invocation.args, model):
        raise TypeError(f"expected {model.__name__}, not {type(invocation.args).__name__}")
    return invocation.args


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The other side's answer about an effect; output is set if it is done.

    begun means that a part of it happened, and that running it again under its key does the rest.
    """

    state: Literal["done", "not_done", "begun", "unknown"]
    output: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """What an undo did with one effect: the name of what is as it was before, and whether it is gone.

    more are the names of what else is, and missed those of what could not be restored with it, because its time has
    passed.
    """

    name: str = ""
    more: tuple[str, ...] = ()
    removed: bool = False
    missed: tuple[str, ...] = ()
    check: str = ""
    """What is_restored compares with."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """The functions behind a tool. Only reconcilable tools have reconcile."""

    run: Callable[[Invocation], Awaitable[str]]
    reconcile: Callable[[Invocation], Awaitable[Reconciled]] | None = None
    restore: Callable[[Invocation, DoneEffect], Awaitable[Restored]] | None = None
    """Restores what an effect replaced, once per key of the undo's invocation; a reversible tool has it.

    Raise ToolFailedError if the effect stays as it is: CHANGED_SINCE if what it changed was changed again.
    """
    is_restored: Callable[[Invocation, DoneEffect, Restored], Awaitable[bool]] | None = None
    """Looks, after restore, whether the earlier state is really there. A reversible tool has it."""
