"""Helpers shared by several nodes: stable ids, events, and conversion of proposals and steps into state."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import rfc8785
from phylactery_chassis.util.crypto import sha256

from phylactery_agent.graph.core.state import (
    AUDIT_TRAIL_LENGTH,
    WINDOW_MESSAGES,
    AgentState,
    ApprovalState,
    ChatMessage,
    ProposedTool,
    StepState,
    ToolResult,
)
from phylactery_agent.i18n.texts import say, shortened, tool_title, waiting_line
from phylactery_agent.ports import (
    ApprovalRequest,
    CallContext,
    FormRun,
    GateDecision,
    GateRefusedError,
    GateUnavailableError,
    Language,
    ProposedCall,
    Told,
    TurnContext,
    as_shown,
)
from phylactery_agent.rules.intents import WHICH, is_answer
from phylactery_agent.rules.plain_replies import asks_about_card, asks_only_why
from phylactery_agent.tools.contract import TOOL_ERROR
from phylactery_agent.tools.registry import ToolRegistry

CANCELLED: Final = "CANCELLED"
EFFECT_IN_DOUBT: Final = "EFFECT_IN_DOUBT"
GATE_UNAVAILABLE: Final = "GATE_UNAVAILABLE"
AWAITING_APPROVAL: Final = "AWAITING_APPROVAL"
AWAITING_USER_INPUT: Final = "AWAITING_USER_INPUT"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

APPROVAL_CLEARED: Final[dict[str, Any]] = {
    "awaiting_approval": False,
    "approval_id": None,
    "approval_hash": None,
    "approval_state": None,
    "proposed_tool": None,
}
"""The update that clears the pending approval and the proposal."""

_INPUT_CLASS: Final = {
    "text_fast_path": "TEXT_SIMPLE",
    "tool_intent": "TEXT_TOOL_INTENT",
    "rich_input": "RICH_INPUT",
}
"""The input class of a message, by its pathway."""


def stable_id(prefix: str, *parts: str) -> str:
    """Return a 128-bit id derived from the parts, so that a node that runs again produces the same id."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()[:16]
    return f"{prefix}_{base64.b32encode(digest).decode().rstrip('=').lower()}"


def reply_id(run_id: str, turn_id: str) -> str:
    """Return the id of the agent's reply at the end of a turn, so that it is sent only once."""
    return stable_id("msg", run_id, turn_id)


def canonical(args: dict[str, Any]) -> str:
    """Return the RFC 8785 form.

    Raise rfc8785.CanonicalizationError if the arguments have none.
    """
    return rfc8785.dumps(args).decode()


def fingerprint(tool: str, args: dict[str, Any]) -> str:
    """Return a hash that identifies a call by tool and arguments, independent of its step."""
    return sha256(f"{tool}\x1f{canonical(args)}")


def effect_key(tenant: str, run_id: str, step_id: str, tool: str, arguments_json: str) -> str:
    """Return the effect's idempotency key, which identifies the action and not the attempt."""
    parts = f"{tenant}\x1f{run_id}\x1f{step_id}\x1f{tool}\x1f{arguments_json}"
    return "ek_" + hashlib.sha256(parts.encode()).hexdigest()


def proposal(state: AgentState) -> ProposedTool:
    """Return the proposal. Raise RuntimeError if there is none, which is an internal error (bug)."""
    tool = state["proposed_tool"]
    if tool is None:
        raise RuntimeError("no tool call is proposed")
    return tool


def call_context(state: AgentState, tool: ProposedTool, *, approval_id: str = "") -> CallContext:
    """Return what a proposal belongs to, in the form sent to RiskGate."""
    return CallContext(
        state["thread_id"],
        state["run_id"],
        tool["step_id"],
        state["request_pathway"],
        approval_id,
        _form_run(state, tool),
    )


def _form_run(state: AgentState, tool: ProposedTool) -> FormRun | None:
    """Return the form that submits a call: exactly the one that its review proposed in this run, or None."""
    submission = cast("dict[str, Any]", state).get("metadata", {}).get("submission") or {}
    same = (
        submission.get("tool_call_id") == tool["tool_call_id"]
        and submission.get("fingerprint") == fingerprint(tool["name"], tool["args"])
        and "form" in submission  # one of before there was form_run has none
    )
    return FormRun(submission["form"], submission["version"], submission["class"] == "peer") if same else None


def proposed_call(tool: ProposedTool) -> ProposedCall:
    """Return the proposal in the form sent to RiskGate.

    The canonical text is recomputed from the arguments and sent together with the recorded hash. If either was altered
    on the way, RiskGate sees that they differ, blocks the call and records it.
    """
    return ProposedCall(
        tool=tool["name"],
        tool_call_id=tool["tool_call_id"],
        args=tool["args"],
        canonical_args=canonical(tool["args"]),
        args_hash=tool["args_hash"],
        schema_hash=tool["schema_hash"],
    )


