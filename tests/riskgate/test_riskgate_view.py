from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.domain.model import ArgumentView
from phylactery_riskgate.domain.view import MAX_DISPLAY, call_view
from phylactery_riskgate.domain.visible import make_visible

from tests.support.bundles import ALLOW_ALL, bundle_of, decide, tool

ADDRESS = {"type": "object", "properties": {"zip": {"type": "string"}, "token": {"type": "string"}}}
SEND = tool(
    "send",
    {name: {} for name in ("a", "body", "to", "password")} | {"address": ADDRESS},
    controls=["/to", "/address/zip"],
    sensitive=["/password", "/address/token"],
)


@pytest.fixture
def engine(tmp_path: Path) -> DecisionEngine:
    return DecisionEngine(bundle_of(tmp_path, [SEND], ALLOW_ALL))


def views(engine: DecisionEngine, arguments: dict[str, Any]) -> tuple[ArgumentView, ...]:
    bound = decide(engine, "send", arguments).bound
    assert bound is not None
    return call_view(bound, engine.bundle.tools["send"]).arguments


def shown(engine: DecisionEngine, value: Any) -> ArgumentView:
    return views(engine, {"body": value})[0]


def test_control_arguments_come_first_and_every_argument_comes(engine: DecisionEngine) -> None:
    found = views(engine, {"a": 1, "body": "x", "address": {"zip": "28001"}, "to": "bob"})
    assert [(view.path, view.control) for view in found] == [
        ("/to", True),
        ("/address/zip", True),
        ("/a", False),
        ("/address", False),
        ("/body", False),
    ]
    assert found[1].display == '"28001"'


def test_a_sensitive_value_is_in_no_view(engine: DecisionEngine) -> None:
    found = views(engine, {"password": "hunter2", "address": {"zip": "1", "token": "hunter2"}})
    by_path = {view.path: view for view in found}
    assert (by_path["/password"].display, by_path["/password"].sensitive) == ("«sensitive»", True)
    assert json.loads(by_path["/address"].display) == {"token": "«sensitive»", "zip": "1"}
    assert by_path["/address"].altered
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "línea\notra\tcolumna",
        'a "quoted" \\ path',
        12.5,
        True,
        None,
        ["a", {"b": 1}],
        "1º, 2ª, m², 5 µm",
        "naïve café",
        "Привет",
        "日本語",
        "👍",
    ],
)
def test_what_deceives_nobody_is_shown_as_it_is(engine: DecisionEngine, value: Any) -> None:
    view = shown(engine, value)
    assert (json.loads(view.display), view.altered) == (value, False)


@pytest.mark.parametrize(
    "value",
    [
        "safe\u202etxt.exe",
        "a\u2066b\u2069",
        "\u001b[2J\u001b[1;31mred",
        "a\u0007b",
        "a\rb",
        "a\bb",
        "a\u007fb",
        "a\u009bb",
        "zero\u200bwidth",
        "a\u200db",
        "a\ufeffb",
        "soft\u00adhyphen",
        "line\u2028separator",
        "a\u00a0b",
        "a\u3164b",
        "a\u2800b",
        "tag\U000e0041",
        "private\ue000",
        "variation\ufe0f",
        "z" + "\u0301" * 9,
    ],
)
def test_what_prints_as_nothing_or_moves_the_text_is_written_as_an_escape(engine: DecisionEngine, value: str) -> None:
    view = shown(engine, value)
    assert view.altered
    assert all(char.isprintable() for char in view.display)
    assert json.loads(view.display) == value


@pytest.mark.parametrize(
    "value",
    [
        "p\u0430ypal.com",
        "\u0440\u0430\u0443.com",
        "g\u03bfogle",
        "\uff50aypal",
        "\U0001d429aypal",
        "bank\u2024com",
        "bank.com\u2215evil",
        "\u0455\u0435\u0441",
    ],
)
def test_look_alike_characters_are_marked(engine: DecisionEngine, value: str) -> None:
    view = shown(engine, value)
    assert view.altered
    assert view.display.isascii()
    assert json.loads(view.display) == value


def test_a_long_value_is_cut_and_says_so(engine: DecisionEngine) -> None:
    view = shown(engine, "x" * 5_000)
    assert (len(view.display), view.display[-1], view.altered) == (MAX_DISPLAY, "…", True)


def test_a_value_of_the_full_length_is_not_cut(engine: DecisionEngine) -> None:
    view = shown(engine, "x" * (MAX_DISPLAY - 2))
    assert (len(view.display), view.altered) == (MAX_DISPLAY, False)


def test_a_value_that_grows_by_its_escapes_is_cut_between_them() -> None:
    text = make_visible("\u202e" * 10, 20).text
    assert text == "\\u202e" * 3 + "…"


def test_a_value_cannot_pass_for_an_escape_or_for_a_hidden_one(engine: DecisionEngine) -> None:
    assert shown(engine, "\\u202e").display == '"\\\\u202e"'
    assert shown(engine, "«sensitive»").display == '"«sensitive»"'


def test_a_hostile_name_is_made_visible_too(engine: DecisionEngine) -> None:
    view = shown(engine, {"\u202ek": 1})
    assert view.display == '{"\\u202ek": 1}'
    assert view.altered
