"""Python client of Phylactery.

PhylacteryClient, EscalationClient and FormClient are the agent's, RiskGateClient and AuditClient RiskGate's,
MemoryClient memory's.
"""

from phylactery_client.access import AccessAnswer, AccessQuestion
from phylactery_client.attachments import Attachment, Place
from phylactery_client.channel import ServiceClient, new_request_id
from phylactery_client.chat import PhylacteryClient
from phylactery_client.errors import FieldViolation, PhylacteryError
from phylactery_client.escalations import EscalationClient
from phylactery_client.forms import FormClient
from phylactery_client.memory import MemoryClient, NewMessage
from phylactery_client.receipts import Receipt, ReceiptError, keys_of_jwk_set, verify_receipt
from phylactery_client.results import Event, Keys, PendingApproval, Thread, Turn
from phylactery_client.riskgate import AuditClient, RiskGateClient, ToolCall
from phylactery_client.run_results import Run

__all__ = [
    "AccessAnswer",
    "AccessQuestion",
    "Attachment",
    "AuditClient",
    "EscalationClient",
    "Event",
    "FieldViolation",
    "FormClient",
    "Keys",
    "MemoryClient",
    "NewMessage",
    "PendingApproval",
    "PhylacteryClient",
    "PhylacteryError",
    "Place",
    "Receipt",
    "ReceiptError",
    "RiskGateClient",
    "Run",
    "ServiceClient",
    "Thread",
    "ToolCall",
    "Turn",
    "keys_of_jwk_set",
    "new_request_id",
    "verify_receipt",
]
