"""submit: the form's call as a plan of one step, which goes the way of every call."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_forms.dialogue.state import given_values

from phylactery_agent.graph.core.events import fingerprint, stable_id, step_told
from phylactery_agent.graph.core.state import MAX_REPLANS, PlannedStep, StepState
from phylactery_agent.graph.form.steps import ServedFormState
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.intents import TOOL_PATHWAY


async def submit(state: ServedFormState, runtime: Runtime[TurnContext]) -> Command[Literal["Supervisor"]]:
    """Plan the call, also where the same one waits for its approval already.

    Whoever goes on with a form is asked anew, and the earlier question is withdrawn: a plain yes answers only what was
    asked last.
    """
    form = runtime.context.form
    if form is None or form.definition.submit is None:
        raise RuntimeError("submit was reached without a form that submits")
    submission = form.definition.submit
    args = form.definition.submitted_args(given_values(form.definition, state["conversation"]))
    mark = fingerprint(submission.tool, args)
    step_id = f"s{state['budgets']['step_numbers'] + 1}"
    planned = PlannedStep(id=step_id, tool=submission.tool, args=args, clause=0)
    step = StepState(
        id=step_id,
        description=form.definition.title[state["language"]],
        status="pending",
        tries=0,
        max_tries=1,
        result_pointer=None,
        last_error=None,
    )
    await runtime.context.events.emit(step_told(step))
    proposed = {
        "step_id": step_id,
        "tool_call_id": stable_id("tc", state["run_id"], step_id, "1"),
        "fingerprint": mark,
        "form": form.definition.id,
        "version": form.definition.hash,
        "class": submission.approval_class,
    }
    return Command(
        goto="Supervisor",
        update={
            "request": "",
            "request_turn": state["turn_id"],
            "request_pathway": TOOL_PATHWAY,
            "plan": [planned],
            "steps": {step_id: step},
            "current_step": None,
            "tried": [],
            "directive": "",
            "planned_by": "rules",
            "metadata": {**state["metadata"], "submission": proposed},
            "budgets": {
                **state["budgets"],
                "step_numbers": state["budgets"]["step_numbers"] + 1,
                "replans": MAX_REPLANS,  # another call is never what the person was shown
            },
        },
    )
