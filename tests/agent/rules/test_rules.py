"""Static mode: rules, grammar and intents, byte for byte."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from phylactery_agent.rules.expressions import detect_language
from phylactery_agent.rules.intents import ApprovalReply, classify, is_continue, parse_reply, talk_kind
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.undoing import read_undo
from phylactery_agent.tools.contract import Example, ToolSpec
from phylactery_agent.tools.registry import ToolRegistrationError, ToolRegistry
from phylactery_agent.tools.specs import BUILTIN_SPECS

from tests.support.cases import each_case

TOOLS = ToolRegistry()
HERE = Path(__file__).parents[1]
GOLDEN = HERE / "golden" / "static_rules_v1.json"
CATALOG = HERE.parents[1] / "services/riskgate/phylactery_riskgate/default_bundle/tools.yaml"
EXAMPLES = [(spec, example) for spec in BUILTIN_SPECS for example in spec.examples]


def _judged(text: str) -> dict[str, Any]:
    reading = read_request(text, TOOLS)
    heard = asdict(classify(text, TOOLS))
    del heard["reasons"]
    return {
        "text": text,
        **heard,
        "clauses": [[[call.tool, call.args] for call in readings] for readings in reading.clauses],
        "unknown": reading.unknown,
    }


def test_the_golden_utterances_are_read_byte_for_byte_as_recorded() -> None:
    recorded = GOLDEN.read_text(encoding="utf-8")
    utterances = [entry["text"] for entry in json.loads(recorded)]
    now = json.dumps([_judged(text) for text in utterances], ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    assert now == recorded


@each_case(("spec", "example"), EXAMPLES, ids=[example.text for _, example in EXAMPLES])
def test_every_example_a_tool_declares_is_what_its_patterns_read(spec: ToolSpec, example: Example) -> None:
    (readings,) = read_request(example.text, TOOLS).clauses
    assert (readings[0].tool, readings[0].args) == (spec.name, dict(example.args))
    assert classify(example.text, TOOLS).intent == "task"
    assert classify(example.text, TOOLS).language == example.language


@each_case(
    ("text", "args"),
    [
        ("undo", {}),
        ("Undo that!", {}),
        ("undo my last change, please", {}),
        ("restore the previous version of notes.txt", {"path": "notes.txt"}),
        ("please go back to the previous version of the file “my notes.txt”", {"path": "my notes.txt"}),
        ("revert to the last version of notes.txt", {"path": "notes.txt"}),
        ("undo the last change to notes.txt", {"path": "notes.txt"}),
        ("deshaz", {}),
        ("deshacer", {}),
        ("Deshaz eso.", {}),
        ("por favor, deshaz mi último cambio", {}),
        ("¿puedes deshacer el ultimo cambio de notas.txt?", {"path": "notas.txt"}),
        ("vuelve a la versión anterior de notas.txt", {"path": "notas.txt"}),
        ("restaura la versión anterior del fichero «mis notas.txt»", {"path": "mis notas.txt"}),
    ],
)
def test_who_wants_a_change_undone_is_understood(text: str, args: dict[str, Any]) -> None:
    (readings,) = read_request(text, TOOLS).clauses
    assert [(call.tool, call.args) for call in readings] == [("undo_write", args)]


def test_a_regret_is_read_however_often_it_is_said() -> None:
    assert [call.tool for (call,) in read_request("no, wait, " * 1_500 + "undo that", TOOLS).clauses] == ["undo_write"]
    assert not read_request("no " * 5_000, TOOLS).clauses


@each_case(
    "text",
    [
        *("never undo that", "I would rather not undo it", "nunca deshagas eso", "undone"),
        *("no lo deshagas", "No, no lo deshagas", "no deshaz eso", "no la reviertas", "no undo that"),
    ],
)
def test_who_wants_nothing_undone_has_nothing_undone(text: str) -> None:
    assert read_request(text, TOOLS).clauses == ()


def test_every_builtin_schema_is_the_default_bundles_word_for_word() -> None:
    catalog = {tool["name"]: tool["schema"] for tool in yaml.safe_load(CATALOG.read_text(encoding="utf-8"))["tools"]}
    assert {spec.name: dict(spec.schema) for spec in BUILTIN_SPECS} == {
        spec.name: catalog[spec.name] for spec in BUILTIN_SPECS
    }


def test_risk_effect_and_idempotency_of_every_builtin_are_the_catalogs() -> None:
    catalog = {tool["name"]: tool for tool in yaml.safe_load(CATALOG.read_text(encoding="utf-8"))["tools"]}
    for spec in BUILTIN_SPECS:
        told = catalog[spec.name]
        assert (spec.contract.risk, spec.contract.effect, spec.contract.idempotency) == (
            told["risk"],
            told["effect"],
            told["idempotency"],
        )


@pytest.mark.parametrize("spec", BUILTIN_SPECS, ids=lambda spec: spec.name)
def test_the_pydantic_arguments_and_the_schema_know_the_same_fields(spec: ToolSpec) -> None:
    model = spec.args_model.model_json_schema()
    assert set(model["properties"]) == set(spec.schema["properties"])
    assert set(model.get("required", ())) == set(spec.schema["required"])
    assert model["additionalProperties"] is False


def test_the_schema_hash_is_the_one_riskgate_computes() -> None:
    from phylactery_riskgate.domain.bundle.bundle import load_bundle

    catalog = load_bundle(CATALOG.parent).tools
    assert {spec.name: spec.schema_hash for spec in BUILTIN_SPECS} == {
        spec.name: catalog[spec.name].schema_hash for spec in BUILTIN_SPECS
    }


@each_case(
    ("text", "reply"),
    [
        ("APROBAR ap_abc123 code_1234", ApprovalReply("approve", "ap_abc123")),
        ("  APPROVE ap_abc123   ________ \n", ApprovalReply("approve", "ap_abc123")),
        ("RECHAZAR ap_abc123", ApprovalReply("reject", "ap_abc123")),
        ("REJECT ap_abc123", ApprovalReply("reject", "ap_abc123")),
        ("aprobar ap_abc123 code_1234", None),
        ("APROBAR ap_abc123", None),
        ("APROBAR ap_1 code_1234", None),
        ("APROBAR ap_abc123 code_1234 ya", None),
        ("RECHAZAR ap_abc123 porque no", None),
        ("sí, APROBAR ap_abc123 code_1234", None),
        ("APROBAR ap_abc123 code_1234\nRECHAZAR ap_abc123", None),
        ("APROBAR ap_ábc123 code_1234", None),
        ("", None),
    ],
)
def test_only_the_strict_grammar_is_an_approval_reply(text: str, reply: ApprovalReply | None) -> None:
    assert parse_reply(text) == reply
    if reply is not None:
        assert classify(text, TOOLS).intent == "approval_reply"


@each_case(
    ("text", "kind"),
    [
        ("hola", "greeting"),
        ("Hi there!", "greeting"),
        ("buenos días, ¿qué tal?", "greeting"),
        ("muchas gracias", "thanks"),
        ("thank you so much", "thanks"),
        ("hasta luego", "farewell"),
        ("¿qué puedes hacer?", "help"),
        ("help", "help"),
        ("   ", "empty"),
        ("lee notas.txt", None),
    ],
)
def test_small_talk_is_told_from_tasks(text: str, kind: str | None) -> None:
    assert talk_kind(text) == kind
    assert classify(text, TOOLS).intent == ("task" if kind is None else "conversation")


def test_a_greeting_before_a_task_is_a_task() -> None:
    assert classify("hola, lee notas.txt por favor", TOOLS).intent == "task"
    assert read_request("hola, lee notas.txt por favor", TOOLS).clauses[0][0].args == {"path": "notas.txt"}


@each_case(
    ("text", "language"),
    [
        ("lee el fichero", "es"),
        ("read the file", "en"),
        ("¿año?", "es"),
        ("APPROVE a b", "en"),
        ("do a handstand", "en"),
        ("make me coffee", "en"),
        ("hazme un favor", "es"),
        ("xyz", "es"),
    ],
)
def test_the_language_follows_words_and_letters(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["lee https://example.org/precios", "read https://example.org/prices"])
def test_a_web_page_is_no_file_where_nothing_reads_web_pages(text: str) -> None:
    tools = ToolRegistry()
    tools.object_to("http_get", "settings", "NOT_CONFIGURED")
    assert read_request(text, tools).clauses == ()


def test_the_fallback_language_is_used_where_the_words_do_not_tell() -> None:
    assert classify("xyz", TOOLS, fallback="en").language == "en"


def test_quotes_keep_connectors_and_verbs_inside_the_content() -> None:
    (readings,) = read_request('escribe "uno; luego lee dos.txt y escribe tres" en b.txt', TOOLS).clauses
    assert readings[0].args == {"content": "uno; luego lee dos.txt y escribe tres", "path": "b.txt"}


def test_of_several_clauses_those_that_are_understood_are_planned_and_the_other_is_named() -> None:
    reading = read_request("lee a.txt; escribe algo bonito; repite hola", TOOLS)
    assert [call[0].tool for call in reading.clauses] == ["read_file", "echo"]
    assert reading.left == ("escribe algo bonito",)


@pytest.mark.parametrize(
    "text",
    ["lee a.txt; no escribas algo bonito", "lee a.txt; borra eso", 'write "x" to a.txt but don\'t delete b.txt'],
)
def test_a_clause_that_takes_something_back_or_points_to_another_keeps_all_from_being_planned(text: str) -> None:
    assert read_request(text, TOOLS).clauses == ()


@pytest.mark.parametrize(
    "text",
    [
        'ask Ana, then write "x" to a.txt',
        'check the numbers and write "x" to a.txt',
        'keep a copy, then write "x" to a.txt',
        'consúltalo con Ana y luego escribe "x" en a.txt',
        'lee b.txt; revisa los datos; escribe "x" en a.txt',
    ],
)
def test_what_is_not_understood_before_an_effect_may_be_its_condition(text: str) -> None:
    assert read_request(text, TOOLS).clauses == ()


def test_what_is_not_understood_before_a_reminder_is_named_beside_it() -> None:
    reading = read_request("book me a flight and remind me to pack tomorrow at 9 am", TOOLS)
    assert [call[0].tool for call in reading.clauses] == ["create_reminder"]
    assert reading.left == ("book me a flight",)


def test_one_content_goes_to_each_file_of_a_list() -> None:
    calls = read_request('write "a" to a.txt, b.txt and c.txt', TOOLS).clauses
    assert [call[0].args for call in calls] == [{"content": "a", "path": f"{name}.txt"} for name in "abc"]
    assert len(read_request('write "a.txt and b.txt" to c.txt', TOOLS).clauses) == 1


def test_a_write_has_one_reading_and_a_read_has_a_second_as_typed() -> None:
    assert [call.args["path"] for call in read_request("lee notas.txt.", TOOLS).clauses[0]] == [
        "notas.txt",
        "notas.txt.",
    ]
    assert [call.args["path"] for call in read_request('escribe "x" en notas.txt.', TOOLS).clauses[0]] == ["notas.txt"]


def test_a_range_that_ends_before_it_begins_is_not_understood() -> None:
    assert read_request("lee la salida out_abcdefgh desde 10 hasta 5", TOOLS).clauses == ()


def test_hostile_text_is_read_in_linear_time() -> None:
    reading = read_request("escribe " + '"' * 10_000 + " y " * 3_000, TOOLS)
    assert reading.clauses == ()


@each_case(
    "text",
    [
        "continúa",
        "Sigue.",
        "continue",
        "go on",
        "sí",
        "sí, adelante, gracias",
        "yes please",
        "Yes, please proceed with that",
    ],
)
def test_going_on_is_understood_in_both_languages(text: str) -> None:
    assert is_continue(text)


@pytest.mark.parametrize(
    "text", ["no", "sigue leyendo b.txt", "yes, and delete all", "yes, but only a.txt", "ok, thanks", "eso sí"]
)
def test_going_on_is_nothing_more_than_that(text: str) -> None:
    assert not is_continue(text)


def test_registering_twice_changes_nothing_and_a_taken_name_is_refused() -> None:
    tools = ToolRegistry()
    for spec in BUILTIN_SPECS:
        tools.register(spec)
    assert list(tools.values()) == list(BUILTIN_SPECS)
    with pytest.raises(ToolRegistrationError, match="echo"):
        tools.register(replace(tools["echo"], verbs=("x",)))


def test_a_tool_that_one_registry_holds_or_has_switched_off_is_not_so_in_another() -> None:
    tools, others = ToolRegistry(["tests.support.agent.counter_tool"]), ToolRegistry()
    tools.object_to("echo", "catalog", "NOT_IN_CATALOG")
    assert "count" in tools
    assert "count" not in others
    assert tools.refused_reason("echo") == "NOT_IN_CATALOG"
    assert others.refused_reason("echo") is None
    assert read_request("repite hola", others).clauses
    assert not read_request("repite hola", tools).clauses


@pytest.mark.parametrize(
    ("text", "path", "content"),
    [
        ("overwrite a.txt with x", "a.txt", "x"),
        ("replace everything in a.txt with two words", "a.txt", "two words"),
        ("Replace the text of a.txt with “hello”", "a.txt", "hello"),
        ("sobrescribe a.txt con x", "a.txt", "x"),
        ("sobrescribe a.txt: x", "a.txt", "x"),
        ("reemplaza a.txt por hola", "a.txt", "hola"),
        ("sustituye el contenido de a.txt por hola", "a.txt", "hola"),
    ],
)
def test_a_new_text_for_a_whole_file_is_planned_alone_and_behind_another_request(
    text: str, path: str, content: str
) -> None:
    for words, behind in ((text, 0), (f"read b.txt and {text}", 1), (f"lee b.txt y {text}", 1)):
        call = read_request(words, TOOLS).clauses[behind][0]
        assert (call.tool, call.args) == ("write_file", {"path": path, "content": content})


@pytest.mark.parametrize(
    "text",
    ["replace milk in a.txt with bread", "sustituye leche en a.txt por pan", "replace a.txt with b.txt",
     "reemplaza a.txt por lo que hay en b.txt"],
)  # fmt: skip
def test_no_part_of_a_file_is_replaced_unseen_nor_by_a_name(text: str) -> None:
    assert read_request(text, TOOLS).clauses == ()


@each_case(
    "text",
    [
        *("undo everything except a.txt", "undo all but the reminder", "undo what you did apart from a.txt"),
        *(
            "undo everything you did except for a.txt",
            "take everything back except the note",
            "undo the changes but a.txt",
        ),
        *("deshaz todo menos a.txt", "deshaz todo, excepto lo de a.txt", "deshaz lo que has hecho salvo a.txt"),
        *("revierte los cambios menos los de a.txt", "deshaz todo quitando el recordatorio"),
    ],
)
def test_an_undo_that_leaves_something_out_says_so(text: str) -> None:
    words = read_undo(text)
    assert words is not None
    assert words.excepts
    assert read_request(text, TOOLS).clauses == ()


@pytest.mark.parametrize("text", ["undo everything", "deshaz todo", "undo what you did", "deshaz los recordatorios"])
def test_an_undo_without_an_exception_leaves_nothing_out(text: str) -> None:
    words = read_undo(text)
    assert words is not None
    assert not words.excepts
