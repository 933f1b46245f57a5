"""The four routing functions of the form graph, and the edges the graph has by them."""

from __future__ import annotations

from typing import Any, cast

from langgraph.graph import START
from phylactery_agent.graph.core.routing import targets_of
from phylactery_agent.graph.form.builder import ENTRY, FORM_NODES, embedded, form_spec
from phylactery_agent.graph.form.edges import (
    route_after_correction_check,
    route_after_escalation_check,
    route_after_off_topic_check,
    route_after_validate,
)
from phylactery_agent.graph.form.state import GraphState
from phylactery_forms.dialogue.routes import EDGES

from tests.support.agent.forms import contact, state_of
from tests.support.agent.graph import strict_saver
from tests.support.cases import each_case


def state(*, collected: bool = False, **changes: Any) -> GraphState:
    made = state_of("hola", contact())
    return cast("GraphState", {**made, **changes, "metadata": {"all_collected": collected}})


def test_a_conversation_that_is_to_be_escalated_goes_to_escalate() -> None:
    assert route_after_escalation_check(state(should_escalate=True)) == "escalate"


def test_any_other_goes_to_check_correction() -> None:
    assert route_after_escalation_check(state(should_escalate=False)) == "check_correction"


def test_a_correction_goes_to_extract_field() -> None:
    assert route_after_correction_check(state(is_correction=True)) == "extract_field"


def test_what_corrects_nothing_goes_to_check_off_topic() -> None:
    assert route_after_correction_check(state(is_correction=False)) == "check_off_topic"


def test_a_correction_without_a_known_field_goes_to_extract_field_as_well() -> None:
    assert route_after_correction_check(state(is_correction=True, correction_field=None)) == "extract_field"


def test_a_form_whose_fields_are_all_collected_is_completed() -> None:
    assert route_after_off_topic_check(state(collected=True)) == "complete"


def test_completion_goes_before_the_topic() -> None:
    assert route_after_off_topic_check(state(collected=True, is_off_topic=True)) == "complete"


def test_what_is_off_topic_goes_to_prompt_next() -> None:
    assert route_after_off_topic_check(state(is_off_topic=True)) == "prompt_next"


def test_a_command_goes_to_prompt_next() -> None:
    assert route_after_off_topic_check(state(next_action="told")) == "prompt_next"


def test_a_relevant_message_goes_to_extract_field() -> None:
    assert route_after_off_topic_check(state()) == "extract_field"


def test_after_the_last_field_the_form_is_completed() -> None:
    assert route_after_validate(state(collected=True, is_valid=True)) == "complete"


def test_while_fields_are_missing_the_next_is_asked() -> None:
    assert route_after_validate(state(is_valid=True)) == "prompt_next"


def test_after_an_invalid_value_it_is_asked_again() -> None:
    assert route_after_validate(state(is_valid=False)) == "prompt_next"


def test_the_compiled_graph_has_exactly_the_edges_of_the_seed() -> None:
    spec = form_spec(lambda _: {}, lambda _: {})
    drawn = spec.compile(strict_saver()).get_graph()
    assert {(edge.source, edge.target) for edge in drawn.edges} == {(START, ENTRY), *EDGES}
    assert set(drawn.nodes) == {START, "__end__", *FORM_NODES}


def test_every_node_declares_the_targets_that_its_routing_function_names() -> None:
    declared = {(name, target) for name, node in FORM_NODES.items() for target in targets_of(node)}
    assert declared == set(EDGES)


def test_an_embedded_node_declares_the_targets_of_the_graph_around_it() -> None:
    node = embedded("complete", ["Supervisor", "Finalizer"], lambda _: "Supervisor")
    assert targets_of(node) == ("Supervisor", "Finalizer")


@each_case("name", list(FORM_NODES))
def test_every_node_has_the_name_of_the_seed(name: str) -> None:
    assert cast("Any", FORM_NODES[name]).__name__ == name
