"""Parsing of model responses: independent of how they are split, and rejected if malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_agent.llm_client.errors import ModelFault
from phylactery_agent.llm_client.response import (
    MAX_CALLS,
    Assembly,
    HeardCall,
    arguments_of,
    clean,
    estimated_tokens,
    without_loop,
)

from tests.support.cases import each_case

ARGUMENTS = st.dictionaries(st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=20), st.booleans()))


def event(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"function": function, **fields}


def read(*events: Any) -> Assembly:
    assembly = Assembly()
    for one in events:
        assembly.event(one)
    return assembly


@pytest.mark.slow
@given(text=st.text(min_size=1, max_size=60), arguments=ARGUMENTS, cuts=st.lists(st.integers(1, 9), min_size=1))
def test_a_reply_reads_the_same_however_it_is_cut_up(text: str, arguments: dict[str, Any], cuts: list[int]) -> None:
    raw = json.dumps(arguments)

    def pieces(whole: str) -> list[str]:
        found, start, place = [], 0, 0
        while start < len(whole):
            size = cuts[place % len(cuts)]
            found.append(whole[start : start + size])
            start, place = start + size, place + 1
        return found

    units = text.encode("utf-16-le")  # a character beyond the first plane may be cut in two, as some servers do
    halves = "".join(chr(units[at] + 256 * units[at + 1]) for at in range(0, len(units), 2))
    said = [event(content=piece) for piece in pieces(halves)]
    first = event(tool_calls=[call("f", "", index=0, id="c")])
    rest = [event(tool_calls=[call(None, piece, index=0)]) for piece in pieces(raw)]
    heard = read(*said, first, *rest, event("tool_calls")).heard()
    assert (heard.text, heard.calls) == (text, (HeardCall("f", raw),))
    assert arguments_of(heard.calls[0].raw) == arguments


def test_halves_of_a_character_are_joined_and_lonely_ones_replaced() -> None:
    assembly = read(event(content="\ud83d"), event(content="\ude00!"), event("stop", content="\ud83d"))
    assert assembly.heard().text == "😀!\ufffd"
    assert clean("plain") == "plain"


@pytest.mark.parametrize(
    "events",
    [
        # each call in one piece, numbered as they should be
        [event(tool_calls=[call("f", '{"a":1}', index=0, id="x"), call("g", "{}", index=1, id="y")])],
        # all numbered 0, told apart by their ids
        [
            event(tool_calls=[call("f", '{"a":1}', index=0, id="x")]),
            event(tool_calls=[call("g", "{}", index=0, id="y")]),
        ],
        # no numbers, but ids
        [
            event(tool_calls=[call("f", '{"a":', id="x")]),
            event(tool_calls=[call(None, "1}")]),
            event(tool_calls=[call("g", "{}", id="y")]),
        ],
        # neither numbers nor ids: a name begins a call
        [event(tool_calls=[call("f", '{"a":1}')]), event(tool_calls=[call("g", "{}")])],
        # interleaved
        [
            event(tool_calls=[call("f", '{"a"', index=0), call("g", "{", index=1)]),
            event(tool_calls=[call(None, "}", index=1), call(None, ":1}", index=0)]),
        ],
    ],
)
def test_parallel_calls_are_told_apart_however_an_endpoint_numbers_them(events: list[Any]) -> None:
    heard = read(*events, event("tool_calls")).heard()
    assert [(one.name, arguments_of(one.raw)) for one in heard.calls] == [("f", {"a": 1}), ("g", {})]


def test_arguments_may_come_as_an_object_and_content_in_parts() -> None:
    assembly = Assembly()
    parts = [{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}]
    message = {"content": parts, "tool_calls": [call("f", {"a": "ñ"})]}
    assembly.whole({"choices": [{"message": message, "finish_reason": "stop"}]})
    heard = assembly.heard()
    assert heard.text == "one two"
    assert arguments_of(heard.calls[0].raw) == {"a": "ñ"}
    assert (heard.prompt_tokens, heard.completion_tokens) == (None, None)


def test_a_refusal_is_what_was_said() -> None:
    assert read(event(refusal="I will not."), event("stop")).heard().text == "I will not."


@each_case(
    ("raw", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (" \n", {}),
        ("null", None),
        ("[1]", None),
        ('{"a": 1', None),
        ('{"a": 1} {"a": 2}', None),
        ('{"a": 1, "a": 2}', None),
        ('{"a": {"b": 1, "b": 2}}', None),
        ('{"a": NaN}', None),
        ('{"a": -Infinity}', None),
        ('{"a": "\\ud800"}', None),
        ('{"a": ' + "9" * 5_000 + "}", None),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", None),
    ],
)
def test_arguments_are_one_object_that_means_one_thing(raw: str, arguments: dict[str, Any] | None) -> None:
    assert arguments_of(raw) == arguments


@each_case(
    "body",
    [
        "words",
        [],
        None,
        {"choices": "none"},
        {"choices": [None]},
        {"choices": [{"delta": "words"}]},
        {"choices": [{"delta": {"tool_calls": {"name": "f"}}}]},
        {"choices": [{"delta": {"tool_calls": ["f"]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": "f"}]}}]},
    ],
)
def test_an_event_that_is_none_is_refused(body: Any) -> None:
    with pytest.raises(ModelFault, match="not a reply"):
        Assembly().event(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": "words"}]},
        {"error": {"message": "no"}},
    ],
)
def test_an_answer_without_a_message_is_refused(body: Any) -> None:
    with pytest.raises(ModelFault, match="not a reply"):
        Assembly().whole(body)


@pytest.mark.parametrize(
    "delta",
    [
        {},
        {"content": ""},
        {"content": None},
        {"content": 7},
        {"tool_calls": []},
        {"tool_calls": [call(None, "{}")]},
        {"tool_calls": [call("x" * 129, "{}")]},
    ],
)
def test_a_reply_that_says_and_proposes_nothing_is_none(delta: dict[str, Any]) -> None:
    assembly = read(event("stop", **delta))
    with pytest.raises(ModelFault, match="not a reply"):
        assembly.heard()


def test_more_calls_than_anybody_makes_are_refused() -> None:
    calls = [call("f", "{}", index=index) for index in range(MAX_CALLS)]
    assert len(read(event("tool_calls", tool_calls=calls)).heard().calls) == MAX_CALLS
    with pytest.raises(ModelFault, match="not a reply"):
        read(event("tool_calls", tool_calls=[*calls, call("f", "{}", index=MAX_CALLS)]))


@pytest.mark.parametrize("count", [-1, "7", 1.5, True, None, 10**12])
def test_a_count_of_tokens_that_is_none_is_not_believed(count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 3}
    heard = read(event("stop", content="hi"), {"choices": [], "usage": usage}).heard()
    assert (heard.prompt_tokens, heard.completion_tokens) == (None, 3)


def test_tokens_are_estimated_from_bytes_rather_too_many_than_too_few() -> None:
    assert [estimated_tokens(size) for size in (0, 1, 3, 4)] == [0, 1, 1, 2]


_LOOPS = [
    ("I can help. ", "I love lists. ", "I love li"),
    ("", "You are right. I am sorry.\n", "You are"),
    ("Claro. ", "¿Quieres leche o pan? Dime cuál. ", ""),
    ("Well, ", "so very nice of you ", "so very"),
]


@pytest.mark.parametrize(("before", "repeated", "rest"), _LOOPS)
def test_a_reply_that_loops_is_cut_to_what_it_says_once(before: str, repeated: str, rest: str) -> None:
    said = f"{before}{repeated}".strip()
    assert without_loop(before + repeated * 40 + rest, is_cut=True) == said
    assert without_loop(before + repeated * 3 + rest, is_cut=True) == said
    assert without_loop(before + repeated * 40, is_cut=False) == said
    assert without_loop(before + repeated * 4, is_cut=False) == before + repeated * 4, "a refrain may be meant"


@each_case(
    "text",
    [
        "",
        "One. Two. Three. Four.",
        "- milk\n- eggs\n- milk\n- eggs",
        "ha ha ha ha ha ha ha ha ha",
        "Twinkle, twinkle. " * 3 + "How I wonder what you are.",
        '{"steps": [' + '{"tool": "echo", "args": {"text": "x"}}, ' * 9,
        "```\n" + "print('hello world')\n" * 9 + "```",
        "word " * 3,
    ],
)
@each_case("is_cut", [False, True])
def test_what_ends_in_no_loop_stays_as_it_is(text: str, is_cut: bool) -> None:
    assert without_loop(text, is_cut=is_cut) == text
