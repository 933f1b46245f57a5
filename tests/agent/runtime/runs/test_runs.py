"""RunService: a user's runs and ledger, and cancellation of a run in any state."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import grpc
import pytest
import rfc8785
from grpc import aio
from phylactery.agent.v1 import chat_pb2, event_pb2, run_pb2
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_agent.adapters.memory import MemoriesAdapter
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import CallContext, GateUnavailableError, ProposedCall
from phylactery_agent.runtime.dispatch.leases import RunCancelledError
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.turn.server import TurnServer
from phylactery_chassis.errors import Unavailable
from phylactery_chassis.util import crashpoints

from tests.support.agent.stores import ANA, BOUND, Stores, call, sha
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system, refused, runs_of

CANCELLED = event_pb2.RUN_STATUS_CANCELLED
WRITE = 'escribe "hola" en notas.txt'
ENDS_SECONDS = 20


async def cancel(system: System, person: Person, run_id: str) -> run_pb2.Run:
    request = run_pb2.CancelRunRequest(run_id=run_id)
    return (await runs_of(system).CancelRun(request, metadata=person.metadata, timeout=60)).run


def cancel_noted(system: System) -> bool:
    query = "SELECT cancel_us FROM agent_runs"
    return bool(system.agent.database.read_sync(lambda connection: connection.exec_driver_sql(query).scalar()))


async def state_at_riskgate(system: System, person: Person, approval_id: str) -> int:
    await system.agent.delivery.flush_all()
    request = approval_pb2.GetApprovalRequest(approval_id=approval_id)
    return (await person.approvals.GetApproval(request, metadata=person.metadata)).approval.state


async def test_runs_are_listed_newest_first_by_page_thread_and_status(system: System, ana: Person) -> None:
    said = []
    for number in range(3):
        said.append(await ana.say("hola", f"t{number}"))
        system.clock.advance(1)
    asked = await ana.say(WRITE, "t9")
    await system.person("ben").say("hola", "t0")
    stub = runs_of(system)

    async def listed(**fields: Any) -> run_pb2.ListRunsResponse:
        return await stub.ListRuns(run_pb2.ListRunsRequest(**fields), metadata=ana.metadata)

    newest_first = [asked.run.id, *(answer.run.id for answer in reversed(said))]
    first = await listed(page_size=3)
    second = await listed(page_size=3, page_token=first.next_page_token)
    assert [run.id for run in [*first.runs, *second.runs]] == newest_first
    assert second.next_page_token == ""
    assert [run.id for run in (await listed(thread_id="t1")).runs] == [said[1].run.id]
    assert [run.id for run in (await listed(status=SUSPENDED)).runs] == [asked.run.id]
    assert len((await listed(status=DONE)).runs) == 3
    assert not (await listed(status=event_pb2.RUN_STATUS_DEAD)).runs
    with pytest.raises(aio.AioRpcError) as error:
        await listed(status=99)
    assert refused(error.value).fields == ["status"]
    with pytest.raises(aio.AioRpcError) as error:
        await listed(page_token="WzFd")
    assert refused(error.value).fields == ["page_token"]


async def test_a_run_that_waits_for_a_person_is_cancelled_with_its_question(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    cancelled = await cancel(system, ana, asked.run.id)
    assert (cancelled.status, cancelled.reason, cancelled.approval_id) == (CANCELLED, "CANCELLED", "")
    assert await state_at_riskgate(system, ana, approval_id) == types_pb2.APPROVAL_STATE_CANCELLED
    assert (await cancel(system, ana, asked.run.id)).status == CANCELLED
    late = await ana.say(f"APROBAR {approval_id} {code}")
    assert late.run.id != asked.run.id
    assert not system.sandbox.joinpath("notas.txt").exists()
    assert (await ana.say("hola")).run.status == DONE


async def test_a_cancelled_question_is_told_in_the_thread_and_the_transcript_and_leaves_no_step_running(
    system: System, ana: Person
) -> None:
    asked = await ana.say(WRITE)
    assert [step.status for step in asked.run.plan_steps] == ["running"]
    cancelled = await cancel(system, ana, asked.run.id)
    assert [step.status for step in cancelled.plan_steps] == ["failed"]
    events = await system.agent.edge.log.of_turn(f"{await turn_of(system)}")
    told = [(event.kind, event.payload.get("status", "")) for event in events if event.sequence > asked.last_sequence]
    assert told == [("step", "failed"), ("message", ""), ("run_finished", "RUN_STATUS_CANCELLED")]
    await cancel(system, ana, asked.run.id)
    await system.agent.delivery.flush_all()
    request = chat_pb2.ListMessagesRequest(thread_id="t1")
    messages = (await ana.chat.ListMessages(request, metadata=ana.metadata)).messages
    assert [one.role for one in messages] == ["assistant", "assistant", "user"]
    assert messages[0].text.startswith("Cancelado")


async def turn_of(system: System) -> str:
    query = "SELECT turn_id FROM agent_runs"
    return str(await system.agent.database.read(lambda connection: connection.exec_driver_sql(query).scalar()))


@pytest.mark.parametrize("redeemed", [False, True])
async def test_an_effect_of_a_cancelled_run_is_in_doubt_only_where_riskgate_saw_it(
    system: System, ana: Person, *, redeemed: bool
) -> None:
    asked = await ana.say(WRITE)
    execution = "ex_" + "a" * 26
    started = f"UPDATE agent_tool_calls SET state = 'started', execution_id = '{execution}'"
    await system.agent.database.write(lambda connection: connection.exec_driver_sql(started))
    if redeemed:
        await redeem(system, ana, asked, execution)
    cancelled = await cancel(system, ana, asked.run.id)
    [call] = cancelled.tool_calls
    assert (call.state, call.error_code) in {("in_doubt", "RUN_ENDED"), ("denied", "NOT_REDEEMED")}
    assert await system.agent.delivery.flush_all()
    [call] = (await ana.run(asked.run.id)).tool_calls
    wanted = ("in_doubt", "RUN_ENDED") if redeemed else ("denied", "NOT_REDEEMED")
    assert (call.state, call.error_code) == wanted
    states = system.agent.database.read_sync(
        lambda connection: (
            connection.exec_driver_sql("SELECT state FROM agent_outbox WHERE kind = 'outcome'").scalars().all()
        )
    )
    assert states == ["delivered"]


async def redeem(system: System, person: Person, asked: chat_pb2.SendMessageResponse, execution_id: str) -> None:
    """Approve what waits, and redeem it at RiskGate as a turn would that dies right after."""
    run_id, (approval_id, _) = asked.run.id, approval_of(asked)
    await person.approve_at_riskgate(approval_id)
    gate = system.agent.services.gate(Owner("acme", "ana"))
    query = "SELECT tool_call_id, plan_step FROM agent_tool_calls"
    tool_call_id, plan_step = system.agent.database.read_sync(
        lambda connection: connection.exec_driver_sql(query).one()
    )
    args = {"path": "notas.txt", "content": "hola"}
    text = rfc8785.dumps(args).decode()
    wanted = ProposedCall("write_file", tool_call_id, args, text, sha(text))
    where = CallContext("t1", run_id, plan_step, "tool_intent", approval_id)
    decision = await gate.evaluate(wanted, where)
    await gate.redeem(decision.permit, wanted, where, execution_id=execution_id)


async def test_a_run_that_is_served_ends_at_its_next_step_and_begins_no_effect(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go = asyncio.Event(), asyncio.Event()
    real = MemoriesAdapter.hydrate

    async def slow(*args: Any, **named: Any) -> Any:
        reached.set()
        await go.wait()
        return await real(*args, **named)

    monkeypatch.setattr(MemoriesAdapter, "hydrate", slow)
    saying = asyncio.create_task(ana.say(WRITE))
    await asyncio.wait_for(reached.wait(), ENDS_SECONDS)
    running: list[Any] = []  # what is read is read while the message is still being taken in
    async with asyncio.timeout(ENDS_SECONDS):
        while not running:
            running += (await runs_of(system).ListRuns(run_pb2.ListRunsRequest(), metadata=ana.metadata)).runs
    [run] = running
    cancelling = asyncio.create_task(cancel(system, ana, run.id))
    async with asyncio.timeout(ENDS_SECONDS):
        while not cancel_noted(system):  # noqa: ASYNC110 - it is a commit of another task
            await asyncio.sleep(0)
    assert not cancelling.done()
    go.set()
    assert (await cancelling).status == CANCELLED
    answer = await saying
    assert (answer.run.id, answer.run.status, list(answer.run.tool_calls)) == (run.id, CANCELLED, [])
    assert answer.reply.text.startswith("Cancelado")
    assert (await ana.say("hola")).run.status == DONE


async def test_a_cancel_that_comes_while_a_turn_suspends_itself_still_ends_it(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.run.run_id)
    await stores.end(claim, "suspended", approval_id="ap_1")
    run = await stores.runs.get(ANA, claim.run.run_id)
    assert (run.status, run.approval_id) == ("cancelled", "")
    assert ("withdrawal", run.run_id) in stores.rows("agent_outbox", "kind, run_id")


async def test_no_effect_starts_after_the_cancel_was_noted(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="1")
    await ledger.propose(call("c2"), plan_step="2")
    await ledger.start("c1", execution_id="ex1", effect_key="k1", bound=BOUND)
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.run.run_id)
    with pytest.raises(RunCancelledError):
        await ledger.start("c2", execution_id="ex2", effect_key="k2", bound=BOUND)
    await ledger.finish("c1", arguments_json="{}", status="success", output="done", error_code="")
    await stores.end(claim, "cancelled", reason="CANCELLED")
    shown = {one.tool_call_id: (one.state, one.error_code) for one in await stores.runs.tool_calls(claim.run.run_id)}
    assert shown == {"c1": ("finished", ""), "c2": ("denied", "CANCELLED")}


async def test_an_approval_given_after_the_cancel_finds_no_run_to_go_on(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, _ = approval_of(asked)
    await system.stop("riskgate")
    assert (await cancel(system, ana, asked.run.id)).status == CANCELLED
    await system.come_back("riskgate")
    with contextlib.suppress(aio.AioRpcError):  # the withdrawal may be there first
        await ana.approve_at_riskgate(approval_id)
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    assert (await ana.run(asked.run.id)).status == CANCELLED
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_what_was_started_and_not_redeemed_is_not_carried_out_after_a_cancel(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="1")
    await ledger.start("c1", execution_id="ex1", effect_key="k1", bound=BOUND)
    assert await ledger.check_fence()
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.run.run_id)
    assert not await ledger.check_fence()


@pytest.mark.slow
async def test_a_turn_that_died_before_the_redeem_does_not_carry_it_out_once_it_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_system(tmp_path) as system:
        real, times = RiskGateAdapter.redeem, []

        async def redeem(self: RiskGateAdapter, *args: Any, **named: Any) -> Any:
            times.append(1)
            if len(times) > 1:
                return await real(self, *args, **named)
            run = await system.agent.database.read(
                lambda connection: connection.exec_driver_sql("SELECT run_id FROM agent_runs").scalar()
            )
            await Cancellations(system.agent.database, system.clock, system.agent.tools).request(
                Owner("acme", "ana"), str(run)
            )
            raise Unavailable("STORE_UNAVAILABLE", "the attempt dies here")

        monkeypatch.setattr(RiskGateAdapter, "redeem", redeem)
        answer = await system.person("ana").say(WRITE)
        assert answer.run.status == CANCELLED
        [given_up] = answer.run.tool_calls
        assert (given_up.state, given_up.error_code) in {("finished", "CANCELLED"), ("denied", "NOT_REDEEMED")}
        assert len(times) == 1
        assert not system.sandbox.joinpath("notas.txt").exists()
        await never_happened(system, system.person("ana"), answer.run.id)


async def never_happened(system: System, person: Person, run_id: str) -> None:
    """Deliver what waits, and check that RiskGate's word, that it never saw the effect, settled it."""
    assert await system.agent.delivery.flush_all()
    [call] = (await person.run(run_id)).tool_calls
    assert (call.state, call.error_code) == ("denied", "NOT_REDEEMED")
    query = "SELECT state FROM agent_outbox WHERE kind = 'outcome' AND state <> 'delivered'"
    assert (await system.agent.database.read(lambda one: one.exec_driver_sql(query).all())) == []


