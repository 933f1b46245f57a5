"""State of the secured graph: everything a run needs to resume in another process, as plain JSON values.

It never contains a LangChain object, a permit or a code.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """A call proposed by a model, as it is shown to the model again."""

    id: str
    name: str
    args: dict[str, Any]


class ChatMessage(TypedDict):
    """One message of the window. Only the react graph keeps a model's calls and their results in it."""

    id: str
    role: str
    content: str
    tool_calls: NotRequired[list[CalledTool]]
    tool_call_id: NotRequired[str]


class PlannedStep(TypedDict):
    """One step of the plan: its tool and arguments, and the part of the request it serves.

    A model may leave a step open because its arguments depend on earlier results; Executor then asks for the call when
    the step is due. If the step names no tool, any allowed tool may be proposed.
    """

    id: str
    tool: str
    args: dict[str, Any]
    clause: int
    open: NotRequired[bool]


class StepState(TypedDict):
    """The progress of one step."""

    id: str
    description: str
    status: StepStatus
    tries: int
    max_tries: int
    result_pointer: str | None
    last_error: str | None


class ProposedTool(TypedDict):
    """A proposal for RiskGate: raw arguments, their RFC 8785 form and its hash."""

    name: str
    args: dict[str, Any]
    canonical_args: str
    args_hash: str
    tool_call_id: str
    step_id: str
    schema_hash: str


class ToolResult(TypedDict):
    """The result of a tool call; size_chars is the size of the original output, even if the text was evicted."""

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
    """The part of a result shown to a model: bounded, inspected, and always presented as data."""

    step_id: str
    tool: str
    status: str
    text: str


class ApprovalState(TypedDict):
    """The approval the run waits for, without its code or any argument value."""

    state: str
    approval_class: str
    tool: str
    risk: str
    expire_us: int
    stakes: NotRequired[str]


class AskedAhead(ApprovalState):
    """An approval of a later call of the plan, requested together with the one the run waits for."""

    approval_id: str
    args_hash: str
    tool_call_id: str
    step_id: str


class SecurityContext(TypedDict):
    """The requesting user and the narrowed capabilities of the session."""

    permissions_level: str
    allowed_tools: list[str]
    session_token_hash: str
    is_sanitized: bool
    findings: list[str]
    """The kinds Inspect found in the person's message, each prefixed with its category: secret:jwt, personal:email."""


class Budgets(TypedDict):
    """Budget usage: supersteps in this turn; tool calls, re-plans and step numbers in the run."""

    supersteps: int
    tool_calls: int
    replans: int
    step_numbers: int


class StandingEffect(TypedDict):
    """An effect of an earlier request: its tool, and the file or the reminder."""

    tool: str
    name: str


class LikelyState(TypedDict):
    """What words that no pattern reads most likely mean: a request that is planned or only offered, or a reply."""

    request: str
    offered: bool
    key: str
    values: dict[str, str]
    left: NotRequired[list[str]]


class Incoming(TypedDict):
    """The message that started the turn; the text is empty if an approval was decided elsewhere.

    meant is the request that the text turns the previous message into, if it does; stays is what was done for that one
    and stays; said_before is the last request, if the text asks for it.
    """

    id: str
    text: str
    meant: NotRequired[str]
    stays: NotRequired[StandingEffect]
    said_before: NotRequired[str]
    likely: NotRequired[LikelyState]
    """What the text most likely means, if no pattern reads it."""
    attachments: NotRequired[list[str]]
    """The pointers of the attachments that came with it."""
    reasons: NotRequired[list[str]]
    """Stable codes for why the message has its pathway."""
    others: NotRequired[str]
    """What others wrote that came with the text: forwarded, quoted, shared."""
    hidden: NotRequired[bool]
    """Whether none of its words are kept readable, because it was said in a form with sensitive fields."""


class Reply(TypedDict):
    """The agent's reply at the end of the turn; choices are the answers that its question takes, if only these."""

    id: str
    text: str
    choices: NotRequired[list[str]]


class RecalledMemory(TypedDict):
    """One memory relevant to the message; text from a tool or the web is in untrusted_text only, for quoting."""

    memory_id: str
    text: str
    untrusted_text: str
    source: str
    trust: str
    valid_us: int


