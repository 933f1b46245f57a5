"""Catalog drafts from unsupported and from hostile schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.catalog.drafting.writing import scalar
from phylactery_riskgate.domain.documents import read_document

from tests.riskgate.catalog.test_draft import SEND_EMAIL, run
from tests.support.cases import each_case


def schema_of(schema: Any, **more: Any) -> tuple[Any, str]:
    result = run("-", given=json.dumps({"tools": [{"name": "make_it", "inputSchema": schema, **more}]}))
    assert result.exit_code == 0, result.stderr
    return read_catalog(read_document("tools.yaml", result.stdout), ("user",))["make_it"].schema, result.stdout


def test_local_references_are_written_out_and_said() -> None:
    given = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "An A."}, "$ref": {"type": "string"}},
        "$defs": {"A": {"type": "array", "items": {"$ref": "#/definitions/B"}}},
        "definitions": {"B": {"type": "integer"}},
    }
    schema, text = schema_of(given)
    assert schema == {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}, "description": "An A."},
            "$ref": {"type": "string"},
        },
    }
    assert "# check: references are written out" in text
    assert "its hash is not the one the tool reports" in text


@pytest.mark.parametrize(
    ("part", "left", "said"),
    [
        ({"type": "integer", "maximum": 2**63 - 1}, {"type": "integer"}, "/properties/a/maximum is left out"),
        ({"type": "string", "pattern": "(a)\\1"}, {"type": "string"}, "/properties/a/pattern is left out"),
        ({"type": "string", "format": "password"}, {"type": "string"}, "/properties/a/format is left out"),
        ({"type": "string", "default": 3}, {"type": "string"}, "/properties/a/default is left out"),
        ({"anyOf": [{"default": 1}]}, {"anyOf": [{}]}, "/properties/a/anyOf/0/default is left out"),
    ],
)
def test_what_a_catalog_refuses_is_left_out_and_said(part: Any, left: Any, said: str) -> None:
    schema, text = schema_of({"type": "object", "properties": {"a": part}})
    assert schema["properties"] == {"a": left}
    assert f"# check: {said}" in text


def test_a_schema_without_a_type_gets_one_and_none_at_all_takes_anything() -> None:
    assert schema_of({"properties": {"a": {}}})[0] == {"type": "object", "properties": {"a": {}}}
    assert schema_of(None)[0] == {"type": "object"}


def laughs() -> dict[str, Any]:
    """Nine levels of references, ten each: a billion parts once written out."""
    defs = {
        f"d{level}": {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 10} if level < 9 else {"type": "string"}
        for level in range(10)
    }
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}


@each_case(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "refers to itself"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to what is not there"),
        ({"type": "object", "properties": {"a": {"$ref": "https://evil.example/x"}}}, "refers to another document"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "refers to another document"),
        ({"type": "object", "$dynamicRef": "#x"}, "$dynamicRef"),
        ({"type": "object", "properties": {"a": {"$ref": "#/x", "minLength": 1}}, "x": {}}, "says more beside $ref"),
        (laughs(), "holds more than 20000 parts"),
        ({"type": "string"}, "not one of an object"),
        ({"type": "object", "properties": []}, "not a supported JSON Schema"),
        ({"type": "object", "properties": {"__entity": {}}}, "RESERVED_KEY"),
        ({"type": "object", "properties": {"a": {"enum": [2**63]}}}, "OUT_OF_RANGE"),
        ({"type": "object", "properties": {"a": {"const": "\ud800"}}}, "invalid Unicode"),
        ({"type": "object", "properties": {"a" * 2_000: {}}}, "a property's name is longer than 200 characters"),
        ("text", "not a JSON object"),
        (7, "not a JSON object"),
    ],
)
def test_a_schema_that_cannot_be_one_of_a_catalog_is_named_and_the_others_are_drafted(schema: Any, reason: str) -> None:
    tools = [{"name": "bad", "inputSchema": schema}, SEND_EMAIL]
    result = run("-", "--json", given=json.dumps({"tools": tools}))
    facts = json.loads(result.stdout)
    assert (result.exit_code, facts["ok"]) == (1, False)
    assert [tool["name"] for tool in facts["tools"]] == ["send_email"]
    assert [one["name"] for one in facts["skipped"]] == ["bad"]
    assert reason in facts["skipped"][0]["reason"]
    assert list(read_catalog(read_document("tools.yaml", facts["tools_yaml"]), ("user",))) == ["send_email"]


def test_output_schemas_that_go_in_circles_are_refused_as_input_schemas_are() -> None:
    result = run("-", given=json.dumps([{**SEND_EMAIL, "outputSchema": {"items": {"$ref": "#"}}}]))
    assert (result.exit_code, "its output schema refers to itself" in result.stderr) == (1, True)


# ---- what is hostile ------------------------------------------------------------------------------------------------

ANSI = "\x1b[2J\x1b[31mgone\x07 \u202ereversed\u200b \x9b1m"


@pytest.mark.parametrize("as_json", [True, False])
def test_control_characters_reach_neither_the_terminal_nor_the_yaml(as_json: bool) -> None:
    tools = [
        {
            "name": "make_it",
            "description": f"Makes it.\n# check: nothing\ntools: []\n{ANSI}",
            "inputSchema": {
                "type": "object",
                "properties": {f"x{ANSI}": {"type": "string", "description": ANSI, "pattern": f"({ANSI})\\1"}},
                "required": [ANSI],
            },
            "outputSchema": {"type": "object", "properties": {ANSI: {"type": "string"}}},
        },
        {"name": f"bad{ANSI}", "inputSchema": {"type": "object"}},
        {"name": "loop", "inputSchema": {"type": "object", "properties": {"a": {"$ref": f"#{ANSI}"}}}},
    ]
    result = run("-", *(["--json"] if as_json else []), given=json.dumps(tools))
    assert result.exit_code == 1
    assert all(char.isprintable() or char == "\n" for char in result.stdout + result.stderr)
    text = json.loads(result.stdout)["tools_yaml"] if as_json else result.stdout
    (tool,) = read_catalog(read_document("tools.yaml", text), ("user",)).values()
    assert tool.schema == {
        "type": "object",
        "properties": {f"x{ANSI}": {"type": "string", "description": ANSI}},
        "required": [ANSI],
    }
    assert tool.description.isprintable()


@each_case(
    ("given", "reason"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("tools: []", "is not JSON"),
        ("7", "neither a list of tools nor a JSON Schema"),
        ('"text"', "neither a list of tools nor a JSON Schema"),
        ('{"tools": []', "is not JSON"),
        ('{"tools": NaN}', "NaN"),
        ('{"tools": [], "tools": []}', "repeats a key"),
        ("[" * 100_000, "nested deeper"),
        ('{"tools": [' + '{"a":' * 100_000, "nested deeper"),
        (json.dumps([{"name": f"t{number}"} for number in range(1_001)]), "lists 1001 tools"),
        ('"' + "a" * (8 * 1_048_576) + '"', "is longer than 8 MiB"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (f"[{'9' * 100_000}]", "bad"),
    ],
)
def test_what_is_no_list_of_tools_is_exit_code_two_and_one_sentence(given: str | bytes, reason: str) -> None:
    result = run("-", given=given)
    if reason == "bad":  # a number where a tool should stand: the list is one, the tool is none
        assert (result.exit_code, "is not a JSON object" in result.stderr) == (1, True)
        return
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_that_is_not_there_is_exit_code_two(tmp_path: Path) -> None:
    assert run(tmp_path / "none.json").exit_code == 2


def test_a_name_twice_is_drafted_once_and_said() -> None:
    result = run("-", given=json.dumps([SEND_EMAIL, SEND_EMAIL]))
    assert (result.exit_code, "the list names it twice" in result.stderr) == (1, True)
    assert list(read_catalog(read_document("tools.yaml", result.stdout), ("user",))) == ["send_email"]


def test_more_than_a_bundle_holds_is_said_and_nothing_is_printed() -> None:
    wide = {"type": "object", "properties": {f"field_{number}": {"title": "t" * 900} for number in range(1_000)}}
    result = run("-", given=json.dumps([{"name": f"t{number}", "inputSchema": wide} for number in range(2)]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "draft fewer tools at once" in result.stderr


def test_no_tools_at_all_is_an_empty_catalog() -> None:
    result = run("-", given='{"tools": []}')
    assert result.exit_code == 0
    assert read_catalog(read_document("tools.yaml", result.stdout), ("user",)) == {}


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(_TEXTS)
def test_every_text_is_read_back_as_it_was_and_nothing_in_it_is_a_command(text: str) -> None:
    written = scalar(text)
    assert written.isprintable()
    assert read_document("x", f"a: {written}\n").data == {"a": text}
    assert read_document("x", f"a: [{written}, {written}]\n").data == {"a": [text, text]}
    assert read_document("x", f"a: {{{written}: 1}}\n").data == {"a": {text: 1}}


@pytest.mark.slow
@given(_JSON)
def test_a_schema_that_holds_any_json_is_drafted_word_for_word(value: Any) -> None:
    schema = {"type": "object", "properties": {}, "x-anything": value}
    result = run("-", given=json.dumps([{"name": "make_it", "inputSchema": schema}]))
    if result.exit_code == 0:
        (tool,) = read_catalog(read_document("tools.yaml", result.stdout), ("user",)).values()
        assert tool.schema == schema
    else:
        assert (result.exit_code, "holds what is refused in arguments" in result.stderr) == (1, True)
