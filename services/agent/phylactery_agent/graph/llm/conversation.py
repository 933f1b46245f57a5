"""Model conversations: built-in text as system, the person's last words as user, everything else quoted as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from phylactery_agent.graph.core.state import AgentState, ProfileFact, ShownResult
from phylactery_agent.graph.llm.prompts import quoted, tag_of
from phylactery_agent.i18n.texts import error_text
from phylactery_agent.ports.model import ModelCall, ModelMessage, ModelReply

MAX_MESSAGE: Final = 2_000
MAX_MEMORY: Final = 1_000
"""Characters of one earlier message or one memory that are shown to a model."""
MAX_RESULT: Final = 4_000
"""Characters of one result that are shown to a model; the rest is in the reply, or under its pointer."""


def shown_text(text: str, limit: int = MAX_RESULT) -> str:
    """Return the part of a text shown to a model: its beginning and end, and how much was omitted between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters are left out here …]\n{text[-half:]}"


def clean(text: str) -> str:
    """Return a model's text in a form that can be stored and sent; lone surrogates cannot be encoded."""
    return text.encode("utf-8", "replace").decode()


def conversation(state: AgentState, told: str, request: str, *more: str) -> list[ModelMessage]:
    """Return the messages of one model request; more holds data blocks in addition to the known ones."""
    blocks = [*known_blocks(state), *_results(state), *more, *_hint(state)]
    messages = [ModelMessage("system", told + wishes(state["profile"]))]
    if blocks:
        messages.append(ModelMessage("user", "\n\n".join(blocks)))
    return [*messages, ModelMessage("user", request)]


def shown_in(messages: Sequence[ModelMessage]) -> str:
    """Return what a model is shown that neither it nor a built-in text says: what it may quote."""
    return "\n".join(one.content for one in messages if one.role in ("user", "tool"))


def corrected(messages: Sequence[ModelMessage], reply: ModelReply, said: str) -> list[ModelMessage]:
    """Return the messages with a reply that did not fit and the correction sent for it.

    Its calls are rendered as text because an interface may reject a call without a tool result.
    """
    calls = [f"{call.name}({_arguments(call)})" for call in reply.calls]
    content = "\n".join(part for part in (reply.text, *calls) if part) or "(nothing)"
    return [*messages, ModelMessage("assistant", content), ModelMessage("user", said)]


def _arguments(call: ModelCall) -> str:
    return shown_text(call.raw, MAX_MESSAGE)


_WISHES: Final[Mapping[tuple[str, str], str]] = {
    ("answer.length", "short"): "keep answers short",
    ("answer.length", "long"): "give detailed answers",
    ("answer.address", "formal"): "address them formally (usted in Spanish)",
    ("answer.address", "informal"): "address them informally (tú in Spanish)",
    ("answer.emojis", "no"): "use no emojis",
    ("answer.emojis", "yes"): "emojis are welcome",
    ("answer.format", "lists"): "use lists where they help",
    ("answer.format", "plain"): "use plain text without markup",
    ("language", "en"): "answer in English",
    ("language", "es"): "answer in Spanish",
}
"""What a person can want of every answer, by field and value of their profile, in words of ours.

A value that is not in it is only shown as data: a profile gives no model an instruction in somebody's own words.
"""


def wishes(profile: Sequence[ProfileFact]) -> str:
    """Return the sentence that tells a model how the person wants to be answered, empty if they did not say."""
    found = [_WISHES[key] for fact in profile if (key := (fact["name"], str(fact["value"]))) in _WISHES]
    return (
        f"\nThe person wants this of every answer, unless they ask otherwise now: {'; '.join(found)}." if found else ""
    )


def plan_block(state: AgentState) -> str:
    """Return the plan and the progress of each step, as data."""
    lines = []
    for planned in state["plan"]:
        step = state["steps"][planned["id"]]
        args = "(to be decided)" if planned.get("open") else json.dumps(planned["args"], ensure_ascii=False)
        why = f" because {error_text(step['last_error'], 'en')} ({step['last_error']})" if step["last_error"] else ""
        called = f"{planned['tool'] or '(any tool)'} {shown_text(args, MAX_MESSAGE)}"
        lines.append(f"{step['id']} [{step['status']}{why}] {called}: {step['description']}")
    return quoted(tag_of(state["run_id"]), "the plan so far", "\n".join(lines))


def goal_block(state: AgentState, step_id: str) -> str:
    """Return the step's goal as data, because a model wrote it, possibly from words that were not the person's."""
    step = state["steps"][step_id]
    tried = f"\nIt failed {step['tries']} time(s): {step['last_error']}" if step["last_error"] else ""
    return quoted(tag_of(state["run_id"]), "the step to carry out now", step["description"] + tried)


def known_blocks(state: AgentState) -> list[str]:
    """Return recalled memory and earlier messages as data, because an earlier answer may quote a file."""
    tag = tag_of(state["run_id"])
    blocks = []
    if state["profile"]:
        facts = "\n".join(f"{fact['name']}: {fact['value']}" for fact in state["profile"])
        blocks.append(quoted(tag, "what holds about the person", shown_text(facts)))
    for memory in state["memories"]:
        text = memory["text"] or memory["untrusted_text"]
        label = f"a memory, said by {memory['source'] or 'somebody'} and believed as {memory['trust'] or 'untrusted'}"
        blocks.append(quoted(tag, label, shown_text(text, MAX_MEMORY)))
    said = [message for message in state["messages"] if message["id"] != state["incoming"]["id"]]
    if said:
        lines = "\n".join(f"{message['role']}: {shown_text(message['content'], MAX_MESSAGE)}" for message in said)
        blocks.append(quoted(tag, "the conversation before", lines))
    if others := state["incoming"].get("others"):
        label = "what somebody else wrote, which the person passed on with their message and did not write"
        blocks.append(quoted(tag, label, shown_text(others)))
    return blocks


def _results(state: AgentState) -> list[str]:
    tag = tag_of(state["run_id"])
    shown: list[ShownResult] = state.get("results", [])
    return [
        quoted(tag, f"the result of {result['tool'] or 'no tool'} in step {result['step_id']}, {result['status']}",
               result["text"])
        for result in shown
    ]  # fmt: skip


def _hint(state: AgentState) -> list[str]:
    hint = state.get("hint", "")
    return [f"Note: {hint}"] if hint else []
