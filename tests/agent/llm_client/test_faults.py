"""Model calls during failures of a run: a lost lease, a cancellation, a full disk, a crash at any point."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from phylactery_agent.llm_client.router import Models
from phylactery_agent.ports import LeaseLostError, ModelBudgetError, ModelMessage
from phylactery_agent.runtime.dispatch.leases import RunCancelledError
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureCounts, ErasureStore
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.turn.model_session import RunModel, RunModels
from phylactery_chassis.errors import StoreFull

from tests.support.agent.graph import Died, dies_at
from tests.support.agent.inspector import LocalInspector
from tests.support.agent.models import HELLO, limited, used
from tests.support.agent.stores import ANA, Stores
from tests.support.processes import commands
from tests.support.processes.cancelling import Cut
from tests.support.servers.model_server import ModelServer, hangs, says


@pytest.fixture
def model(stores: Stores, models: Models, claim: Claim) -> RunModel:
    return RunModels(models, stores.database, stores.clock).of(claim.lease, LocalInspector())


async def test_a_process_that_lost_its_lease_asks_nobody(stores: Stores, server: ModelServer, model: RunModel) -> None:
    stores.pass_time(31)
    await stores.claimed(holder="another process")
    with pytest.raises(LeaseLostError):
        await model.reply(HELLO, key="plan:1")
    assert server.asked == []
    assert used(stores) == (0, 0, 0)


async def test_a_process_that_loses_its_lease_while_it_asks_keeps_and_uses_nothing(
    stores: Stores, server: ModelServer, models: Models, model: RunModel
) -> None:
    def answer(exchange: Any) -> None:
        stores.pass_time(31)
        taken.append(asyncio.run_coroutine_threadsafe(stores.claimed(holder="another process"), loop).result())
        says("too late", usage=(5, 1))(exchange)

    loop, taken = asyncio.get_running_loop(), list[Claim]()
    server.script(answer)
    with pytest.raises(LeaseLostError):
        await model.reply(HELLO, key="plan:1")
    [row] = stores.rows("agent_model_calls")
    assert row.reply is None
    other = RunModels(models, stores.database, stores.clock).of(taken[0].lease, LocalInspector())
    assert (await other.reply(HELLO, key="plan:1")).text == "ok"
    assert used(stores)[0] == 2, "both were asked, and both count"


async def test_a_clock_that_jumps_an_hour_either_asks_and_keeps_or_loses_the_lease(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    """Where the database's own clock judges leases, this process's may jump as it likes."""
    stores.clock.advance(-3_600)
    assert (await model.reply(HELLO, key="plan:1")).text == "ok"
    stores.clock.advance(7_200)
    if not stores.database.dialect.is_server:
        with pytest.raises(LeaseLostError):
            await model.reply(HELLO, key="plan:2")
        assert len(server.asked) == 1
    else:
        assert (await model.reply(HELLO, key="plan:2")).text == "ok"
    assert used(stores)[0] == len(server.asked)


async def test_a_cancelled_run_asks_nobody(stores: Stores, server: ModelServer, model: RunModel, claim: Claim) -> None:
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.lease.run_id)
    with pytest.raises(RunCancelledError):
        await model.reply(HELLO, key="plan:1")
    assert server.asked == []


async def test_who_cancels_a_run_does_not_wait_for_its_model(
    stores: Stores, server: ModelServer, model: RunModel, claim: Claim
) -> None:
    server.script(hangs("I was thinking"))
    asking = asyncio.create_task(model.reply(HELLO, key="plan:1"))
    await asyncio.to_thread(server.wait_until_asked)
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.lease.run_id)
    with pytest.raises(RunCancelledError):  # long before the endpoint's own bounds, of half a minute
        await asyncio.wait_for(asking, 20)
    assert used(stores)[0] == 1


@pytest.mark.parametrize("late", [False, True], ids=["while it waits", "once it has happened"])
async def test_cancelled_at_any_await_it_is_counted_and_the_next_one_pays_for_itself(
    stores: Stores, server: ModelServer, model: RunModel, late: bool
) -> None:
    """However far the call came, what it left answers the same question again, once."""
    limited(model, calls=10_000, tokens=10**9)
    for at in itertools.count(1):
        key = f"plan:{at}"
        question, cut = [ModelMessage("user", key)], Cut(at, late=late)
        [done] = await asyncio.gather(cut.run(model.reply(question, key=key)), return_exceptions=True)
        reply = await model.reply(question, key=key)
        assert reply.text == "ok"
        assert await model.reply(question, key=key) == reply
        asked = sum(one.messages == [{"role": "user", "content": key}] for one in server.asked)
        if not cut.fired:
            assert (done, asked) == (reply, 1), "a call that came to its end is kept"
            assert at > 5, "it was cancelled while it was counted, asked, heard and kept"
            return
        assert late or isinstance(done, asyncio.CancelledError)
        assert asked <= 2


async def test_on_a_full_disk_a_reply_that_cannot_be_kept_is_not_used_and_stays_counted(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    if stores.database.dialect.is_server:
        pytest.skip("only SQLite's room can be taken away from here")

    def pages(limit: str) -> None:
        stores.database.write_sync(lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count={limit}"))

    def answer(exchange: Any) -> None:
        pages("1")  # what it has is all it gets
        says("x" * 400_000, chunk=40_000, usage=(5, 100_000))(exchange)

    server.script(answer, says("shorter", usage=(5, 1)))
    with pytest.raises(StoreFull):
        await model.reply(HELLO, key="plan:1")
    calls_counted, tokens, _cost = used(stores)
    assert calls_counted == 1
    assert 4_096 < tokens < 100_000, "the most it may have taken, not what nobody could write down"
    pages("1000000")
    assert (await model.reply(HELLO, key="plan:1")).text == "shorter"
    assert used(stores)[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("crash_at", ["agent.model.counted", "agent.model.answered", "agent.model.kept"])
async def test_killed_at_any_point_a_reply_that_was_kept_is_paid_once(
    stores: Stores, server: ModelServer, models: Models, crash_at: str
) -> None:
    server.otherwise = lambda _asked: says("paid", usage=(5, 1))
    await stores.accepted()
    url = stores.database.engine.url.render_as_string(hide_password=False)
    run = partial(commands.run, "tests.support.processes.dying_model_call", environment=os.environ)
    done = await asyncio.to_thread(run, url, server.url, "first", crash_at)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]
    stores.pass_time(31)
    claim = await stores.claimed(holder="second")
    model = RunModels(models, stores.database, stores.clock).of(claim.lease, LocalInspector())
    asked = len(server.asked)
    assert asked == (0 if crash_at == "agent.model.counted" else 1)
    assert (await model.reply(HELLO, key="plan:1")).text == "paid"
    assert len(server.asked) == (1 if crash_at == "agent.model.kept" else asked + 1)
    calls_counted, tokens, _cost = used(stores)
    if crash_at == "agent.model.kept":
        assert (calls_counted, tokens) == (1, 6)
    else:
        assert calls_counted == 2
        assert tokens > 4_096, "nobody knows what was paid before the crash, so the most it may have taken stays"


async def test_a_crash_does_not_reset_what_a_run_may_use(
    stores: Stores, server: ModelServer, models: Models, model: RunModel
) -> None:
    limited(model, calls=3)
    for place in range(3):
        with dies_at("agent.model.counted"), pytest.raises(Died):
            await model.reply(HELLO, key=f"plan:{place}")
    stores.pass_time(31)
    later = RunModels(models, stores.database, stores.clock).of(
        (await stores.claimed(holder="next")).lease, LocalInspector()
    )
    with pytest.raises(ModelBudgetError, match="MODEL_CALL_LIMIT"):
        await later.reply(HELLO, key="plan:0")
    assert server.asked == []


async def test_the_end_of_a_run_drops_what_models_said_and_keeps_what_it_took(
    stores: Stores, model: RunModel, claim: Claim
) -> None:
    await model.reply(HELLO, key="plan:1")
    await stores.end(claim)
    [row] = stores.rows("agent_model_calls")
    assert row.reply is None
    assert row.prompt_tokens == 11
    assert used(stores)[0] == 1


async def test_a_run_that_waits_keeps_them_and_one_cancelled_while_it_waits_drops_them(
    stores: Stores, model: RunModel, claim: Claim
) -> None:
    await model.reply(HELLO, key="plan:1")
    await stores.end(claim, status="suspended", approval_id="ap_1")
    [row] = stores.rows("agent_model_calls")
    assert b"ok" in row.reply
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.lease.run_id)
    [row] = stores.rows("agent_model_calls")
    assert row.reply is None


async def test_an_erased_user_leaves_no_call(stores: Stores, model: RunModel) -> None:
    await model.reply(HELLO, key="plan:1")
    store = ErasureStore(stores.database, stores.clock)
    record = Erasure("era_1", "sha256:0", "00", "acme", False, 1, "sha256:1", ErasureCounts())  # noqa: FBT003
    await store.erase(ANA, await store.threads(ANA), lambda counts: replace(record, counts=counts))
    assert stores.rows("agent_model_calls") == []
