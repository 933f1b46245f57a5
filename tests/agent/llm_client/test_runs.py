"""Model calls of a run, on both stores with a real endpoint: counted before the request, stored before use."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from phylactery_agent.llm_client.request import Question, Spent
from phylactery_agent.llm_client.router import Models
from phylactery_agent.ports import ModelBudgetError, ModelMessage, ModelTool, ModelUnavailableError, Told
from phylactery_agent.runtime.storage.events import ThreadEvents
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.turn.model_session import RunModel, RunModels

from tests.support.agent.inspector import LocalInspector
from tests.support.agent.models import HELLO, limited, used
from tests.support.agent.stores import Stores
from tests.support.servers.model_server import ModelServer, calls, fails, half, says

TOOL = ModelTool("write_file", "Writes a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture
def model(stores: Stores, models: Models, claim: Claim) -> RunModel:
    return RunModels(models, stores.database, stores.clock).of(claim.lease, LocalInspector())


async def test_a_reply_is_counted_by_what_it_took_and_kept(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    server.script(calls(("write_file", {"path": "a.txt"}), text="At once.", usage=(11, 7)))
    reply = await model.reply(HELLO, key="plan:1", tools=[TOOL])
    assert (reply.text, reply.finish_reason, reply.model) == ("At once.", "tool_calls", "test-model")
    [call] = reply.calls
    assert (call.name, call.arguments, call.raw) == ("write_file", {"path": "a.txt"}, '{"path": "a.txt"}')
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cost_micros) == (11, 7, 11 * 2 + 7 * 10)
    assert used(stores) == (1, 18, 92)
    assert server.asked[0].tools == ["write_file"]


async def test_the_same_call_again_is_answered_from_the_database_and_costs_nothing(
    stores: Stores, server: ModelServer, models: Models, model: RunModel, claim: Claim
) -> None:
    server.script(calls(("write_file", {"path": "ñ.txt"}), text="día"))
    first = await model.reply(HELLO, key="plan:1", tools=[TOOL])
    stores.pass_time(31)
    later = await stores.claimed(holder="another process")
    heard: list[str] = []

    async def on_text(text: str) -> None:
        heard.append(text)

    other = RunModels(models, stores.database, stores.clock).of(later.lease, LocalInspector())
    assert await other.reply(HELLO, key="plan:1", tools=[TOOL], on_text=on_text) == first
    assert heard == ["día"]
    assert len(server.asked) == 1
    assert used(stores) == (1, 18, 92)


@pytest.mark.usefixtures("patient")
async def test_what_led_to_a_call_is_durable_before_anybody_is_asked(
    stores: Stores, server: ModelServer, models: Models, claim: Claim
) -> None:
    writes = stores.writes(claim.lease)
    await ThreadEvents(writes).emit(Told("step", {"step_id": "s1"}, key="s1"))
    seen: list[list[str]] = []

    def answer(_asked: object) -> Any:
        seen.append([once for _, once in sorted(stores.rows("agent_events", "sequence, once"))])
        return says("yes")

    server.otherwise = answer
    model = RunModels(models, stores.database, stores.clock).of(claim.lease, LocalInspector(), first=writes.flush)
    await model.reply(HELLO, key="plan:1")
    assert seen == [["run_started", "s1"]]


async def test_every_call_has_an_id_of_its_own_whatever_the_endpoint_calls_them(
    server: ModelServer, model: RunModel
) -> None:
    server.otherwise = lambda _asked: calls(("f", {}, "call_0"), ("f", {}, "call_0"), ("f", {}, ""))
    replies = [await model.reply(HELLO, key=key) for key in ("plan:1", "plan:2")]
    ids = [call.id for reply in replies for call in reply.calls]
    assert len(set(ids)) == 6
    assert all(len(one) == 9 and one.isalnum() for one in ids)


async def test_a_conversation_goes_out_as_endpoints_take_it(server: ModelServer, model: RunModel) -> None:
    server.script(calls(("f", {"a": 1}), ("f", "no json")))
    first = await model.reply(HELLO, key="plan:1")
    assert [call.arguments for call in first.calls] == [{"a": 1}, None]
    answers = [ModelMessage("tool", "done \ud800", tool_call_id=call.id) for call in first.calls]
    conversation = [*HELLO, ModelMessage("assistant", "", first.calls), *answers]
    await model.reply(conversation, key="plan:2")
    ids = [call.id for call in first.calls]
    assert list(server.asked[1].messages) == [
        {"role": "user", "content": "hola"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": ids[0], "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
                {"id": ids[1], "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "done \ufffd", "tool_call_id": ids[0]},
        {"role": "tool", "content": "done \ufffd", "tool_call_id": ids[1]},
    ]


async def test_a_key_that_comes_back_with_another_conversation_is_asked_anew_and_paid(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    server.script(says("one", usage=(5, 1)), says("two", usage=(6, 1)))
    assert (await model.reply(HELLO, key="plan:1")).text == "one"
    other = [*HELLO, ModelMessage("user", "y adiós")]
    assert (await model.reply(other, key="plan:1")).text == "two"
    assert (await model.reply(other, key="plan:1")).text == "two"
    assert len(server.asked) == 2
    assert used(stores)[:2] == (2, 13)
    assert len(stores.rows("agent_model_calls")) == 1


async def test_other_tools_are_another_question(server: ModelServer, model: RunModel) -> None:
    await model.reply(HELLO, key="plan:1")
    await model.reply(HELLO, key="plan:1", tools=[TOOL])
    assert len(server.asked) == 2


async def test_what_is_not_to_be_stored_is_in_no_file_and_is_asked_again(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    server.otherwise = lambda _asked: says("a private word", usage=(5, 1))
    assert (await model.reply(HELLO, key="plan:1", keep=False)).text == "a private word"
    [row] = stores.rows("agent_model_calls")
    assert row.reply is None
    assert (row.prompt_tokens, row.completion_tokens, row.model) == (5, 1, "test-model")
    assert await model.reply(HELLO, key="plan:1", keep=False)
    assert len(server.asked) == 2
    assert used(stores)[:2] == (2, 12)


async def test_a_call_is_counted_with_the_most_it_may_take_before_anybody_is_asked(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    seen: list[tuple[int, int, int]] = []

    def answer(exchange: Any) -> None:
        seen.append(used(stores))
        says("ok", usage=(5, 1))(exchange)

    server.script(answer)
    await model.reply(HELLO, key="plan:1")
    [(asked, tokens, cost)] = seen
    assert asked == 1
    assert tokens > 4_096
    assert cost > 4_096 * 2
    assert used(stores) == (1, 6, 20)


async def test_a_run_asks_so_often_and_no_more(stores: Stores, server: ModelServer, model: RunModel) -> None:
    limited(model, calls=2)
    await model.reply(HELLO, key="plan:1")
    await model.reply(HELLO, key="plan:2")
    with pytest.raises(ModelBudgetError, match="MODEL_CALL_LIMIT"):
        await model.reply(HELLO, key="plan:3")
    assert await model.reply(HELLO, key="plan:1"), "what was paid is still answered"
    assert len(server.asked) == 2
    assert used(stores)[0] == 2


@pytest.mark.parametrize(
    ("limits", "reason"), [({"tokens": 9_000}, "TOKEN_LIMIT"), ({"cost_micros": 90_000}, "MONEY_LIMIT")]
)
async def test_a_run_uses_so_much_and_no_more(
    stores: Stores, server: ModelServer, model: RunModel, limits: dict[str, int], reason: str
) -> None:
    server.script(says("long", usage=(5_000, 4_000)))
    limited(model, **limits)
    await model.reply(HELLO, key="plan:1")
    before = used(stores)
    with pytest.raises(ModelBudgetError) as caught:
        await model.reply(HELLO, key="plan:2")
    assert caught.value.reason == reason
    assert (len(server.asked), used(stores)) == (1, before)


async def test_eight_calls_at_once_never_use_more_than_the_run_may(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    limited(model, calls=3)
    found = await asyncio.gather(
        *(model.reply(HELLO, key=f"step:{place}") for place in range(8)), return_exceptions=True
    )
    assert sum(isinstance(one, ModelBudgetError) for one in found) == 5
    assert len(server.asked) == 3
    assert used(stores)[0] == 3


async def test_a_question_nobody_answered_costs_what_half_replies_took(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    server.script(half("half", cut=False), fails(401))
    with pytest.raises(ModelUnavailableError):
        await model.reply(HELLO, key="plan:1")
    asked, tokens, cost = used(stores)
    assert asked == 1
    assert 0 < tokens < 100
    assert cost > 0
    [row] = stores.rows("agent_model_calls")
    assert row.reply is None
    assert (await model.reply(HELLO, key="plan:1")).text == "ok", "an endpoint that is well again answers the same key"


async def test_a_question_nobody_was_sent_costs_nothing(
    stores: Stores, server: ModelServer, models: Models, model: RunModel
) -> None:
    server.otherwise = lambda _asked: fails(500)
    for place in range(2):
        with pytest.raises(ModelUnavailableError):
            await model.reply(HELLO, key=f"plan:{place}")
    assert models._places[0].breaker.state == "closed", "it may be this turn's words"
    with pytest.raises(ModelUnavailableError):
        await models.ask(Question([{"role": "user", "content": "hello"}], []), Spent(), turn="another")
    assert models._places[0].breaker.state == "open"
    before = used(stores)
    with pytest.raises(ModelUnavailableError, match="MODEL_CLOSED_OFF"):
        await model.reply(HELLO, key="plan:9")
    assert used(stores) == before


@pytest.mark.parametrize("key", ["", "k" * 129])
async def test_a_key_that_no_row_can_have_is_refused_before_anything_is_counted(
    stores: Stores, model: RunModel, key: str
) -> None:
    with pytest.raises(ValueError, match="1 to 128 characters"):
        await model.reply(HELLO, key=key)
    assert used(stores) == (0, 0, 0)


async def test_a_run_that_is_not_to_be_stored_keeps_no_reply_whatever_a_graph_asks_for(
    stores: Stores, server: ModelServer, models: Models, claim: Claim
) -> None:
    model = RunModels(models, stores.database, stores.clock).of(claim.lease, LocalInspector(), keep=False)
    await model.reply(HELLO, key="plan:1")
    await model.reply(HELLO, key="plan:1")
    [row] = stores.rows("agent_model_calls")
    assert row.reply is None
    assert len(server.asked) == 2


async def test_what_nobody_inspected_is_not_asked_costs_nothing_and_a_kept_reply_needs_no_look(
    stores: Stores, server: ModelServer, models: Models, claim: Claim
) -> None:
    inspector = LocalInspector()
    model = RunModels(models, stores.database, stores.clock).of(claim.lease, inspector)
    kept = await model.reply(HELLO, key="plan:1")
    before = used(stores)
    inspector.available = False
    later = RunModels(models, stores.database, stores.clock).of(claim.lease, inspector)
    with pytest.raises(ModelUnavailableError, match="MODEL_NOT_INSPECTED"):
        await later.reply(HELLO, key="plan:2")
    assert len(server.asked) == 1
    assert used(stores) == before
    assert await later.reply(HELLO, key="plan:1") == kept
    assert len(inspector.looked_at) == 1
