"""The guard: RiskGate in front of the tools of an agent of any framework.

A call goes evaluate, wait for a person, redeem, verify the receipt, execute the bound arguments, report, observe. The
adapters of frameworks only translate.
"""

from phylactery_client.guard.current import current_task
from phylactery_client.guard.guard import Guard
from phylactery_client.guard.outcomes import Blocked, GuardError, NotStarted, Outcome, Ran, ToolFailedError, Waits
from phylactery_client.guard.task import GuardedTask, Permitted
from phylactery_client.guard.thread import GuardThread
from phylactery_client.guard.values import execution_id_of, json_or_text, safe_id

__all__ = [
    "Blocked",
    "Guard",
    "GuardError",
    "GuardThread",
    "GuardedTask",
    "NotStarted",
    "Outcome",
    "Permitted",
    "Ran",
    "ToolFailedError",
    "Waits",
    "current_task",
    "execution_id_of",
    "json_or_text",
    "safe_id",
]
