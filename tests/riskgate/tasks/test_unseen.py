"""What Observe was shown decides: the values a redaction removes, and whether the model was shown only a part."""

from __future__ import annotations

import json

import pytest
from grpc import aio
from phylactery.riskgate.v1 import types_pb2

from tests.support.contracts.refusals import refusal_of

KEY = "sk-proj-Zt4Yq8Wn2Lk6Vb0Xc3Mf7Hj1"
PATH = json.dumps({"path": "config.ini"})
WORDS = 'Append "debug=true" to config.ini'


def write(call, content: str, *, append: bool, call_id: str = "c2"):
    arguments = {"path": "config.ini", "content": content, "append": append}
    return call("write_file", json.dumps(arguments, ensure_ascii=False), call_id)


@pytest.mark.parametrize("form", ["result_text", "result_json"])
async def test_a_mask_of_what_was_observed_asks_and_the_reason_is_told(ana, call, form):
    task = await ana.begin(WORDS)
    text = f"API_KEY={KEY}\ndebug=false"
    await ana.observe(task, arguments_json=PATH, **{form: json.dumps(text) if form == "result_json" else text})
    asked = await ana.evaluate(write(call, "API_KEY=«openai_key»\ndebug=true", append=False), task_id=task)
    assert asked.decision == types_pb2.DECISION_AUTH_REQUIRED
    assert "write.masked" in {one.policy_id for one in asked.reasons}
    assert "VALUE_MASKED" in {one.code for one in asked.reasons}
    again = await ana.evaluate(write(call, "API_KEY=«openai_key»\ndebug=true", append=False), task_id=task)
    assert list(again.reasons) == list(asked.reasons)
    free = await ana.evaluate(write(call, "debug=true", append=True, call_id="c3"), task_id=task)
    assert free.decision == types_pb2.DECISION_ALLOW


async def test_a_task_that_goes_on_knows_what_was_masked_before(ana, call):
    first = await ana.begin("Read config.ini")
    await ana.observe(first, arguments_json=PATH, result_text=f"API_KEY={KEY}")
    task = await ana.begin('Append "«openai_key»" to config.ini', request="request-2", continues=first)
    asked = await ana.evaluate(write(call, "«openai_key»", append=True), task_id=task)
    assert "write.masked" in {one.policy_id for one in asked.reasons}


async def test_replacing_what_was_observed_in_part_asks(ana, call):
    task = await ana.begin('Replace the content of config.ini with "debug=true"')
    await ana.observe(task, arguments_json=PATH, result_text="a\nb", partial=True)
    asked = await ana.evaluate(write(call, "debug=true", append=False), task_id=task)
    assert asked.decision == types_pb2.DECISION_AUTH_REQUIRED
    assert "write.cut-short" in {one.policy_id for one in asked.reasons}


async def test_a_result_observed_again_as_a_part_is_another_result(ana):
    task = await ana.begin()
    await ana.observe(task, result_text="a")
    assert (await ana.observe(task, result_text="a")).replayed
    with pytest.raises(aio.AioRpcError) as refused:
        await ana.observe(task, result_text="a", partial=True)
    assert refusal_of(refused.value).reason == "TASK_CONFLICT"
