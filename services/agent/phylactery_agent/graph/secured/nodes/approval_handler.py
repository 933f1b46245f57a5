"""ApprovalHandler: forwards a person's answer, or looks up one given elsewhere, and acts on the approval's state.

RiskGate checks the seven factors. A yes leads to Tools, which evaluates again with the approval (docs/effects.md, 6);
anything unclear keeps the approval pending and the run waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import (
    APPROVAL_CLEARED,
    AWAITING_APPROVAL,
    GATE_UNAVAILABLE,
    SELF_CLASS,
    approval_standing,
    proposal,
    step_description,
    step_told,
    what_waits,
)
from phylactery_agent.graph.core.state import AgentState, AskedAhead, StepState
from phylactery_agent.i18n.texts import error_text, say, step_text, tool_title
from phylactery_agent.ports import EffectState, GateRefusedError, GateUnavailableError, TurnContext
from phylactery_agent.rules.intents import ApprovalReply, parse_reply

Outcome = Command[Literal["Tools", "Supervisor", "Finalizer"]]
REJECTED: Final = "APPROVAL_REJECTED"
_DIRECTIVES = {"REJECTED": "rejected", "EXPIRED": "expired", "CANCELLED": "cancelled"}


async def approval_handler(
    state: AgentState, runtime: Runtime[TurnContext]
) -> Command[Literal["Tools", "Supervisor", "Finalizer"]]:
    """Handle the pending approval, if it is the one that was named."""
    context = runtime.context
    reply, code = _reply_to(state, context)
    waiting = str(state["approval_id"])
    try:
        if reply is not None and reply.approval_id != waiting:
            return await _another(state, context, reply)
        return await _by_state(state, context, await _answer(state, context, reply, code))
    except GateUnavailableError:
        note = say("gate_unavailable_waiting", state["language"])
        return _keep_waiting(state, note, reason=GATE_UNAVAILABLE)
    except GateRefusedError as error:
        return await _refused(state, context, error)


def _reply_to(state: AgentState, context: TurnContext) -> tuple[ApprovalReply | None, str]:
    """Return the person's answer to the pending approval and its code, or None if the message does not answer it.

    One message may answer several of a card: its text names one of them, and the others are listed with it. Beside a
    yes, one without a code is refused.
    """
    reply = parse_reply(state["incoming"]["text"])
    waiting = str(state["approval_id"])
    if reply is not None and waiting in context.also_answered:
        verb: Literal["approve", "reject"] = "reject" if waiting in _refused_with(reply, context) else "approve"
        return replace(reply, approval_id=waiting, verb=verb), context.also_answered[waiting]
    if not state["awaiting_approval"]:  # routed here by the plan: the message was about an earlier call
        return None, ""
    return reply, context.reply_code


async def _answer(state: AgentState, context: TurnContext, reply: ApprovalReply | None, code: str) -> str:
    """Return the approval's state after the answer; "" if a yes came without its code and no yes is recorded yet."""
    waiting, thread_id = str(state["approval_id"]), state["thread_id"]
    said = parse_reply(state["incoming"]["text"])
    if reply is not None and said is not None:
        for other in _refused_with(said, context):  # before any yes: what is refused stays so, whatever comes between
            if other != waiting:
                await _reject_too(state, context, other)
    if reply is not None and reply.verb == "reject":
        return await _say_no(state, context, waiting)
    if reply is not None and code:
        args_hash = str(state["approval_hash"])
        answered = await context.gate.approve(waiting, args_hash=args_hash, code=code, thread_id=thread_id)
        return answered.state
    current = (await context.gate.get_approval(waiting)).state
    # The code exists only during its turn; after a crash the yes was either recorded or must be given again.
    return "" if reply is not None and current == "PENDING" else current


async def _by_state(state: AgentState, context: TurnContext, approval: str) -> Outcome:
    if approval in {"APPROVED", "REDEEMED"}:
        # REDEEMED: an earlier attempt of this same call got that far. Its ledger row determines what Tools does next.
        known = state["approval_state"]
        return Command(
            goto="Tools",
            update={
                "awaiting_approval": False,
                "approval_state": None if known is None else {**known, "state": "APPROVED"},
            },
        )
    if approval in _DIRECTIVES:
        return await _close(state, context, _DIRECTIVES[approval])
    language, known = state["language"], state["approval_state"]
    tool = tool_title("" if known is None else known["tool"], language, context.tools)
    note = say("still_pending", language, tool=tool) if approval else say("code_missing", language)
    return _keep_waiting(state, note)


