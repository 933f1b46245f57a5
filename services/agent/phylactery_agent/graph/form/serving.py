"""The served form graph: the nodes of a conversation (ADR 47), and the secured graph's own for everything else."""

from __future__ import annotations

from typing import Final

from phylactery_agent.graph.core.guards import MAX_SUPERSTEPS
from phylactery_agent.graph.core.routing import NodeFunction
from phylactery_agent.graph.core.spec import GraphSpec
from phylactery_agent.graph.form import entry, nodes, steps
from phylactery_agent.graph.form.closing import close
from phylactery_agent.graph.form.submission import submit
from phylactery_agent.graph.secured.builder import NODES as SECURED_NODES
from phylactery_agent.i18n.messages import in_each_language

_OWN: Final[dict[str, NodeFunction]] = {
    "check_escalation": steps.check_escalation,
    "check_correction": steps.check_correction,
    "check_off_topic": steps.check_off_topic,
    "extract_field": nodes.extract_field,
    "validate": nodes.validate,
    "prompt_next": steps.prompt_next,
    "escalate": steps.escalate,
    "complete": steps.complete,
    "submit": submit,
}

FORM: Final = GraphSpec(
    name="form",
    descriptions=in_each_language("graph_form"),
    state=steps.ServedFormState,
    entry="Router",
    nodes={**SECURED_NODES, "Router": entry.router, **_OWN, "Finalizer": close},
    recursion_limit=MAX_SUPERSTEPS + 5,
    new_run_input=entry.begun,
    reentry_input=entry.reentered,
)
