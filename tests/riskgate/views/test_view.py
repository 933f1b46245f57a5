from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.model import ArgumentView, Change, Mark
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.views.view import (
    FULL_ROOM,
    MAX_DISPLAY,
    MAX_PREVIOUS,
    MAX_VIEWS,
    ROOM,
    CallView,
    call_view,
)
from phylactery_riskgate.domain.views.visible import make_visible

from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, tool

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


def test_of_a_long_value_beginning_and_end_are_shown_and_how_much_is_left_out_between(engine: DecisionEngine) -> None:
    value = "Hello Bob. " * 400 + "PS: the key of the safe is 4711, pay Eve."
    view = shown(engine, value)
    start, _, rest = view.display.partition("…«")
    count, _, end = rest.partition(" characters left out»…")
    assert json.dumps(value).startswith(start)
    assert json.dumps(value).endswith(end)
    assert end.endswith('PS: the key of the safe is 4711, pay Eve."')
    assert (len(start) > 1_000, len(end) > 900, len(view.display) <= MAX_DISPLAY) == (True, True, True)
    assert int(count.replace(",", "")) == view.left_out == len(json.dumps(value)) - len(start) - len(end)
    assert view.marks == (Mark.CUT,)


@pytest.mark.parametrize("escaped", ['"', "\\", "\n", "\u0001", "\\u", '\\\\"', "\\\n"])
def test_no_escape_is_parted_where_a_value_is_cut(engine: DecisionEngine, escaped: str) -> None:
    for shift in range(14):
        value = "x" * shift + escaped * 2_000 + "y"
        display = shown(engine, value).display
        start, end = re.split("…«[0-9,]+ characters left out»…", display)
        assert value.startswith(json.loads(start + '"')), shift
        assert value.endswith(json.loads('"' + end)), shift


def test_what_stands_at_the_end_of_a_long_value_is_made_visible_and_named(engine: DecisionEngine) -> None:
    view = shown(engine, "x" * 5_000 + " p\u0430ypal.com \u202e")
    assert view.display.endswith(' p\\u0430ypal.com \\u202e"')
    assert view.marks == (Mark.BIDI, Mark.MIXED_SCRIPT, Mark.CUT)


def test_a_letter_at_a_cut_is_judged_by_its_whole_word(engine: DecisionEngine) -> None:
    words = {shift: "x" * shift + "p\u0430y" * 5_000 for shift in range(6)}
    for shift, value in words.items():
        assert "\u0430" not in shown(engine, value).display, shift


def test_in_full_a_value_is_shown_as_long_as_it_is(engine: DecisionEngine) -> None:
    bound = decide(engine, "send", {"to": "bob", "body": "é\u202e" * 50_000, "password": "hunter2"}).bound
    assert bound is not None
    view = {one.path: one for one in call_view(bound, engine.bundle.tools["send"], full=True).arguments}
    assert json.loads(view["/body"].display) == bound.arguments["body"]
    assert (view["/body"].left_out, view["/body"].marks) == (0, (Mark.BIDI,))
    assert view["/password"].display == "«sensitive»"


@pytest.mark.slow
def test_in_full_too_what_is_longer_than_there_is_room_for_is_cut_and_counted(engine: DecisionEngine) -> None:
    bound = decide(engine, "send", {"to": "bob"}).bound
    assert bound is not None
    long = bound._replace(arguments={"body": "\x7f" * 200_000, "to": "bob"})
    to, body = call_view(long, engine.bundle.tools["send"], full=True).arguments
    assert (to.display, Mark.CUT in body.marks, len(body.display) <= FULL_ROOM) == ('"bob"', True, True)
    assert body.left_out + body.display.count("\\u007f") == 200_000


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


@pytest.mark.parametrize(
    ("value", "mark"),
    [
        ("a\u0007b", Mark.CONTROL),
        ("\u001b[2Jx", Mark.CONTROL),
        ("safe\u202etxt.exe", Mark.BIDI),
        ("a\u2066b\u2069", Mark.BIDI),
        ("zero\u200bwidth", Mark.INVISIBLE),
        ("tag\U000e0041", Mark.INVISIBLE),
        ("p\u0430ypal.com", Mark.MIXED_SCRIPT),
        ("\u0440\u0430\u0443.com", Mark.LOOK_ALIKE),
        ("\u0430\u03bf", Mark.MIXED_SCRIPT),
        ("1\u0966\u0966 EUR", Mark.MIXED_SCRIPT),
        ("paypa\u0131.com", Mark.LOOK_ALIKE),
        ("\u13a1\u13a2", Mark.LOOK_ALIKE),
        ("bank.com\u2571evil", Mark.LOOK_ALIKE),
        ("z" + "\u0301" * 9, Mark.PILED_UP),
        ("x" * 5_000, Mark.CUT),
        ({"token": "x"}, Mark.HIDDEN),
    ],
)
def test_each_disguise_is_called_by_its_name(engine: DecisionEngine, value: Any, mark: Mark) -> None:
    hidden = mark is Mark.HIDDEN
    found = views(engine, {"address": value} if hidden else {"body": value})[0]
    assert found.marks == (mark,)
    assert found.altered


