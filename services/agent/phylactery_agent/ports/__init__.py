"""What the graph needs from outside, as protocols: RiskGate, memory, the ledger, the thread's events.

The graph imports these and nothing that speaks gRPC or SQL; the adapters and the runtime implement them.
"""

from phylactery_agent.ports.catalog import CatalogEntry, CatalogView, ToolCatalog
from phylactery_agent.ports.gate import (
    ApprovalInfo,
    BoundCall,
    Gate,
    GateArgument,
    GateDecision,
    GateReason,
    GateRefusedError,
    GateUnavailableError,
    ProposedCall,
    Redeemed,
)
from phylactery_agent.ports.inspection import Inspected, Inspector
from phylactery_agent.ports.language import Language
from phylactery_agent.ports.ledger import LeaseLostError, Ledger, LedgerRow, LedgerState
from phylactery_agent.ports.memory import (
    Hydration,
    Memories,
    MemoryRefusedError,
    MemoryUnavailableError,
    OutputLine,
    OutputMatches,
    OutputRange,
    Outputs,
    ProfileValue,
    Recalled,
    Remembered,
    StoredOutput,
)
from phylactery_agent.ports.model import (
    Model,
    ModelBudgetError,
    ModelCall,
    ModelMessage,
    ModelReply,
    ModelTool,
    ModelUnavailableError,
)
from phylactery_agent.ports.reminders import Reminder, ReminderRefusedError, Reminders, WantedReminder
from phylactery_agent.ports.trail import NodeStep, NoTrail, Trail
from phylactery_agent.ports.turn import Asked, Events, Told, Turn, TurnContext

__all__ = [
    "ApprovalInfo",
    "Asked",
    "BoundCall",
    "CatalogEntry",
    "CatalogView",
    "Events",
    "Gate",
    "GateArgument",
    "GateDecision",
    "GateReason",
    "GateRefusedError",
    "GateUnavailableError",
    "Hydration",
    "Inspected",
    "Inspector",
    "Language",
    "LeaseLostError",
    "Ledger",
    "LedgerRow",
    "LedgerState",
    "Memories",
    "MemoryRefusedError",
    "MemoryUnavailableError",
    "Model",
    "ModelBudgetError",
    "ModelCall",
    "ModelMessage",
    "ModelReply",
    "ModelTool",
    "ModelUnavailableError",
    "NoTrail",
    "NodeStep",
    "OutputLine",
    "OutputMatches",
    "OutputRange",
    "Outputs",
    "ProfileValue",
    "ProposedCall",
    "Recalled",
    "Redeemed",
    "Remembered",
    "Reminder",
    "ReminderRefusedError",
    "Reminders",
    "StoredOutput",
    "Told",
    "ToolCatalog",
    "Trail",
    "Turn",
    "TurnContext",
    "WantedReminder",
]