async def _refused(state: AgentState, context: TurnContext, error: GateRefusedError) -> Outcome:
    if error.reason == "CODE_MISMATCH" and error.metadata.get("attempts_left", "0") != "0":
        return _keep_waiting(state, _wrong_code(state, error.metadata["attempts_left"]))
    if error.reason == "APPROVAL_NOT_PENDING":
        return await _by_state(state, context, error.metadata.get("state", "CANCELLED"))
    if error.reason == "APPROVAL_EXPIRED":
        return await _close(state, context, "expired")
    if error.reason == "APPROVAL_NOT_FOUND" and await _started(state, context):
        # RiskGate no longer has it, so its progress is unknown: Tools checks what became of the effect.
        return Command(goto="Tools", update={"awaiting_approval": False})
    if error.reason in {"CODE_MISMATCH", "APPROVAL_NOT_FOUND"}:
        return await _close(state, context, "cancelled")
    why = error_text(error.reason, state["language"])
    note = f"{say('approval_refused', state['language'], why=why)} {what_waits(state, context)}"
    return _keep_waiting(state, note)


async def _started(state: AgentState, context: TurnContext) -> bool:
    row = await context.ledger.find(proposal(state)["tool_call_id"])
    return row is not None and row.state == EffectState.STARTED


async def _say_no(state: AgentState, context: TurnContext, waiting: str) -> str:
    """Answer the waiting approval with no; return its state.

    A no to what a form submits asks what to change: the question is withdrawn, because a call that was rejected could
    not be asked about again, not even if the person wants it after all.
    """
    if "submission" in cast("Mapping[str, Any]", state).get("metadata", {}):
        await context.gate.cancel(waiting, reason="", thread_id=state["thread_id"])
        return "REJECTED"
    known = state["approval_state"]
    own = known is None or known["approval_class"] == SELF_CLASS
    answer = context.gate.reject if own else context.gate.cancel  # what another person approves can only be withdrawn
    return (await answer(waiting, reason="", thread_id=state["thread_id"])).state


def _refused_with(reply: ApprovalReply, context: TurnContext) -> Collection[str]:
    """Return the approvals of one answer that are refused with it: all, or beside a yes those without a code."""
    also = context.also_answered
    return also if reply.verb == "reject" else [name for name, code in also.items() if not code]


async def _reject_too(state: AgentState, context: TurnContext, approval_id: str) -> None:
    try:
        await context.gate.reject(approval_id, reason="", thread_id=state["thread_id"])
    except GateRefusedError as error:
        if error.reason not in {"APPROVAL_NOT_PENDING", "APPROVAL_EXPIRED", "APPROVAL_NOT_FOUND"}:
            raise


async def _another(state: AgentState, context: TurnContext, reply: ApprovalReply) -> Outcome:
    """Forward an answer to other calls of the card, refusals first; the run keeps waiting for the first one."""
    codes = {reply.approval_id: context.reply_code if reply.verb == "approve" else "", **context.also_answered}
    refused = {*_refused_with(reply, context), *([reply.approval_id] if reply.verb == "reject" else [])}
    answered = [one for one in state["asked_ahead"] if one["approval_id"] in codes]
    if reply.approval_id not in {one["approval_id"] for one in answered}:
        return await _wrong_id(state, context, reply.approval_id)
    language, thread_id = state["language"], state["thread_id"]
    answers: dict[str, str] = {}
    try:
        for one in sorted(answered, key=lambda one: one["approval_id"] not in refused):
            approval_id = one["approval_id"]
            if approval_id in refused:
                await _reject_too(state, context, approval_id)
            elif not codes[approval_id]:
                return _keep_waiting(state, say("code_missing", language))
            else:
                hashed, code = one["args_hash"], codes[approval_id]
                await context.gate.approve(approval_id, args_hash=hashed, code=code, thread_id=thread_id)
            answers[approval_id] = "REJECTED" if approval_id in refused else "APPROVED"
    except GateRefusedError as error:
        if error.reason == "CODE_MISMATCH" and error.metadata.get("attempts_left", "0") != "0":
            return _keep_waiting(state, _wrong_code(state, error.metadata["attempts_left"]))
        why = error_text(error.reason, language)
        return _keep_waiting(state, f"{say('approval_refused', language, why=why)} {what_waits(state, context)}")
    return _noted(state, context, answers)


