"""The clients without asyncio, under the same names: ``from phylactery_client.sync import PhylacteryClient``.

They may be shared between threads. Close a stream with contextlib.closing. One thing differs: a watch that breaks
before its first event or change raises, where the asynchronous one is opened again.
"""

from phylactery_client.sync.channel import ServiceClient
from phylactery_client.sync.chat import PhylacteryClient
from phylactery_client.sync.escalations import EscalationClient
from phylactery_client.sync.forms import FormClient
from phylactery_client.sync.memory import MemoryClient
from phylactery_client.sync.riskgate import AuditClient, RiskGateClient

__all__ = [
    "AuditClient",
    "EscalationClient",
    "FormClient",
    "MemoryClient",
    "PhylacteryClient",
    "RiskGateClient",
    "ServiceClient",
]