async def test_an_effect_cancelled_between_its_start_and_its_redeem_never_happened(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system:
        path = system.folder / "agent" / "agent.db"

        def cancels(point: str) -> None:
            if point == "agent.7":
                with contextlib.closing(sqlite3.connect(path, timeout=60)) as database, database:
                    database.execute("UPDATE agent_runs SET cancel_us = 1")

        crashpoints.install(cancels)
        try:
            answer = await system.person("ana").say(WRITE)
        finally:
            crashpoints.install(None)
        assert (answer.run.status, answer.run.reason) == (CANCELLED, "CANCELLED")
        assert not system.sandbox.joinpath("notas.txt").exists()
        await never_happened(system, system.person("ana"), answer.run.id)


@pytest.mark.slow
async def test_an_effect_riskgate_was_away_for_never_happened_and_a_retry_asks_nobody_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_given: Any, **_named: Any) -> None:
        raise GateUnavailableError

    async with open_system(tmp_path) as system:
        ana = system.person("ana")
        with monkeypatch.context() as patch:
            patch.setattr(RiskGateAdapter, "redeem", away)
            answer = await ana.say(WRITE)
        assert answer.run.reason == "GATE_UNAVAILABLE"
        await never_happened(system, ana, answer.run.id)
        request = run_pb2.RetryRunRequest(run_id=answer.run.id, request_id="retry-001")
        assert (await runs_of(system).RetryRun(request, metadata=ana.metadata)).run.retry_of == answer.run.id


