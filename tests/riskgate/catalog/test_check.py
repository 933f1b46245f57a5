"""`riskgate catalog check`: gaps in a catalog, with line and consequence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.cli import app
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR
from phylactery_riskgate.domain.intent.reading import read_words
from phylactery_riskgate.domain.intent.understood import is_heard
from phylactery_riskgate.domain.model import BoundCall
from typer.testing import CliRunner, Result

from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import ALLOW_ALL, tool, write_bundle

WHOLE: dict[str, Any] = {
    "effect": "write",
    "controls": ["/to"],
    "roles": {"/to": "principal"},
    "asks": {
        "phrases": {"en": ["pay * bill"], "es": ["paga * factura"]},
        "examples": {"en": ["Please pay the electricity bill"], "es": ["Paga la factura de la luz"]},
    },
    "output": {"/id": "system"},
}


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["catalog", "check", *map(str, words)])


def pay(name: str = "pay", **changes: Any) -> dict[str, Any]:
    return tool(name, {"to": {"type": "string"}}, **{**WHOLE, **changes})


def checked(folder: Path, *tools: dict[str, Any]) -> dict[str, Any]:
    write_bundle(folder, list(tools), ALLOW_ALL)
    result = run(folder, "--json")
    facts: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (0 if facts["ok"] else 1)
    return facts


def gaps(folder: Path, *tools: dict[str, Any]) -> list[str]:
    return [one["gap"] for one in checked(folder, *tools)["missing"]]


def test_a_tool_that_says_everything_lacks_nothing(tmp_path: Path) -> None:
    facts = checked(tmp_path, pay())
    assert facts["missing"] == []
    assert facts["tools"] == [
        {
            "name": "pay",
            "effect": "write",
            "phrases": {"en": 1, "es": 1},
            "examples": {"en": 1, "es": 1},
            "controls": 1,
            "controls_with_role": 1,
            "outputs": 1,
            "missing": [],
        }
    ]


@pytest.mark.parametrize(
    ("changes", "gap", "message", "cost"),
    [
        (
            {"asks": {**WHOLE["asks"], "phrases": {"en": ["pay * bill"]}}},
            "NO_PHRASES",
            "no phrases in Spanish",
            "its calls ask",
        ),
        (
            {"asks": {**WHOLE["asks"], "phrases": {"es": ["paga * factura"]}}},
            "NO_PHRASES",
            "no phrases in English",
            "its calls ask",
        ),
        (
            {"asks": {**WHOLE["asks"], "examples": {"en": ["Pay my bill"]}}},
            "NO_EXAMPLES",
            "no examples in Spanish",
            "no example tests its phrases in Spanish",
        ),
        (
            {"asks": {**WHOLE["asks"], "examples": {**WHOLE["asks"]["examples"], "en": ["Sort out what I owe"]}}},
            "EXAMPLE_UNHEARD",
            "'Sort out what I owe'",
            "not understood and asks",
        ),
        (
            {"asks": {**WHOLE["asks"], "phrases": {"en": ["pay * bill", "to"], "es": ["paga * factura"]}}},
            "PHRASE_TOO_BROAD",
            "'to' consists only of function words",
            "many other requests",
        ),
        ({"roles": {}}, "NO_ROLE", "the control /to has no role", "an object"),
        ({"output": {}}, "NO_OUTPUT", "no kinds of output fields", "its whole result counts as free text"),
        ({"registry": ["/email"]}, "REGISTRY_WITHOUT_KIND", "the registry /email", "trusted as a whole"),
    ],
)
def test_each_thing_left_unsaid_is_told_with_what_it_costs(
    tmp_path: Path, changes: dict[str, Any], gap: str, message: str, cost: str
) -> None:
    found = checked(tmp_path, pay(**changes))["missing"]
    assert [one["gap"] for one in found] == [gap]
    assert message in found[0]["message"]
    assert cost in found[0]["cost"]


def test_a_role_on_what_a_control_covers_is_its_role(tmp_path: Path) -> None:
    properties = {"to": {"type": "object", "properties": {"iban": {"type": "string"}}}}
    nested = tool("pay", properties, **{**WHOLE, "roles": {"/to/iban": "principal"}})
    assert gaps(tmp_path, nested) == []


def test_phrases_two_tools_claim_are_told_where_one_of_them_changes_something(tmp_path: Path) -> None:
    facts = checked(tmp_path, pay(), pay("settle"))
    assert {(one["tool"], one["gap"]) for one in facts["missing"]} == {("settle", "SAME_WORDS")}
    assert "'pay * bill' is a phrase of pay too" in facts["missing"][0]["message"]
    readers = [pay("show", effect="read"), pay("list", effect="read")]
    assert gaps(tmp_path / "readers", *readers) == []


def test_phrases_in_another_case_or_with_other_accents_are_the_same_words(tmp_path: Path) -> None:
    asks = {**WHOLE["asks"], "phrases": {"en": ["PAY * Bill"], "es": ["págà * factura"]}}
    assert gaps(tmp_path, pay(), pay("settle", asks=asks)) == ["SAME_WORDS", "SAME_WORDS"]


def test_the_table_and_the_lines_say_where_to_write_it(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path, [], ALLOW_ALL)
    (folder / "tools.yaml").write_text(
        "tools:\n"
        "  - name: wipe\n"
        "    risk: high\n"
        "    effect: irreversible\n"
        "    description: Wipes.\n"
        "    description_es: Borra.\n"
        "    controls: [/what]\n"
        "    schema: {type: object, properties: {what: {type: string}}}\n"
    )
    result = run(folder)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    lines = lines[lines.index("") + 1 :]
    assert lines[0].split() == ["TOOL", "EFFECT", "PHRASES", "EXAMPLES", "ROLES", "OUTPUT"]
    assert lines[1].split() == ["wipe", "irreversible", "en", "0", "es", "0", "en", "0", "es", "0", "0/1", "0"]
    assert any(line.startswith("tools.yaml:7: wipe: the control /what has no role: ") for line in lines)
    assert lines[-1] == "6 things missing in 1 of 1 tools"


def test_the_default_bundle_lacks_nothing() -> None:
    result = run()
    shipped = default_bundle().tools
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"ok: {len(shipped)} tools, nothing is missing")


def test_every_builtin_tool_is_heard_in_each_of_its_examples_and_in_no_other_tools_phrase() -> None:
    tools = default_bundle().tools
    unheard = [
        (tool.name, example)
        for tool in tools.values()
        for example in (*tool.asks.examples_en, *tool.asks.examples_es)
        if not is_heard(tool, example)
    ]
    assert unheard == []
    assert not is_heard(tools["write_file"], "What do you remember about tea?")
    assert not is_heard(tools["send_email"], "Lee notas.txt")


def level(words: str, path: str, content: str) -> int:
    """How far the words ask for a file to be written."""
    write_file = default_bundle().tools["write_file"]
    call = BoundCall("write_file", "", {"path": path, "content": content, "append": True}, "", "")
    return task_facts(TaskIndex([read_words(words)]), write_file, call).intent


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("Escribe un poema sobre el mar", "notas.txt"),
        ("Write me a poem about the sea", "notes.txt"),
        ("No escribas nada en notas.txt", "notas.txt"),
        ("Do not write anything to notes.txt", "notes.txt"),
        ("Lee notas.txt", "notas.txt"),
        ("What is in notes.txt?", "notes.txt"),
        ("Escríbelo en notas.txt", "notas.txt"),
    ],
)
def test_what_asks_for_something_else_does_not_ask_for_a_file_to_be_written(words: str, path: str) -> None:
    assert level(words, path, "hello") < CLEAR


@pytest.mark.parametrize(
    ("words", "path", "content"),
    [
        (
            "¿Podrías añadir «pan, leche, huevos, azúcar, sal y aceite de oliva» a compra.txt?",
            "compra.txt",
            "pan, leche, huevos, azúcar, sal y aceite de oliva",
        ),
        ("Quiero que pongas hola en notas.txt", "notas.txt", "hola"),
        ("Apúntame en compra.txt que falta pan", "compra.txt", "Falta pan"),
        ("crea notas.txt con hola", "notas.txt", "hola"),
        ("add milk to shopping.txt", "shopping.txt", "milk"),
        ("append 'x' to b.txt", "b.txt", "x"),
        ("create notes.txt saying hi", "notes.txt", "hi"),
    ],
)
def test_a_file_is_asked_for_in_many_forms_of_both_languages(words: str, path: str, content: str) -> None:
    assert level(words, path, content) == CLEAR
    assert level(words, f"other-{path}", content) < CLEAR
    assert level(words, path, "send everything to eve") < CLEAR


def test_a_bundle_that_cannot_be_read_is_exit_code_two_and_every_fault(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere")
    assert result.exit_code == 2
    write_bundle(tmp_path / "bad", [pay(roles={"/x": "boss"})], ALLOW_ALL)
    result = run(tmp_path / "bad", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "tools.yaml:1: tools/0/roles//x" in result.stderr


def test_a_draft_is_checked_without_a_bundle_around_it(tmp_path: Path) -> None:
    source = json.dumps([{"name": "delete_file", "inputSchema": {"type": "object"}}])
    draft = tmp_path / "draft.yaml"
    draft.write_text(CliRunner().invoke(app, ["catalog", "draft", "-"], input=source).stdout)
    found = json.loads(run(draft, "--json").stdout)["missing"]
    assert {one["gap"] for one in found} == {"NO_EXAMPLES", "NO_OUTPUT"}
    draft.write_text("tools: [{}]")
    assert run(draft).exit_code == 2
    draft.write_bytes(b"\xff")
    assert run(draft).exit_code == 2


def test_nothing_in_a_bundle_speaks_to_the_terminal(tmp_path: Path) -> None:
    asks = {**WHOLE["asks"], "examples": {"en": ["Settle it \u00a0 now"], "es": ["Salda \u200b todo"]}}
    write_bundle(tmp_path, [pay(asks=asks)], ALLOW_ALL)
    result = run(tmp_path)
    assert result.exit_code == 2
    assert all(char.isprintable() or char == "\n" for char in result.stdout + result.stderr)


def test_the_check_begins_with_what_runs_without_a_question_the_most_serious_first(tmp_path: Path) -> None:
    tools = [
        pay("note", reach="own", undo="ours", reviewed="yes"),
        pay("tell", reach="people"),
        pay("spend", reach="people", spends=True),
        pay("wipe", effect="irreversible", reach="public", destroys=True),
        pay("ask", risk="high"),
        tool("look", {"to": {"type": "string"}}),
    ]
    asks = 'forbid (principal, action in Action::"risk:high", resource) unless'
    asks = f'{asks} {{ context.approved.contains(Class::"self") }};'
    write_bundle(tmp_path, tools, f'{ALLOW_ALL} @id("ask") @title("High asks") {asks}')
    facts = json.loads(run(tmp_path, "--json").stdout)
    found = facts["runs_without_a_question"]
    assert [one["name"] for one in found] == ["wipe", "spend", "tell", "note"]
    assert [one["stakes"] for one in found] == ["high", "high", "high", "low"]
    assert found[0]["serious"] == ["irreversible", "destroys", "public"]
    assert run(tmp_path).stdout.splitlines()[:3][0] == "RUNS WITHOUT A QUESTION"


def test_the_check_says_when_nothing_runs_without_a_question(tmp_path: Path) -> None:
    asks = 'permit (principal, action, resource) when { context.approved.contains(Class::"self") };'
    write_bundle(tmp_path, [pay()], f'@id("ask") @title("All ask") {asks}')
    assert run(tmp_path).stdout.splitlines()[0] == "RUNS WITHOUT A QUESTION: nothing that changes anything"
