"""A LangGraph graph of your own under RiskGate: propose, gate, execute. Usage: custom_graph.py OUT.json [RISKGATE].

The graph proposes one write. Its only node with an effect verifies a receipt for exactly the bound arguments first. The
receipt is written to OUT.json, for verify_receipt.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from phylactery_client import Keys, RiskGateClient, ToolCall, verify_receipt

WORDS = 'write "hello" to notes.txt'
FILES: dict[str, str] = {}
"""What the example's tool writes to."""


class State(TypedDict, total=False):
    """What the graph keeps. Neither a permit nor a receipt is in it: checkpoints are copied and looked at."""

    run_id: str
    task_id: str
    arguments: dict[str, Any]
    answer: str


class Gated:
    """The nodes, with RiskGate beside them."""

    def __init__(self, gate: RiskGateClient, keys: Keys, out: Path) -> None:
        """Take the connection, the public keys, and the file for the receipt."""
        self._gate, self._keys, self._out = gate, keys, out

    async def propose(self, state: State) -> State:
        """Propose a call, as a model would."""
        del state
        return {"arguments": {"path": "notes.txt", "content": "hello"}}

    async def execute(self, state: State) -> State:
        """Evaluate, redeem, verify, run, report. Without a permit nothing runs."""
        run_id, gate = state["run_id"], self._gate
        call = ToolCall.of("write_file", state["arguments"], tool_call_id=f"{run_id}.1")
        decided = await gate.evaluate(call, thread_id="example-graph", run_id=run_id, task_id=state["task_id"])
        if decided.decision != "ALLOW":
            return {"answer": f"{decided.decision}: {decided.reasons[0].message}"}
        execution_id = f"ex-{uuid.uuid4().hex}"
        redeemed = await gate.redeem(
            decided.permit, call, execution_id=execution_id, thread_id="example-graph", run_id=run_id
        )
        bound = redeemed.bound_call
        verify_receipt(redeemed.receipt, self._keys, call=bound, execution_id=execution_id)
        arguments = json.loads(bound.arguments_json)
        FILES[arguments["path"]] = arguments["content"]
        await gate.report_outcome(execution_id, outcome="SUCCEEDED")
        kept = {"receipt": redeemed.receipt, "execution_id": execution_id, "tool": bound.tool}
        kept |= {"tool_version": bound.tool_version, "args_hash": bound.args_hash, "arguments": bound.arguments_json}
        self._out.write_text(json.dumps(kept), encoding="utf-8")
        return {"answer": f"wrote {arguments['path']}"}


async def main(out: Path, target: str) -> None:
    """Compile the graph and run it once."""
    async with RiskGateClient(target) as gate:
        nodes = Gated(gate, await gate.list_keys(), out)
        graph = StateGraph(State)
        graph.add_node("propose", nodes.propose)
        graph.add_node("execute", nodes.execute)
        graph.add_edge(START, "propose")
        graph.add_edge("propose", "execute")
        graph.add_edge("execute", END)
        run_id = f"run-{uuid.uuid4().hex}"
        # the edge shows RiskGate the user's own words; no node and no model can
        task = await gate.begin_task(WORDS, thread_id="example-graph", request_id=run_id)
        try:
            state = await graph.compile().ainvoke({"run_id": run_id, "task_id": task.task_id})
        finally:
            await gate.end_task(task.task_id)
    print(state["answer"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:50052"))