def tool_result(tool: ProposedTool, *, output: str = "", error_code: str = "", **metadata: Any) -> ToolResult:
    """Return a result with nothing evicted; an error_code makes it an error."""
    return ToolResult(
        tool_name=tool["name"],
        tool_call_id=tool["tool_call_id"],
        output=output,
        status="error" if error_code else "success",
        evicted=False,
        pointer=None,
        size_chars=len(output),
        rehydration_allowed=False,
        metadata={"error_code": error_code, **metadata},
    )


def blocked_result(tool: ProposedTool, code: str, reasons: list[str]) -> ToolResult:
    """Return the result of a call that was not allowed to run."""
    return tool_result(tool, error_code=code, blocked=True, reasons=reasons)


def with_step(state: AgentState, step: StepState) -> dict[str, StepState]:
    """Return the steps with one of them replaced."""
    return {**state["steps"], step["id"]: step}


def with_message(messages: list[ChatMessage], message: ChatMessage) -> list[ChatMessage]:
    """Return the bounded window with one more message; adding the same id again is idempotent."""
    if any(known["id"] == message["id"] for known in messages):
        return messages
    return [*messages, message][-WINDOW_MESSAGES:]


def with_audit(trail: list[str], decision_id: str) -> list[str]:
    """Return the bounded list of RiskGate decision ids with one more."""
    return trail if not decision_id or decision_id in trail else [*trail, decision_id][-AUDIT_TRAIL_LENGTH:]


def approval_update(decision: GateDecision) -> dict[str, Any]:
    """Return the update that makes the run wait for an approval. It contains no code and no argument value."""
    approval = decision.approval
    if approval is None:
        raise RuntimeError("AUTH_REQUIRED came without an approval")
    return {
        "awaiting_approval": True,
        "approval_id": approval.id,
        "approval_hash": approval.args_hash,
        "approval_state": ApprovalState(
            state=approval.state,
            approval_class=approval.approval_class,
            tool=approval.tool,
            risk=approval.risk,
            expire_us=approval.expire_us,
            stakes=approval.stakes,
        ),
    }


SELF_CLASS: Final = "self"


def approval_fields(
    approval_id: str, approval: ApprovalState, language: Language, tools: ToolRegistry
) -> dict[str, Any]:
    """Return the approval fields of an event. They contain no code and no argument value."""
    return {
        "approval_id": approval_id,
        "tool": approval["tool"],
        "action": tool_title(approval["tool"], language, tools),
        "language": language,
        "risk": approval["risk"],
        "approval_class": approval["approval_class"],
        "expire_time": rfc3339(approval["expire_us"]),
    }


def is_high(approval: ApprovalState) -> bool:
    """Return True if an approval is named before the others of its card."""
    return not {approval["risk"], approval.get("stakes", "")}.isdisjoint({"high", "critical"})


def card_told(state: AgentState, context: TurnContext) -> Told:
    """Return the event of a run's card: the call it waits for and those asked with it that are not answered.

    It has no code and no argument value; the delivery to the requester adds them.
    """
    approval, approval_id = state["approval_state"], state["approval_id"]
    if approval is None or approval_id is None:
        raise RuntimeError("there is no approval to show a card of")
    card = [approval_fields(approval_id, approval, state["language"], context.tools)]
    open_ones = [one for one in state["asked_ahead"] if one["state"] == "PENDING"]
    card += [approval_fields(one["approval_id"], one, state["language"], context.tools) for one in open_ones]
    payload = card[0] | ({"also": card[1:]} if card[1:] else {})
    return Told("approval_required", payload, key=f"approval:{approval_id}")


def rfc3339(microseconds: int) -> str:
    """Return a time in protobuf's JSON form."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")


def opening(state: Mapping[str, Any], node: str, reason: str) -> list[Told]:
    """Return the events a router emits first in a turn: unreadable input, content that is not stored, and the route."""
    degraded, pathway = state["memory_degraded"], state["pathway"]
    told = [Told("memory_degraded", {"reason": degraded}, key="memory_degraded")] if degraded else []
    if state["do_not_store"]:
        told.append(Told("notice", {"reason": "DO_NOT_STORE"}, key="notice:DO_NOT_STORE"))
    only_stickers = is_sticker(state)
    routed = {
        "node": node,
        "reason": reason,
        "input_class": "STICKER_STANDBY" if only_stickers else _INPUT_CLASS.get(pathway, ""),
        "pathway": pathway,
        "class_reasons": list(state["incoming"].get("reasons", ())),
    }
    return [*told, Told("route_decided", routed, key="route")]


def is_sticker(state: Mapping[str, Any]) -> bool:
    """Return True if the turn was started by a message that consists of stickers alone."""
    return bool(state["pathway"] == "standby" and state["intent"] == "conversation")


def step_told(step: StepState) -> Told:
    """Return the event for a step's new status."""
    return Told(
        "step",
        {
            "step_id": step["id"],
            "description": step["description"],
            "status": step["status"],
            "tries": step["tries"],
        },
        key=f"step:{step['id']}:{step['status']}:{step['tries']}",
    )


