"""The secured graph's state: everything a run needs to go on in another process, as plain JSON values.

No LangChain object, no permit and no code is ever in it.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypedDict

from phylactery_agent.graph.core.guards import CallRecord
from phylactery_agent.ports import Hydration, Language, Turn

MAX_TRIES: Final = 3
MAX_REPLANS: Final = 2
MAX_PLAN_STEPS: Final = 50
WINDOW_MESSAGES: Final = 20
AUDIT_TRAIL_LENGTH: Final = 50

StepStatus = Literal["pending", "running", "done", "failed", "blocked"]
RunStatus = Literal["running", "done", "suspended", "failed"]
AgentMode = Literal["consulting", "planning", "execution"]


class CalledTool(TypedDict):
    """One call a model proposed, as it is shown to it again."""

    id: str
    name: str
    args: dict[str, Any]


class ChatMessage(TypedDict):
    """One message of the window. Only the react graph keeps a model's calls and what they answered in it."""

    id: str
    role: str
    content: str
    tool_calls: NotRequired[list[CalledTool]]
    tool_call_id: NotRequired[str]


class PlannedStep(TypedDict):
    """One step of the plan: which tool it calls with what, and which part of the request it serves.

    An open step is a model's: its arguments depend on earlier results, so Executor asks for the call when it is its
    turn. Where it names no tool, any allowed one may be proposed.
    """

    id: str
    tool: str
    args: dict[str, Any]
    clause: int
    open: NotRequired[bool]


class StepState(TypedDict):
    """How far one step came."""

    id: str
    description: str
    status: StepStatus
    tries: int
    max_tries: int
    result_pointer: str | None
    last_error: str | None


class ProposedTool(TypedDict):
    """The proposal on its way to RiskGate: raw arguments, their RFC 8785 form and its hash."""

    name: str
    args: dict[str, Any]
    canonical_args: str
    args_hash: str
    tool_call_id: str
    step_id: str
    schema_hash: str


class ToolResult(TypedDict):
    """How a tool call ended; size_chars is the original's, whatever became of the text."""

    tool_name: str
    tool_call_id: str
    output: str
    status: Literal["success", "error", "evicted"]
    evicted: bool
    pointer: str | None
    size_chars: int
    rehydration_allowed: bool
    metadata: dict[str, Any]


class ShownResult(TypedDict):
    """What a model is shown of one result: a bounded part of it, inspected, and always as data."""

    step_id: str
    tool: str
    status: str
    text: str


class ApprovalState(TypedDict):
    """The approval the run waits for, without code and without argument values."""

    state: str
    approval_class: str
    tool: str
    risk: str
    expire_us: int


class AskedAhead(ApprovalState):
    """An approval of a later call of the plan, asked for together with the one the run waits for."""

    approval_id: str
    args_hash: str
    tool_call_id: str
    step_id: str


class SecurityContext(TypedDict):
    """Who asks and with which narrowed means."""

    permissions_level: str
    allowed_tools: list[str]
    session_token_hash: str
    is_sanitized: bool
    findings: list[str]
    """The kinds Inspect found in what the person said, each after its category: secret:jwt, personal:email."""


class Budgets(TypedDict):
    """What was used: supersteps in this turn; tool calls, re-plans and step numbers in the run."""

    supersteps: int
    tool_calls: int
    replans: int
    step_numbers: int


class Incoming(TypedDict):
    """The message that woke the graph; the text is empty when an approval was decided elsewhere.

    meant is the request that the text makes of the one before it, where it does.
    """

    id: str
    text: str
    meant: NotRequired[str]


class Reply(TypedDict):
    """What the agent says at the end of the turn."""

    id: str
    text: str


class RecalledMemory(TypedDict):
    """One memory that matters to the message; what a tool or the web said stands in untrusted_text alone, to quote."""

    memory_id: str
    text: str
    untrusted_text: str
    source: str
    trust: str
    valid_us: int


class ProfileFact(TypedDict):
    """One thing that holds about the person for good, and who said it."""

    name: str
    value: str | float | bool
    source: str
    trust: str


class TurnState(TypedDict):
    """What the runtime reads of a state, whichever graph it is of: which turn was taken in, and how it ended."""

    turn_id: str
    request_turn: str
    """The turn that brought the request."""
    plan: list[PlannedStep]
    steps: dict[str, StepState]
    approval_id: str | None
    do_not_store: bool
    run_status: RunStatus
    finish_reason: str
    reply: Reply | None


