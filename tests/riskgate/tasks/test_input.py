"""Invalid task input is named in the error, never repeated, and not stored."""

from __future__ import annotations

import json

import grpc
import pytest
from phylactery.riskgate.v1 import task_pb2
from phylactery_chassis.auth.identity import Principal
from structlog.testing import capture_logs

from tests.support.riskgate.task_indexes import calls_in

INVALID = grpc.StatusCode.INVALID_ARGUMENT
ANA = Principal("ana", "acme", frozenset({"caller"}))
MIB = 1024 * 1024
SECRET = "sesame-7f3a"
BEGIN = {"request_id": "r1", "thread_id": "t1", "words": "hola"}
OBSERVE = {"task_id": "ta_1", "tool_call_id": "c1", "tool": "read_file", "result_text": "x"}
LONG = "x" * 129

ENVELOPES = [
    ("BeginTask", {}, {"request_id", "thread_id", "words"}),
    ("BeginTask", BEGIN | {"request_id": LONG, "thread_id": "a b"}, {"request_id", "thread_id"}),
    ("BeginTask", BEGIN | {"words": "x" * 100_001}, {"words"}),
    ("BeginTask", BEGIN | {"continues_task_id": "a'--"}, {"continues_task_id"}),
    ("Observe", {}, {"task_id", "tool_call_id", "tool"}),
    ("Observe", OBSERVE | {"task_id": LONG, "tool_call_id": LONG, "tool": "../x"}, {"task_id", "tool_call_id", "tool"}),
    ("Observe", OBSERVE | {"result_text": "x" * (MIB + 1)}, {"result_text"}),
    ("Observe", OBSERVE | {"result_text": "ñ" * (MIB // 2 + 1)}, {"result_text"}),
    ("Observe", OBSERVE | {"result_json": f'"{"x" * MIB}"'}, {"result_json"}),
    ("Observe", OBSERVE | {"arguments_json": f'{{"a":"{"x" * MIB}"}}'}, {"arguments_json"}),
    ("EndTask", {}, {"task_id"}),
    ("EndTask", {"task_id": "a b"}, {"task_id"}),
]
NO_JSON = {
    "nothing": "",
    "words": SECRET,
    "half": f'{{"a": "{SECRET}"',
    "two": f'{{}} {{"a": "{SECRET}"}}',
    "a key twice": f'{{"a": 1, "{SECRET}": {{"b": 1, "b": 2}}}}',
    "NaN": f'["{SECRET}", NaN]',
    "Infinity": f'["{SECRET}", -Infinity]',
    "a number out of range": f'["{SECRET}", 1e999]',
    "a number of many digits": f'["{SECRET}", {"9" * 2_000}]',
    "a fraction of many digits": f'["{SECRET}", 0.{"9" * 2_000}]',
    "an unpaired surrogate": f'["{SECRET}\\ud83d"]',
    "half a pair as a key": f'{{"{SECRET}\\udc00": 1}}',
    "deep lists": "[" * 65 + "1" + "]" * 65,
    "very deep lists": "[" * 100_000 + "]" * 100_000,
    "very deep objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a control character": f'["{SECRET}\x07"]',
    "a trailing comma": f'["{SECRET}",]',
}
NO_ARGUMENTS = {
    "a list": f'["{SECRET}"]',
    "a text": f'"{SECRET}"',
    "an entity": f'{{"__entity": {{"type": "User", "id": "{SECRET}"}}}}',
    "an integer that would be rounded": f'{{"{SECRET}": 9007199254740993}}',
} | {name: text for name, text in NO_JSON.items() if text}


def send(person, name: str, fields: dict[str, object]):
    request = getattr(task_pb2, f"{name}Request")(**fields)
    return getattr(person.tasks, name)(request, metadata=person.metadata, timeout=60)


async def test_every_missing_or_overlong_field_is_named(gate, ana, refused):
    for name, fields, expected in ENVELOPES:
        refusal = await refused(send(ana, name, fields))
        assert (refusal.code, refusal.reason) == (INVALID, "INVALID_REQUEST"), (name, fields)
        assert set(refusal.fields) == expected, (name, refusal)
    assert gate.count("tasks") == gate.count("task_pieces") == 0


async def test_words_and_results_of_the_largest_size_are_taken(gate, ana):
    task = await ana.begin("ñ" * 100_000)
    await ana.observe(task, "c1", result_text="ñ" * (MIB // 2))
    await ana.observe(task, "c2", result_json=f'"{"x" * (MIB - 2)}"')
    await ana.observe(task, "c3", arguments_json=f'{{"a":"{"x" * (MIB - 8)}"}}', result_json="[]")
    assert (gate.count("tasks"), gate.count("task_pieces")) == (1, 4), "the words and each result are kept"


@pytest.mark.parametrize("text", NO_JSON.values(), ids=NO_JSON.keys())
async def test_a_result_that_is_no_json_is_refused_and_taken_as_text(gate, ana, refused, text):
    task = await ana.begin()
    with capture_logs() as lines:
        refusal = await refused(ana.observe(task, result_json=text))
    assert (refusal.code, refusal.fields) == (INVALID, ["result_json"])
    assert "result_text" in refusal.message
    assert SECRET not in refusal.message + json.dumps(lines)
    assert gate.count("task_pieces") == 1
    assert not (await ana.observe(task, result_text=text)).replayed


@pytest.mark.parametrize("text", NO_ARGUMENTS.values(), ids=NO_ARGUMENTS.keys())
async def test_arguments_that_evaluate_would_not_bind_are_refused(gate, ana, refused, text):
    task = await ana.begin()
    refusal = await refused(ana.observe(task, arguments_json=text, result_text="x"))
    assert (refusal.code, refusal.fields) == (INVALID, ["arguments_json"])
    assert SECRET not in refusal.message
    assert gate.count("task_pieces") == 1


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "1",
        '"x"',
        "[]",
        "{}",
        "[" * 64 + "]" * 64,
        "12345678901234567890123",
        "1e-400",
        '["\\u0000\\ud83d\\ude00"]',
    ],
)
async def test_any_json_is_taken_as_a_result(gate, ana, text):
    task = await ana.begin()
    await ana.observe(task, result_json=text)
    assert calls_in(await gate.riskgate.tasks.index_for(ANA, task, "t1")) == ["c1"]


async def test_text_with_any_character_is_taken(gate, ana):
    odd = "\x00\x07\x1b[31m\u202e\u200b\ufeff\U0001f702 \u0430pple ﬁn"
    task = await ana.begin(odd)
    await ana.observe(task, result_text=odd)
    await ana.observe(task, "c2", tool="no.such.tool", result_json=json.dumps({odd: [odd]}))
    assert calls_in(await gate.riskgate.tasks.index_for(ANA, task, "t1")) == ["c1", "c2"]


async def test_a_task_takes_so_many_results_and_no_more(make_gate, refused):
    gate = await make_gate(task_max_observations=3)
    ana = gate.person("ana")
    task = await ana.begin()
    for number in range(3):
        await ana.observe(task, f"c{number}", result_text="x")
    refusal = await refused(ana.observe(task, "c3", result_text="x"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TASK_FULL")
    assert refusal.metadata == {"limit": "3"}
    assert (await ana.observe(task, "c2", result_text="x")).replayed
    assert gate.count("task_pieces") == 4


async def test_a_task_keeps_so_many_bytes_and_no_more(make_gate, refused):
    gate = await make_gate(task_max_bytes=65_536)
    ana = gate.person("ana")
    task, taken = await ana.begin(), 0
    text = " ".join(f"palabra{number}" for number in range(2_000))
    for number in range(100):
        try:
            await ana.observe(task, f"c{number}", result_text=f"{number} {text}")
        except grpc.aio.AioRpcError:
            break
        taken += 1
    assert 0 < taken < 20
    refusal = await refused(ana.observe(task, "last", result_text=text))
    assert (refusal.reason, refusal.metadata) == ("TASK_FULL", {"limit": "65536"})
    await ana.observe(task, "small", result_text="x")


async def test_a_user_has_so_many_tasks_open_and_no_more(make_gate, refused):
    gate = await make_gate(tasks_per_user=2)
    ana = gate.person("ana")
    first = await ana.begin(request="one")
    await ana.begin(request="two")
    refusal = await refused(ana.begin(request="three"))
    assert (refusal.reason, refusal.metadata) == ("TASK_FULL", {"limit": "2"})
    assert await ana.begin(request="one") == first
    await gate.person("ben").begin(request="three")
    await ana.end_task(first)
    await ana.begin(request="three")
    gate.clock.advance(86_400)
    await ana.begin(request="four")


async def test_nothing_shown_stands_in_a_log_an_error_or_the_database(gate, ana, refused):
    words, told = f"Paga a {SECRET}", f"cuenta {SECRET}"
    with capture_logs() as lines:
        task = await ana.begin(words)
        await ana.observe(task, arguments_json=json.dumps({"path": SECRET}), result_json=json.dumps({"x": told}))
        said = [
            await refused(ana.begin(words + " y más")),
            await refused(ana.observe(task, result_text=told)),
            await refused(ana.begin(words, request="r2", continues="ta_none")),
        ]
        await ana.end_task(task)
        said.append(await refused(ana.observe(task, "c2", result_text=told)))
    assert len(lines) >= 7
    everything = json.dumps(lines) + "".join(one.message + json.dumps(one.metadata) for one in said)
    assert "sesame" not in everything + json.dumps(gate.records())
    stored = b"".join(path.read_bytes() for path in gate.folder.glob("riskgate.db*"))
    assert b"sesame" not in stored