MAX_SAID: Final = 300
"""Maximum number of characters of a tool's own error message shown to the person."""


def tool_said(state: AgentState, tools: ToolRegistry) -> str:
    """Return the last call's own error message, marked as the tool's words, or an empty string if it gave none.

    The text has not been inspected, so a note that contains it counts as a quotation.
    """
    result = state["last_tool_result"]
    if result is None or not result["output"] or result["status"] != "error":
        return ""
    if result["metadata"]["error_code"] not in {TOOL_ERROR, EFFECT_IN_DOUBT}:
        return ""
    words = "".join(char if char.isprintable() else " " for char in result["output"][: 2 * MAX_SAID])
    source = tools.source_of(result["tool_name"])
    said = shortened(" ".join(words.split()), MAX_SAID)
    return say("tool_said", state["language"], who=source.partition(":")[2] or result["tool_name"], said=said)


async def emit_decision(context: TurnContext, tool: ProposedTool, decision: GateDecision, *, key: str) -> None:
    """Emit RiskGate's decision as an event."""
    payload = {
        "tool": tool["name"],
        "tool_call_id": tool["tool_call_id"],
        "decision": decision.decision,
        "reasons": [reason.text(context.language) for reason in decision.reasons],
        "decision_id": decision.decision_id,
        "policy_ids": list(decision.policy_ids),
    }
    await context.events.emit(Told("risk_decision", payload, key=key))


async def waiting_notes(state: AgentState, context: TurnContext) -> list[str]:
    """Return the notes for a message that reaches a run waiting for an approval but does not answer it.

    Such a message is a yes or no without a clear subject, a question about the card, or a request that arrives while
    too many runs wait. After the first two the card is shown again if it is the only one, as the next yes or no is for
    what was shown last, and the card says why it is asked; otherwise the person is told that each has its own answer.
    """
    language, text = state["language"], state["incoming"]["text"]
    about = asks_about_card(text) or asks_only_why(text)
    unclear = about or is_answer(text)
    if unclear and state["approval_state"] is not None and not context.also_waiting:
        await context.events.emit(card_told(state, context))
    said = "which_one" if text == WHICH else "answer_to_nothing" if unclear else "too_many_wait"
    said = "why_asked" if about else said
    told = [say(said, language), what_waits(state, context)]
    if unclear and (context.also_waiting or text == WHICH):
        waiting = [one for one in (*context.also_waiting, *card_of_state(state)) if one.open]
        told += [say("say_which" if len(waiting) > 1 else "say_yes_or_no", language)]
    return [" ".join(told)]


def what_waits(state: AgentState, context: TurnContext) -> str:
    """Return one line listing what this run and others of its thread are waiting for, and how to cancel it."""
    card = as_shown(card_of_state(state))
    return waiting_line((*context.also_waiting, *card), state["language"], context.tools)


def card_of_state(state: Mapping[str, Any]) -> tuple[ApprovalRequest, ...]:
    """Return the calls a run has asked a person to approve, the one it waits for first."""
    first, approval_id = state.get("approval_state"), state["approval_id"]
    if first is None or not approval_id:
        return ()

    def asked(name: str, one: Mapping[str, Any], step_id: str, *, is_open: bool) -> ApprovalRequest:
        step = step_description(state, step_id)
        high = is_high(cast("ApprovalState", one))
        return ApprovalRequest(name, one["tool"], one["approval_class"], is_open, step_id, step, high)

    ahead = (
        asked(one["approval_id"], one, one["step_id"], is_open=one["state"] == "PENDING")
        for one in state["asked_ahead"]
    )
    return (asked(approval_id, first, str(state.get("current_step") or ""), is_open=True), *ahead)


def step_description(state: Mapping[str, Any], step_id: str) -> str:
    """Return what a step of the plan does, in the person's words, or an empty string if there is no such step."""
    step = state["steps"].get(step_id)
    return "" if step is None else str(step["description"])


async def approval_standing(context: TurnContext, approval_id: str) -> str:
    """Return the name of an approval's state: UNKNOWN if this user has no such approval, UNASKED without RiskGate."""
    try:
        return (await context.gate.get_approval(approval_id)).state
    except GateRefusedError:
        return "UNKNOWN"
    except GateUnavailableError:
        return "UNASKED"