class AgentState(TurnState):
    """The whole state of a thread in the secured graph."""

    thread_id: str
    user_id: str
    tenant: str
    run_id: str
    language: Language
    agent_mode: AgentMode
    intent: str
    pathway: str
    messages: list[ChatMessage]
    memories: list[RecalledMemory]
    profile: list[ProfileFact]
    memory_degraded: str
    """Why this turn goes on without anything from memory; empty where it was read."""
    incoming: Incoming
    request: str
    request_pathway: str
    """How the message with the request was served; an approval's reply is served otherwise and changes nothing here."""
    current_step: str | None
    tried: list[str]
    proposed_tool: ProposedTool | None
    queued_tools: list[ProposedTool]
    last_tool_result: ToolResult | None
    awaiting_approval: bool
    approval_hash: str | None
    approval_state: ApprovalState | None
    asked_ahead: list[AskedAhead]
    """What is shown with the approval that waits, on one card, in the order of the calls."""
    awaiting_user_input: bool
    directive: str
    notes: list[str]
    quoted: dict[str, str]
    """Which notes quote what we did not write, by their place: what is said instead where it was not inspected."""
    planned_by: Literal["rules", "model"]
    model_away: str
    """Why the turn goes on in static mode although there is a model; empty where it does not."""
    results: list[ShownResult]
    calls: list[CallRecord]
    """What the guards against loops read."""
    hint: str
    """What the planner or the model is told about a loop that begins; empty where there is none."""
    security_context: SecurityContext
    audit_trail: list[str]
    budgets: Budgets


def new_run_input(turn: Turn) -> dict[str, Any]:
    """Return the graph's input for a new run: every field of the run before is reset."""
    read = turn.hydration or Hydration()
    fresh = AgentState(
        thread_id=turn.thread_id,
        user_id=turn.user_id,
        tenant=turn.tenant,
        run_id=turn.run_id,
        turn_id=turn.turn_id,
        language=turn.language,
        agent_mode="consulting",
        intent=turn.intent,
        pathway=turn.pathway,
        messages=[
            ChatMessage(id=str(message["id"]), role=str(message["role"]), content=str(message["content"]))
            for message in read.window
        ][-WINDOW_MESSAGES:],
        memories=_memories(read),
        profile=_profile(read),
        memory_degraded=read.degraded,
        incoming=_incoming(turn),
        request="",
        request_turn="",
        request_pathway="",
        plan=[],
        current_step=None,
        steps={},
        tried=[],
        proposed_tool=None,
        queued_tools=[],
        last_tool_result=None,
        awaiting_approval=False,
        approval_id=None,
        approval_hash=None,
        approval_state=None,
        asked_ahead=[],
        awaiting_user_input=False,
        directive="",
        notes=[],
        quoted={},
        planned_by="rules",
        model_away="",
        results=[],
        calls=[],
        hint="",
        security_context=SecurityContext(
            permissions_level=turn.permissions_level,
            allowed_tools=list(turn.allowed_tools),
            session_token_hash=turn.session_token_hash,
            is_sanitized=turn.is_sanitized,
            findings=list(turn.findings),
        ),
        do_not_store=turn.do_not_store,
        audit_trail=[],
        budgets=Budgets(supersteps=0, tool_calls=0, replans=0, step_numbers=0),
        run_status="running",
        finish_reason="",
        reply=None,
    )
    return dict(fresh)


def reentry_input(turn: Turn) -> dict[str, Any]:
    """Return the graph's input when a suspended run goes on: the new message and what memory says now, if it was read.

    The window stays the run's own: it holds every turn of it already.
    """
    read = turn.hydration
    known = {} if read is None or read.degraded else {"memories": _memories(read), "profile": _profile(read)}
    wish = {"do_not_store": True} if turn.do_not_store else {}  # said once, it holds for the rest of the run
    return {
        **known,
        **wish,
        "memory_degraded": "" if read is None else read.degraded,
        "turn_id": turn.turn_id,
        "language": turn.language,
        "intent": turn.intent,
        "pathway": turn.pathway,
        "incoming": _incoming(turn),
        "run_status": "running",
        "finish_reason": "",
        "reply": None,
    }


def meant_in(incoming: Incoming) -> str:
    """Return what a message asks for: the request it makes of the one before it, or its own words."""
    return incoming.get("meant") or incoming["text"]


def _incoming(turn: Turn) -> Incoming:
    incoming = Incoming(id=turn.turn_id, text=turn.text)
    return Incoming(**incoming, meant=turn.meant) if turn.meant else incoming


def _memories(read: Hydration) -> list[RecalledMemory]:
    return [
        RecalledMemory(
            memory_id=memory.memory_id,
            text="" if memory.untrusted else memory.text,
            untrusted_text=memory.text if memory.untrusted else "",
            source=memory.source,
            trust=memory.trust,
            valid_us=memory.valid_us,
        )
        for memory in read.memories
    ]


def _profile(read: Hydration) -> list[ProfileFact]:
    return [ProfileFact(name=f.name, value=f.value, source=f.source, trust=f.trust) for f in read.profile]