def _noted(state: AgentState, context: TurnContext, answers: Mapping[str, str]) -> Outcome:
    """Record that later calls of the card were answered, and report what is left to answer."""
    language, told = state["language"], list[str]()
    for answer in sorted({*answers.values()}):
        asked = [one for one in state["asked_ahead"] if answers.get(one["approval_id"]) == answer]
        steps = [
            step_text(step_description(state, one["step_id"]), one["tool"], language, context.tools) for one in asked
        ]
        told.append(say(f"ahead_{answer.lower()}", language, steps="; ".join(steps)))
    after = [
        AskedAhead(**{**one, "state": answers.get(one["approval_id"], one["state"])}) for one in state["asked_ahead"]
    ]
    left = what_waits(cast("AgentState", {**state, "asked_ahead": after}), context)
    return _keep_waiting(state, " ".join([*told, left]), asked_ahead=after)


async def _wrong_id(state: AgentState, context: TurnContext, given: str) -> Outcome:
    language = state["language"]
    why = say(f"state_{await approval_standing(context, given)}", language)
    note = f"{say('approval_wrong_id', language, why=why)} {what_waits(state, context)}"
    return _keep_waiting(state, note)


async def _close(state: AgentState, context: TurnContext, directive: str) -> Outcome:
    """Clear the proposal, the approval and the flags, and notify Supervisor."""
    tool = proposal(state)
    row = await context.ledger.find(tool["tool_call_id"])
    if row is None or row.state in {EffectState.PROPOSED, EffectState.DENIED}:
        await context.ledger.deny(tool["tool_call_id"], error_code=directive.upper())
    elif row.state == EffectState.STARTED:
        # Started, but the gate was unavailable before it could redeem: a closed approval was never redeemed, so nothing
        # ran.
        await context.ledger.finish(
            tool["tool_call_id"],
            arguments_json=tool["canonical_args"],
            status="error",
            output="",
            error_code=directive.upper(),
        )
    reply = parse_reply(state["incoming"]["text"])
    rejected = _refused_with(reply, context) if reply is not None else ()
    refused = [one for one in state["asked_ahead"] if one["approval_id"] in rejected]
    asked = [(str(state["current_step"] or ""), tool["name"]), *((one["step_id"], one["tool"]) for one in refused)]
    told = [step_text(step_description(state, step), name, state["language"], context.tools) for step, name in asked]
    key = "rejected_of_several" if directive == "rejected" and len(state["plan"]) > 1 else directive
    note = say(key, state["language"], action="; ".join(told))
    closed = {
        one["step_id"]: StepState(**{**state["steps"][one["step_id"]], "status": "blocked", "last_error": REJECTED})
        for one in refused
        if one["step_id"] in state["steps"]
    }
    await context.events.emit(*map(step_told, closed.values()))
    return Command(
        goto="Supervisor",
        update={
            **APPROVAL_CLEARED,
            "directive": directive,
            "notes": [*state["notes"], note],
            "asked_ahead": [ahead for ahead in state["asked_ahead"] if ahead["approval_id"] not in rejected],
            "steps": {**state["steps"], **closed},
        },
    )


def _wrong_code(state: AgentState, left: str) -> str:
    return say("code_wrong", state["language"], left=int(left))


def _keep_waiting(state: AgentState, note: str, *, reason: str = AWAITING_APPROVAL, **update: Any) -> Outcome:
    return Command(
        goto="Finalizer",
        update={
            "awaiting_approval": True,
            "run_status": "suspended",
            "finish_reason": reason,
            "notes": [*state["notes"], note],
            **update,
        },
    )
