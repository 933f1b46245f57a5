"""What several nodes share: ids, events, and how a proposal or a step becomes state."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import rfc8785
from phylactery_understanding.answers import read_answer

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
    Asked,
    GateDecision,
    GateRefusedError,
    GateUnavailableError,
    Language,
    ProposedCall,
    Told,
    TurnContext,
)
from phylactery_agent.tools.contract import TOOL_ERROR
from phylactery_agent.tools.registry import source_of

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
"""The update after which nothing waits and nothing is proposed."""

_INPUT_CLASS: Final = {"text_fast_path": "TEXT_SIMPLE", "tool_intent": "TEXT_TOOL_INTENT"}
"""What a message is, by the pathway it takes."""


def stable_id(prefix: str, *parts: str) -> str:
    """Return an id of 128 bits that is the same whenever the parts are, so a node that runs again names it again."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()[:16]
    return f"{prefix}_{base64.b32encode(digest).decode().rstrip('=').lower()}"


def reply_id(run_id: str, turn_id: str) -> str:
    """Return the id of what the agent says at the end of a turn, so that it is said once."""
    return stable_id("msg", run_id, turn_id)


def sha256_text(text: str) -> str:
    """Return "sha256:" and 64 hex digits over the UTF-8 text."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def canonical(args: dict[str, Any]) -> str:
    """Return the RFC 8785 form. Raise rfc8785.CanonicalizationError where there is none."""
    return rfc8785.dumps(args).decode()


def fingerprint(tool: str, args: dict[str, Any]) -> str:
    """Return what tells two calls apart, whatever step they stand in."""
    return sha256_text(f"{tool}\x1f{canonical(args)}")


def effect_key(tenant: str, run_id: str, step_id: str, tool: str, arguments_json: str) -> str:
    """Return the effect's idempotency key: what the action is, not how often it was tried."""
    parts = f"{tenant}\x1f{run_id}\x1f{step_id}\x1f{tool}\x1f{arguments_json}"
    return "ek_" + hashlib.sha256(parts.encode()).hexdigest()


def proposal(state: AgentState) -> ProposedTool:
    """Return the proposal. Raise RuntimeError where there is none: a fault of ours."""
    tool = state["proposed_tool"]
    if tool is None:
        raise RuntimeError("no tool call is proposed")
    return tool


def proposed_call(tool: ProposedTool) -> ProposedCall:
    """Return the proposal as RiskGate is asked about it.

    The canonical text is computed again from the arguments, and the recorded hash goes beside it: if one of them was
    altered on the way, RiskGate sees that they differ, block and keep a record of it.
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
    """Return a result that nothing was evicted from; an error_code makes it an error."""
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
    """Return the steps with one replaced."""
    return {**state["steps"], step["id"]: step}


def with_message(messages: list[ChatMessage], message: ChatMessage) -> list[ChatMessage]:
    """Return the bounded window with one message more; the same id again changes nothing."""
    if any(known["id"] == message["id"] for known in messages):
        return messages
    return [*messages, message][-WINDOW_MESSAGES:]


def with_audit(trail: list[str], decision_id: str) -> list[str]:
    """Return the bounded list of RiskGate's decision ids."""
    return trail if not decision_id or decision_id in trail else [*trail, decision_id][-AUDIT_TRAIL_LENGTH:]


def approval_update(decision: GateDecision) -> dict[str, Any]:
    """Return the update that makes the run wait for an approval: no code and no argument value is in it."""
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
        ),
    }


SELF_CLASS: Final = "self"


def approval_fields(approval_id: str, approval: ApprovalState, language: Language) -> dict[str, Any]:
    """Return what an event says of an approval: no code and no argument value."""
    return {
        "approval_id": approval_id,
        "tool": approval["tool"],
        "action": tool_title(approval["tool"], language),
        "risk": approval["risk"],
        "approval_class": approval["approval_class"],
        "expire_time": rfc3339(approval["expire_us"]),
    }


def rfc3339(microseconds: int) -> str:
    """Return a time as protobuf's JSON form writes it."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")


def opening(state: Mapping[str, Any], node: str, reason: str) -> list[Told]:
    """Return what a router tells first of a turn: what could not be read, what is not kept, where the message goes."""
    degraded, pathway = state["memory_degraded"], state["pathway"]
    told = [Told("memory_degraded", {"reason": degraded}, key="memory_degraded")] if degraded else []
    if state["do_not_store"]:
        told.append(Told("notice", {"reason": "DO_NOT_STORE"}, key="notice:DO_NOT_STORE"))
    routed = {"node": node, "reason": reason, "input_class": _INPUT_CLASS.get(pathway, ""), "pathway": pathway}
    return [*told, Told("route_decided", routed, key="route")]


def step_told(step: StepState) -> Told:
    """Return the event that a step stands somewhere else now."""
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
"""Characters the person is shown of what a tool says of its own failure."""


def tool_said(state: AgentState, language: Language) -> str:
    """Return what the tool of the last call said of its own failure, marked as its words; empty where it said nothing.

    Nobody inspected it: a note with it is a quotation.
    """
    result = state["last_tool_result"]
    if result is None or not result["output"] or result["status"] != "error":
        return ""
    if result["metadata"]["error_code"] not in {TOOL_ERROR, EFFECT_IN_DOUBT}:
        return ""
    words = "".join(char if char.isprintable() else " " for char in result["output"][: 2 * MAX_SAID])
    source = source_of(result["tool_name"])
    said = shortened(" ".join(words.split()), MAX_SAID)
    return say("tool_said", language, who=source.partition(":")[2] or result["tool_name"], said=said)


async def emit_decision(context: TurnContext, tool: ProposedTool, decision: GateDecision, *, key: str) -> None:
    """Tell RiskGate's decision."""
    payload = {
        "tool": tool["name"],
        "tool_call_id": tool["tool_call_id"],
        "decision": decision.decision,
        "reasons": [reason.text(context.language) for reason in decision.reasons],
        "decision_id": decision.decision_id,
        "policy_ids": list(decision.policy_ids),
    }
    await context.events.emit(Told("risk_decision", payload, key=key))


def waiting_notes(state: AgentState, context: TurnContext) -> list[str]:
    """Return what is said where a message reaches a run that waits for an approval and do not answer it.

    That is a yes or no nobody can tell what it is to, or a request where too many wait already.
    """
    language = state["language"]
    unclear = read_answer(state["incoming"]["text"]) != "unclear"
    return [f"{say('answer_to_nothing' if unclear else 'too_many_wait', language)} {what_waits(state, context)}"]


def what_waits(state: AgentState, context: TurnContext) -> str:
    """Return in one line what this run and others of its thread still ask a person, with the way out."""
    return waiting_line((*context.also_waiting, *card_of_state(state)), state["language"])


def card_of_state(state: Mapping[str, Any]) -> tuple[Asked, ...]:
    """Return what a run asks a person about, the call it waits for first."""
    first, approval_id = state.get("approval_state"), state["approval_id"]
    if first is None or not approval_id:
        return ()
    ahead = (
        Asked(one["approval_id"], one["tool"], one["approval_class"], open=one["state"] == "PENDING")
        for one in state["asked_ahead"]
    )
    return (Asked(approval_id, first["tool"], first["approval_class"]), *ahead)


async def approval_standing(context: TurnContext, approval_id: str) -> str:
    """Return the state of an approval by name: UNKNOWN where there is none for this user, UNASKED without RiskGate."""
    try:
        return (await context.gate.get_approval(approval_id)).state
    except GateRefusedError:
        return "UNKNOWN"
    except GateUnavailableError:
        return "UNASKED"