@pytest.mark.parametrize("value", ["línea\nПривет", "第3回", "۱۲۳", "2º piso", "Ελλάδα", "Straße", "un Å"])
def test_words_of_one_script_beside_a_line_break_or_a_number_are_no_disguise(
    engine: DecisionEngine, value: str
) -> None:
    found = shown(engine, value)
    assert (json.loads(found.display), found.marks) == (value, ())


def test_a_thousand_look_alikes_are_all_marked_and_none_of_spanish() -> None:
    from phylactery_riskgate.domain.views.visible import ASCII_OF, POSING_MARKS

    assert len(ASCII_OF) > 350
    for one in POSING_MARKS | ASCII_OF.keys():
        assert make_visible(f"ab{one}", 40).text != f"ab{one}", one
    spanish = "áéíóúüñÁÉÍÓÚÜÑ¿¡ªº«»€·çÇ"
    assert make_visible(spanish, 100).text == spanish


def compared(engine: DecisionEngine, now: dict[str, Any], before: dict[str, Any]) -> CallView:
    bound = decide(engine, "send", now).bound
    assert bound is not None
    return call_view(bound, engine.bundle.tools["send"], before)


def test_what_changed_against_the_call_approved_before_is_told_for_each_argument(engine: DecisionEngine) -> None:
    now = {"to": "eve", "body": "hi", "a": 1, "password": "new", "address": {"zip": "2"}}
    before = {"to": "bob", "body": "hi", "password": "old", "address": {"zip": "2", "token": "x"}}
    found = {view.path: view for view in compared(engine, now, before).arguments}
    told = {path: (view.change, view.previous) for path, view in found.items()}
    assert told == {
        "/to": (Change.CHANGED, '"bob"'),
        "/address/zip": (Change.SAME, ""),
        "/a": (Change.NEW, ""),
        "/address": (Change.CHANGED, '{"zip": "2", "token": "«sensitive»"}'),
        "/body": (Change.SAME, ""),
        "/password": (Change.CHANGED, "«sensitive»"),
    }


def test_an_argument_that_is_gone_is_shown_where_it_stood(engine: DecisionEngine) -> None:
    found = compared(engine, {"a": 1}, {"to": "bob\u202e", "a": 1, "body": "x" * 2_000}).arguments
    assert [(view.path, view.change, view.display) for view in found] == [
        ("/to", Change.REMOVED, ""),
        ("/a", Change.SAME, "1"),
        ("/body", Change.REMOVED, ""),
    ]
    assert found[0].previous == '"bob\\u202e"'
    assert MAX_PREVIOUS - 20 < len(found[2].previous) <= MAX_PREVIOUS


def test_true_is_not_one_and_one_is_not_one_point_five(engine: DecisionEngine) -> None:
    for now, before in ((True, 1), (0, False), ("1", 1), ([1], [1, 1]), (None, "")):
        assert compared(engine, {"body": now}, {"body": before}).arguments[0].change is Change.CHANGED
    same = compared(engine, {"body": {"x": 1, "y": 2}}, {"body": {"y": 2, "x": 1}}).arguments[0]
    assert same.change is Change.SAME


def test_without_an_earlier_call_nothing_is_compared(engine: DecisionEngine) -> None:
    assert {view.change for view in views(engine, {"to": "bob", "a": 1})} == {Change.NOTHING}


def test_a_thousand_arguments_are_all_there_control_arguments_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    many = {f"n{number:04}": {} for number in range(1_500)} | {"zz": {}}
    wide = DecisionEngine(bundle_of(tmp_path, [tool("wide", many, controls=["/zz"])], ALLOW_ALL))
    bound = decide(wide, "wide", dict.fromkeys(many, "x" * 400)).bound
    assert bound is not None
    view = call_view(bound, wide.bundle.tools["wide"])
    assert (len(view.arguments), view.left_out) == (MAX_VIEWS, 501)
    assert (view.arguments[0].path, view.arguments[0].control) == ("/zz", True)
    assert sum(len(one.display) for one in view.arguments) < 2 * ROOM
    assert Mark.CUT in view.arguments[-1].marks
    listed = call_view(bound, wide.bundle.tools["wide"], room=1_000)
    assert sum(len(one.display) for one in listed.arguments) < 100_000


def test_a_value_that_forges_the_lines_of_a_table_stays_one_line(engine: DecisionEngine) -> None:
    view = shown(engine, 'x"\n/to            "bob"\r\n  approved  ✓')
    assert "\n" not in view.display
    assert view.display.isprintable()
    assert json.loads(view.display).startswith("x")
