"""Reasoning in a reply's text, in the marks of many families, is no part of the reply, however the text is split."""

from __future__ import annotations

import json
from typing import Any

import pytest
from phylactery_agent.llm_client.reasoning import read
from phylactery_agent.llm_client.response import Assembly

from tests.support.cases import each_case

SECRET = "the-thought"
MARKS = {
    "think": (f"<think>{SECRET}</think>\n", ""),
    "thinking with a name": (f'<thinking lang="en">\n{SECRET} <b>x</b>\n</thinking>', ""),
    "prefixed": (f"<seed:think>{SECRET}</seed:think>", ""),
    "capital letters": (f"<THINK>{SECRET}</Think>", ""),
    "brackets": (f"[THINK]{SECRET}[/THINK]", ""),
    "triangles": (f"◁think▷{SECRET}◁/think▷", ""),
    "begin of thought": (f"<|begin_of_thought|>{SECRET}<|end_of_thought|><|begin_of_solution|>", "<|end_of_solution|>"),
    "start thinking": (f"<|START_THINKING|>{SECRET}<|END_THINKING|><|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "channels": (
        f"<|channel|>analysis<|message|>{SECRET}<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
    ),
    "numbered": (f"<unused94>thought\n{SECRET}<unused95>", ""),
    "half channels": (f"<|channel>thought\n{SECRET}<channel|>", ""),
    "an end alone": (f"{SECRET}\nso be it</think>\n\n", ""),
    "spaces in the marks": (f"< think >{SECRET}</think >", ""),
    "joined to a name": (f"<antThinking>{SECRET}</antThinking>", ""),
    "two ends": (f"<think>{SECRET}</think> more {SECRET}</think>", ""),
    "within each other": (f"<think>a <think>{SECRET}</think>", ""),
    "twice": (f"<think>{SECRET}</think><reasoning>{SECRET}</reasoning>", ""),
    "an answer in marks": (f"<think>{SECRET}</think><answer>", "</answer>"),
}


def streamed(text: str, size: int) -> tuple[Assembly, list[str]]:
    """Return what was read of a text in pieces, and the text so far after each."""
    assembly, so_far = Assembly(), []
    for start in range(0, len(text), size):
        assembly.event({"choices": [{"delta": {"content": text[start : start + size]}}]})
        so_far.append(assembly.text)
    assembly.event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    return assembly, so_far


@each_case("size", [1, 3, 1000])
@each_case("name", MARKS)
def test_marked_reasoning_is_removed_and_no_part_of_it_or_of_its_marks_is_seen_meanwhile(name: str, size: int) -> None:
    before, after = MARKS[name]
    assembly, so_far = streamed(f"{before}Yes: 2 < 3, [see] <b>it</b>.{after}", size)
    assert assembly.heard().text == assembly.text == "Yes: 2 < 3, [see] <b>it</b>."
    if not assembly.reasons_unmarked:
        assert not any("the-t" in text or "think" in text.lower() for text in so_far)


@pytest.mark.parametrize(
    "opens", ["<think>", "[THINK]", "◁think▷", "<|START_THINKING|>", "<|channel|>analysis<|message|>"]
)
def test_reasoning_without_an_end_leaves_nothing_and_is_no_fault_of_the_endpoint(opens: str) -> None:
    assert streamed(f'{opens}{SECRET} {{"steps": []}}', 4)[0].heard().text == ""


@each_case("field", ["reasoning_content", "reasoning", "thinking"])
@each_case("content", [None, "", "Yes."])
def test_reasoning_in_a_field_of_its_own_is_not_read_and_counts_as_written(field: str, content: str | None) -> None:
    assembly = Assembly()
    assembly.whole({"choices": [{"message": {field: SECRET, "content": content}, "finish_reason": "stop"}]})
    heard = assembly.heard()
    assert (heard.text, heard.size_bytes) == (content or "", len(SECRET) + len(content or ""))


def test_parts_of_a_content_that_hold_reasoning_are_not_read() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": SECRET}]},
        {"type": "reasoning", "text": SECRET},
        {"type": "text", "text": "Yes."},
    ]
    assembly = Assembly()
    assembly.whole({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})
    assert assembly.heard().text == "Yes."


@pytest.mark.parametrize(
    "text",
    [
        "Use `<think>` and `</think>` around it.",
        "a < b > c, [1] and [x]",
        "<b>bold</b> <answer>42</answer>",
        "  spaced\n",
    ],
)
def test_a_text_without_reasoning_stays_as_it_is(text: str) -> None:
    assert read(text).spoken == text
    assert streamed(text, 2)[0].heard().text == text


@pytest.mark.parametrize("piece", ["</think>", "<think>", "<think></think>", "<|channel|>", "[", "<", "<|end|> "])
def test_a_text_of_nothing_but_marks_is_read_in_linear_time(piece: str) -> None:
    read(piece * 100_000, more=True)


def test_calls_that_repeat_one_id_and_one_number_are_told_apart_where_the_first_is_complete() -> None:
    assembly = Assembly()
    for name, raw in (("f", {"a": 1}), ("g", {"b": 2}), ("g", {"b": 3})):
        function = {"name": name, "arguments": json.dumps(raw)}
        assembly.event({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "call_0", "function": function}]}}]})
    assembly.event({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    assert [(call.name, call.raw) for call in assembly.heard().calls] == [
        ("f", '{"a": 1}'),
        ("g", '{"b": 2}'),
        ("g", '{"b": 3}'),
    ]


WRITTEN = (
    "<think>hello</think>", "hello</think>bye", "[THINK]x", "<s>hello</s>", "<answer>x</answer> <|end|>", "◁think▷",
    "</thinking>", "<|channel|>analysis<|message|>x",
)  # fmt: skip


@each_case("content", WRITTEN)
@each_case(("before", "after"), [("", ""), *MARKS.values()], ids=["", *MARKS])
def test_a_mark_within_an_object_is_a_part_of_it(content: str, before: str, after: str) -> None:
    plan = json.dumps({"steps": [{"tool": "write_file", "args": {"content": content}}]}, ensure_ascii=False)
    assert read(f"{before}{plan}{after}").spoken.strip() == plan
    assert streamed(f"{before}{plan}{after}", 3)[0].heard().text.strip() == plan


def test_an_object_in_reasoning_or_one_that_is_not_whole_holds_no_mark() -> None:
    for text in (
        f'<think>{{"a": "{SECRET}</think>fine',
        f'{{"a": "{SECRET}\n</think>fine',
        f'{{"a": 1}} {SECRET}</think>fine',
    ):
        assert read(text).spoken == "fine"
