"""What becomes of a proposed call: Ran, Blocked or Waits; and the exceptions by which a tool declares its failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from phylactery_client.results import ApprovalArgument, Reason


class GuardError(Exception):
    """The guard is used in a way that cannot be made safe; the message says how to use it."""


class ToolFailedError(Exception):
    """A tool raises it to declare that it failed and had no effect; error_code is [A-Z0-9_], at most 64 characters.

    Any other exception of a tool leaves its effect in doubt.
    """

    error_code = "TOOL_FAILED"

    def __init__(self, message: str = "", *, error_code: str = "") -> None:
        super().__init__(message)
        self.error_code = error_code or type(self).error_code


class NotStarted(ToolFailedError):
    """A tool raises it to declare that it did not begin: nothing was sent, written or called."""

    error_code = "NOT_STARTED"


@dataclass(frozen=True, slots=True)
class Ran:
    """The tool ran, with these bound arguments, and returned.

    stopped is empty, or says why the task takes no further calls: RiskGate could not be shown the result.
    """

    result: Any = field(repr=False)
    execution_id: str
    arguments: Mapping[str, Any] = field(repr=False)
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Nothing was run. message is a sentence for the model or a person; code is stable, as those of RiskGate's reasons.

    The guard's own codes are GATE_UNAVAILABLE, GATE_REFUSED, INVALID_ARGUMENTS, ALREADY_RUN, RECEIPT_INVALID,
    TASK_STOPPED, TASK_ENDED, APPROVAL_REJECTED, APPROVAL_EXPIRED and APPROVAL_CANCELLED.
    """

    code: str
    message: str
    reasons: tuple[Reason, ...] = ()
    decision_id: str = ""
    approval_id: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """Nothing was run yet: a person of approval_class has to answer the approval.

    args_hash identifies what is approved, and arguments show it, safe to print. code is what the requester types to
    approve class "self", empty for other classes: show it to that person, and never to a model.
    """

    approval_id: str
    args_hash: str
    tool: str
    tool_call_id: str
    approval_class: str
    question: str = field(repr=False)
    arguments: tuple[ApprovalArgument, ...]
    expire_time: datetime | None
    thread_id: str
    reasons: tuple[Reason, ...] = ()
    code: str = field(default="", repr=False)

    def for_host(self) -> dict[str, Any]:
        """Return it as JSON for a framework, without the code, because frameworks keep what they are given."""
        return {
            "type": "riskgate_approval",
            "approval_id": self.approval_id,
            "args_hash": self.args_hash,
            "approval_class": self.approval_class,
            "tool": self.tool,
            "tool_call_id": self.tool_call_id,
            "thread_id": self.thread_id,
            "question": self.question,
            "reasons": [reason.message for reason in self.reasons],
            "expire_time": self.expire_time.isoformat() if self.expire_time else "",
        }


Outcome: TypeAlias = Ran | Blocked | Waits
