"""Each node of the form graph by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.runtime import Runtime
from phylactery_agent.graph.form import nodes
from phylactery_agent.graph.form.state import GraphState
from phylactery_agent.ports import TurnContext
from phylactery_agent.ports.forms import FormContext
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.opinions import Opinion, Quoted
from phylactery_forms.dialogue.state import ConversationState, put
from phylactery_forms.values.model import Context, Language

from tests.support.agent.forms import contact, context, state_of
from tests.support.agent.graph import Chat


class Model:
    """A model with one opinion, which records what it was asked about."""

    def __init__(self, **opinion: Any) -> None:
        self.opinion = Opinion(**opinion)
        self.seen: list[str] = []

    async def read(self, form: Form, conversation: ConversationState, text: str, context: Context) -> Opinion | None:
        self.seen.append(text)
        return self.opinion

    async def thanks(self, form: Form, language: Language) -> str:
        raise AssertionError


class Node:
    """Runs one node on a state, the way the graph would."""

    def __init__(self, folder: Path) -> None:
        self.services = Chat(folder)._context("es")
        self.model: Model | None = None
        self.form = contact()

    async def __call__(self, node: Any, state: GraphState) -> tuple[str, GraphState]:
        given = FormContext({self.form.id: self.form}, context(), self.model)
        runtime: Runtime[TurnContext] = Runtime(context=replace(self.services, forms=given))
        command = await node(state, runtime)
        return command.goto, cast("GraphState", {**state, **command.update})


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def with_name(text: str, **more: Any) -> GraphState:
    state = state_of(text, contact())
    conversation = {**put(state["conversation"], "name", "Juan", "tn_0"), "asked": "email", **more}
    return cast("GraphState", {**state, "conversation": conversation})


async def test_check_escalation_hands_over_who_asks_for_a_person(node: Node) -> None:
    goto, state = await node(nodes.check_escalation, state_of("Necesito hablar con un humano", contact()))
    assert goto == "escalate"
    assert state["should_escalate"]
    assert state["escalation_reason"] == "keyword: asked_for_person"


async def test_check_escalation_lets_an_answer_pass(node: Node) -> None:
    goto, state = await node(nodes.check_escalation, state_of("Mi nombre es Juan", contact()))
    assert (goto, state["should_escalate"], state["escalation_reason"]) == ("check_correction", False, None)


async def test_check_escalation_takes_a_job_title_for_an_answer(node: Node) -> None:
    goto, _ = await node(nodes.check_escalation, with_name("gerente", asked="job"))
    assert goto == "check_correction"
    goto, _ = await node(nodes.check_escalation, with_name("gerente"))
    assert goto == "escalate"


async def test_check_escalation_heeds_a_model_after_the_rules(node: Node) -> None:
    node.model = Model(wants_person=True)
    goto, state = await node(nodes.check_escalation, with_name("esto se me hace muy cuesta arriba"))
    assert (goto, state["metadata"]["policy"]) == ("escalate", "llm_intent")


async def test_check_correction_finds_the_field_of_a_new_value(node: Node) -> None:
    state = with_name("No, mi email es juan.nuevo@ejemplo.com")
    filled = put(state["conversation"], "email", "juan@ejemplo.com", "tn_0")
    asks = cast("GraphState", {**state, "conversation": {**filled, "asked": "job"}})
    goto, after = await node(nodes.check_correction, asks)
    assert (goto, after["is_correction"], after["correction_field"]) == ("extract_field", True, "email")


async def test_check_correction_takes_a_first_answer_for_none(node: Node) -> None:
    goto, state = await node(nodes.check_correction, with_name("juan@ejemplo.com"))
    assert (goto, state["is_correction"], state["correction_field"]) == ("check_off_topic", False, None)


async def test_check_correction_carries_out_a_command(node: Node) -> None:
    goto, state = await node(nodes.check_correction, with_name("deshacer"))
    assert (goto, state["next_action"], state["conversation"]["values"]) == ("check_off_topic", "undone", {})


async def test_check_correction_asks_a_model_only_where_the_rules_know_nothing(node: Node) -> None:
    node.model = Model(corrects="name")
    goto, state = await node(nodes.check_correction, with_name("lo del principio se escribe con jota"))
    assert (goto, state["correction_field"]) == ("extract_field", "name")
    node.model.seen.clear()
    await node(nodes.check_correction, with_name("juan@ejemplo.com"))
    assert node.model.seen == []


async def test_check_off_topic_recognises_a_greeting(node: Node) -> None:
    goto, state = await node(nodes.check_off_topic, with_name("Hola"))
    assert (goto, state["is_off_topic"], state["conversation"]["digressions"]) == ("prompt_next", True, 1)


async def test_check_off_topic_recognises_an_unrelated_question(node: Node) -> None:
    goto, state = await node(nodes.check_off_topic, with_name("¿Cuál es el clima?"))
    assert (goto, state["is_off_topic"]) == ("prompt_next", True)


async def test_check_off_topic_never_throws_an_answer_away(node: Node) -> None:
    node.model = Model(off_topic=True)
    goto, state = await node(nodes.check_off_topic, with_name("juan@ejemplo.com"))
    assert (goto, state["is_off_topic"]) == ("extract_field", False)


async def test_extract_field_reads_the_asked_field(node: Node) -> None:
    goto, state = await node(nodes.extract_field, with_name("mi correo es juan@ejemplo.com"))
    assert (goto, state["extracted_value"], state["current_field"]) == ("validate", "juan@ejemplo.com", "email")


async def test_extract_field_makes_none_of_a_model_that_found_nothing(node: Node, subtests: pytest.Subtests) -> None:
    for answer in ("NOT_PROVIDED", "INVALID", " invalid ", "", "juan arroba ejemplo"):
        with subtests.test(answer):
            node.model = Model(values={"email": Quoted(answer, "luego te lo digo")})
            _, state = await node(nodes.extract_field, with_name("luego te lo digo"))
            assert (state["extracted_value"], state["metadata"]["doubt"]) == (None, None)


async def test_extract_field_asks_back_what_a_model_read_and_the_quote_does_not_yield(node: Node) -> None:
    said = "juan en ejemplo punto com"
    node.model = Model(values={"email": Quoted("juan@ejemplo.com", said)})
    _, state = await node(nodes.extract_field, with_name(said))
    assert (state["extracted_value"], state["metadata"]["doubt"]["values"]) == (None, ["juan@ejemplo.com"])
    node.model = Model(values={"email": Quoted("juan@ejemplo.com", "juan@ejemplo.com")})
    _, state = await node(nodes.extract_field, with_name(said))
    assert (state["extracted_value"], state["metadata"]["doubt"]) == (None, None)


async def test_validate_puts_a_valid_value_into_the_form(node: Node) -> None:
    state = cast("GraphState", {**with_name("x"), "extracted_value": "juan@ejemplo.com", "current_field": "email"})
    goto, after = await node(nodes.validate, state)
    assert (goto, after["is_valid"]) == ("prompt_next", True)
    assert after["conversation"]["values"]["email"]["value"] == "juan@ejemplo.com"
    assert after["conversation"]["asked"] == "job"


async def test_validate_keeps_the_old_value_until_a_new_one_is_valid(node: Node) -> None:
    state = with_name("no, mi nombre es 77")
    asks = cast(
        "GraphState",
        {**state, "extracted_value": None, "current_field": "name", "is_correction": True, "correction_field": "name"},
    )
    goto, after = await node(nodes.validate, asks)
    assert (goto, after["is_valid"]) == ("prompt_next", False)
    assert after["conversation"]["values"]["name"]["value"] == "Juan"


async def test_validate_counts_an_attempt_of_the_asked_field(node: Node) -> None:
    state = cast("GraphState", {**with_name("x"), "extracted_value": None, "current_field": "email"})
    _, after = await node(nodes.validate, state)
    assert after["conversation"]["attempts"] == {"email": 1}


async def test_prompt_next_asks_for_the_next_field(node: Node) -> None:
    goto, state = await node(nodes.prompt_next, cast("GraphState", {**with_name("Juan"), "is_valid": True}))
    assert (goto, state["response"]) == ("__end__", "¿Cuál es tu correo?")
    assert state["reply"] is not None
    assert state["reply"]["text"] == state["response"]


async def test_prompt_next_leads_back_from_a_digression(node: Node) -> None:
    _, state = await node(nodes.prompt_next, cast("GraphState", {**with_name("¿y el clima?"), "is_off_topic": True}))
    assert state["response"] == "Luego vuelvo a eso. ¿Cuál es tu correo?"


async def test_prompt_next_explains_the_format_of_an_invalid_value(node: Node) -> None:
    state = with_name("juan@", attempts={"email": 1})
    _, after = await node(nodes.prompt_next, cast("GraphState", {**state, "current_field": "email"}))
    assert "@" in after["response"]
    assert after["response"].endswith("¿Cuál es tu correo?")


async def test_escalate_marks_the_conversation_with_policy_and_reason(node: Node) -> None:
    state = cast("GraphState", {**with_name("x"), "metadata": {"policy": "keyword", "reason": "asked_for_person"}})
    goto, after = await node(nodes.escalate, state)
    assert (goto, after["conversation"]["status"]) == ("__end__", "escalated")
    assert after["conversation"]["escalation"] == {"policy": "keyword", "reason": "asked_for_person"}
    assert "persona" in after["response"]


async def test_complete_thanks_and_marks_the_conversation(node: Node) -> None:
    goto, state = await node(nodes.complete, with_name("x"))
    assert (goto, state["conversation"]["status"]) == ("__end__", "submitted")
    assert "Gracias" in state["response"]


async def test_a_turn_without_the_form_of_its_conversation_is_an_internal_error(tmp_path: Path) -> None:
    runtime: Runtime[TurnContext] = Runtime(context=Chat(tmp_path)._context("es"))
    with pytest.raises(RuntimeError, match="contact"):
        await nodes.check_escalation(state_of("hola", contact()), runtime)
