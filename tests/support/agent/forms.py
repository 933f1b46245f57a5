"""A form in a really compiled graph: messages in, the state after each out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from langgraph.graph.state import CompiledStateGraph
from phylactery_agent.graph.form.builder import form_spec
from phylactery_agent.graph.form.state import GraphState, new_run_input, reentry_input
from phylactery_agent.ports import Turn, TurnContext
from phylactery_agent.ports.forms import FormContext, FormReader
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.dialogue.state import ConversationState, new_conversation
from phylactery_forms.values.model import Context, Language

from tests.support.agent.graph import Chat, strict_saver

NOW = datetime.fromisoformat("2026-11-23T10:00:00+01:00")

CONTACT = """
id: contact
version: 1
title: {es: Contacto, en: Contact}
description: {es: Datos de contacto., en: Contact details.}
triggers: {es: [quiero dejar mis datos], en: [i want to leave my details]}
fields:
  - id: name
    type: person_name
    label: {es: nombre, en: name}
    ask: {es: "¿Cómo te llamas?", en: "What is your name?"}
  - id: email
    type: email
    label: {es: correo, en: e-mail}
    ask: {es: "¿Cuál es tu correo?", en: "What is your e-mail?"}
  - id: job
    type: text
    label: {es: puesto, en: job}
    ask: {es: "¿Cuál es tu puesto?", en: "What is your job?"}
    optional: true
escalation: {llm_intent: true, timeout: {minutes: 600}}
"""

DESK = """
id: desk
version: 1
title: {es: Puesto, en: Desk}
description: {es: Pide un puesto., en: Asks for a desk.}
triggers: {es: [quiero un puesto], en: [i want a desk]}
fields:
  - id: floor
    type: choice
    options: {choices: [north, south]}
    label: {es: ala, en: wing}
    ask: {es: "¿Qué ala?", en: "Which wing?"}
  - id: seats
    type: number
    options: {maximum: 9}
    label: {es: sitios, en: seats}
    ask: {es: "¿Cuántos sitios?", en: "How many seats?"}
"""


def contact(**changes: Any) -> Form:
    """Return a small form that submits nothing."""
    return replace(parse_form(CONTACT.encode(), "contact.yaml"), **changes)


def context(language: Language = "es", now: datetime = NOW) -> Context:
    return Context(language, now, "ES")


def turn_of(text: str, number: int = 1, intent: str = "conversation") -> Turn:
    return Turn(f"tn_{number}", f"rn_{number}", "th_1", "ana", "acme", text, "es", intent, "text_simple")


def state_of(text: str, form: Form, language: Language = "es", **changes: Any) -> GraphState:
    """Return the state in which a message enters the graph."""
    conversation = {**new_conversation(form, context(language)), **changes}
    return cast("GraphState", new_run_input(turn_of(text), cast("ConversationState", conversation)))


@dataclass
class FormTalk:
    """One conversation in the compiled form graph; ``nodes`` are those that the last message went through."""

    folder: Path
    form: Form = field(default_factory=contact)
    language: Language = "es"
    reader: FormReader | None = None
    now: datetime = NOW
    number: int = 0
    nodes: list[str] = field(default_factory=list)
    state: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.conversation = new_conversation(self.form, context(self.language, self.now))
        spec = form_spec(lambda turn: new_run_input(turn, self.conversation), self._reentry)
        self.graph: CompiledStateGraph[Any, TurnContext, Any, Any] = spec.compile(strict_saver())
        self.services = Chat(self.folder)._context("es")

    def _reentry(self, turn: Turn) -> dict[str, Any]:
        return reentry_input(turn, self.conversation)

    async def say(self, text: str, *, after: timedelta = timedelta(minutes=1), intent: str = "conversation") -> str:
        """Send a message; return the reply."""
        self.number += 1
        self.now += after
        given = FormContext({self.form.id: self.form}, context(self.language, self.now), self.reader)
        self.nodes = []
        config: Any = {"configurable": {"thread_id": "th_1"}}
        run = self.graph.astream(
            new_run_input(turn_of(text, self.number, intent), self.conversation),
            config,
            context=replace(self.services, forms=given),
            stream_mode="updates",
            durability="sync",
        )
        async for update in run:
            self.nodes += list(update)
        self.state = (await self.graph.aget_state(config)).values
        self.conversation = self.state["conversation"]
        return str(self.state["reply"]["text"])

    @property
    def values(self) -> dict[str, str]:
        return {name: one["value"] for name, one in self.conversation["values"].items()}