class ProfileFact(TypedDict):
    """One lasting fact about the person since when it holds, and its source."""

    name: str
    value: str | float | bool
    source: str
    trust: str
    valid_us: NotRequired[int]


class TurnState(TypedDict):
    """The state fields the runtime reads for any graph: the accepted turn and how it ended."""

    turn_id: str
    request_turn: str
    """The turn in which the request arrived."""
    plan: list[PlannedStep]
    steps: dict[str, StepState]
    approval_id: str | None
    do_not_store: bool
    run_status: RunStatus
    finish_reason: str
    reply: Reply | None


class AgentState(TurnState):
    """The complete state of a thread in the secured graph."""

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
    """Why this turn has no data from memory; empty if memory was read."""
    incoming: Incoming
    request: str
    request_pathway: str
    """The pathway of the message that carried the request.

    An approval's reply has another pathway and does not change this.
    """
    current_step: str | None
    tried: list[str]
    proposed_tool: ProposedTool | None
    queued_tools: list[ProposedTool]
    last_tool_result: ToolResult | None
    awaiting_approval: bool
    approval_hash: str | None
    approval_state: ApprovalState | None
    asked_ahead: list[AskedAhead]
    """Approvals shown on the same card as the pending one, in the order of the calls."""
    awaiting_user_input: bool
    directive: str
    notes: list[str]
    quoted: dict[str, str]
    """The notes that quote foreign text, by index: the substitute for each if the text was not inspected."""
    planned_by: Literal["rules", "model"]
    model_away: str
    """Why the turn continues in static mode although a model is configured; empty if it does not."""
    results: list[ShownResult]
    calls: list[CallRecord]
    """The input of the loop guards."""
    hint: str
    """The hint to the planner or model about a beginning loop; empty if there is none."""
    security_context: SecurityContext
    audit_trail: list[str]
    budgets: Budgets


def new_run_input(turn: Turn) -> dict[str, Any]:
    """Return the graph's input for a new run, with every field of the previous run reset."""
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
    """Return the graph's input for resuming a suspended run: the new message and memory's current content, if read.

    The window remains the run's own because it already holds every turn of the run.
    """
    read = turn.hydration
    known = {} if read is None or read.degraded else {"memories": _memories(read), "profile": _profile(read)}
    wish = {"do_not_store": True} if turn.do_not_store else {}  # once set, it applies to the rest of the run
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
    """Return the effective request of a message: the rewritten request if there is one, otherwise its own words."""
    return incoming.get("meant") or incoming["text"]


def names_tools_only(state: Mapping[str, Any]) -> bool:
    """Return True if a step is described by its tool's name: the words it serves are not to be stored, or readable."""
    return bool(state["do_not_store"] or state["incoming"].get("hidden", False))


def asked_of_rules(incoming: Incoming) -> str:
    """Return what the rules plan: the effective request, or the one that words no pattern reads most likely mean."""
    likely = incoming.get("likely")
    return likely["request"] if likely and likely["request"] and not likely["offered"] else meant_in(incoming)


def with_attachments(incoming: Incoming) -> str:
    """Return a message's words as a model is shown them: with the pointers by which its attachments are read."""
    attached = ", ".join(incoming.get("attachments", ()))
    told = f"\n[attachments, to be read with read_attachment: {attached}]" if attached else ""
    return incoming["text"] + told


def _incoming(turn: Turn) -> Incoming:
    incoming = Incoming(id=turn.turn_id, text=turn.text)
    if turn.meant:
        incoming["meant"] = turn.meant
    if turn.stays:
        incoming["stays"] = StandingEffect(tool=turn.stays[0], name=turn.stays[1])
    if turn.said_before:
        incoming["said_before"] = turn.said_before
    if turn.likely is not None:
        one = turn.likely
        incoming["likely"] = LikelyState(request=one.request, offered=one.offered, key=one.key, values=dict(one.values))
        if one.left:
            incoming["likely"]["left"] = list(one.left)
    if turn.attachments:
        incoming["attachments"] = list(turn.attachments)
    if turn.others:
        incoming["others"] = turn.others
    if turn.hidden:
        incoming["hidden"] = True
    if turn.reasons:
        incoming["reasons"] = list(turn.reasons)
    return incoming


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
    return [
        ProfileFact(name=f.name, value=f.value, source=f.source, trust=f.trust, valid_us=f.valid_us)
        for f in read.profile
    ]