async def test_a_cancel_that_meets_a_suspending_turn_leaves_no_state_and_asks_for_nothing(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TurnServer._execute

    async def execute(self: TurnServer, claim: Any, *rest: Any) -> Any:
        ending = await real(self, claim, *rest)
        await Cancellations(system.agent.database, system.clock, system.agent.tools).request(
            claim.lease.owner, claim.lease.run_id
        )
        return ending

    monkeypatch.setattr(TurnServer, "_execute", execute)
    answer = await ana.say(WRITE)
    assert (answer.run.status, answer.reply.text[:9]) == (CANCELLED, "Cancelado")
    query = "SELECT (SELECT count(*) FROM agent_checkpoints) + (SELECT count(*) FROM agent_checkpoint_blobs)"
    assert system.agent.database.read_sync(lambda connection: connection.exec_driver_sql(query).scalar()) == 0


async def test_a_run_that_ended_cannot_be_cancelled_and_nobody_elses_is_found(system: System, ana: Person) -> None:
    done = await ana.say("hola")
    with pytest.raises(aio.AioRpcError) as error:
        await cancel(system, ana, done.run.id)
    assert refused(error.value).reason == "RUN_ENDED"
    assert refused(error.value).metadata == {"status": "done"}
    asked = await ana.say(WRITE)
    for stranger in (system.person("ben"), system.person("ana", "other")):
        with pytest.raises(aio.AioRpcError) as error:
            await cancel(system, stranger, asked.run.id)
        assert (error.value.code(), refused(error.value).reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
    assert (await ana.run(asked.run.id)).status == SUSPENDED
