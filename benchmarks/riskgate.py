"""RiskGate: the decision in process, the audit log, and everything over the wire with durable audit."""

from __future__ import annotations

from benchmarks import riskgate_audit, riskgate_decisions, riskgate_notices, riskgate_tasks, riskgate_wire
from benchmarks.inspection import measure_inspection


async def run() -> None:
    """Print the suite's lines."""
    riskgate_decisions.run()
    measure_inspection()
    await riskgate_audit.run()
    await riskgate_wire.run()
    await riskgate_notices.run()
    await riskgate_tasks.run()
