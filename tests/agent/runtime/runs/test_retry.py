"""RetryRun: a failed run is retried at most once, and effects of earlier attempts are never ignored."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc import aio
from phylactery.agent.v1 import event_pb2, run_pb2, run_pb2_grpc
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import GateUnavailableError
from phylactery_agent.runtime.effects.outbox import OutboxStore
from phylactery_agent.runtime.runs.retry import Retried, Retries, RetryRequest
from phylactery_agent.runtime.runs.unknown_outcomes import Resolutions
from phylactery_agent.runtime.storage.records import Owner
from phylactery_chassis.auth.identity import token_hash
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition, NotFound

from tests.support.agent.process import AgentProcess
from tests.support.agent.stores import ANA, BEN, BOUND, Stores, call
from tests.support.agent.system import DONE, FAILED, SUSPENDED, Person, System, open_system, refused

WRITE = 'escribe "hola" en notas.txt'


async def failed(stores: Stores, message_id: str = "request-1", text: str = "hola", **named: Any) -> str:
    """Make a run that failed, and return its id; the rest names what its message came with."""
    await stores.accepted(message_id, text, **named)
    claim = await stores.claimed()
    await stores.end(claim, "failed", reason="INTERNAL_ERROR")
    return claim.run.run_id


async def retry(
    stores: Stores,
    run_id: str,
    request_id: str = "retry-001",
    *,
    owner: Owner = ANA,
    effects: bool = False,
    tools: tuple[str, ...] = (),
) -> Retried:
    wanted = RetryRequest(
        owner, run_id, request_id, effects, level="user", credential_hash="", traceparent="", tools=tools
    )
    return await Retries(stores.database, stores.clock, stores.tools).retry(wanted)


async def why_not(stores: Stores, run_id: str, **named: Any) -> tuple[str, dict[str, str], str]:
    with pytest.raises(FailedPrecondition) as refusal:
        await retry(stores, run_id, **named)
    assert refusal.value.reason == "RUN_NOT_RETRYABLE"
    told = dict(refusal.value.metadata)
    return told.pop("why"), told, refusal.value.message


async def acting(stores: Stores, tool: str = "write_file", *, finish: str = "", doubt: bool = False) -> str:
    """Make a run that failed after one call had begun, and return its id."""
    await stores.accepted()
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(tool=tool), plan_step="1")
    await ledger.start("c1", execution_id="ex1", effect_key="k1", bound=BOUND)
    if finish:
        await ledger.finish("c1", arguments_json="{}", status=finish, output="x", error_code="")  # type: ignore[arg-type]
    if doubt:
        await ledger.doubt("c1", error_code="TIMEOUT")
    await stores.end(claim, "failed", reason="INTERNAL_ERROR")
    return claim.run.run_id


async def test_a_run_that_failed_begins_once_more_with_the_same_words(stores: Stores) -> None:
    old = await failed(stores, text="haz algo")
    retried = await retry(stores, old)
    assert (retried.run.status, retried.run.retry_of, list(retried.effects)) == ("queued", old, [])
    claim = await stores.claimed()
    assert (claim.run.run_id, claim.turn.text, claim.turn.resumed) == (retried.run.run_id, "haz algo", False)
    assert (claim.run.graph, claim.turn.language) == (retried.run.graph, "es")
    assert (await stores.runs.get(ANA, old)).status == "failed"


async def test_messages_that_were_answered_together_are_said_together_again(stores: Stores) -> None:
    await stores.accepted("request-1", "uno")
    await stores.accepted("request-2", "dos", on_busy="coalesce")
    claim = await stores.claimed()
    assert claim.turn.text == "uno\ndos"
    await stores.end(claim, "failed", reason="INTERNAL_ERROR")
    await retry(stores, claim.run.run_id)
    assert (await stores.claimed()).turn.text == "uno\ndos"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [(('["personal:email"]', '["secret:key"]'), '["personal:email", "secret:key"]'), (("[]", ""), "")],
)
async def test_what_was_found_in_each_of_messages_answered_together_is_known_again(
    stores: Stores, found: tuple[str, str], wanted: str
) -> None:
    await stores.accepted("request-1", "uno", findings=found[0])
    await stores.accepted("request-2", "dos", findings=found[1], language="en", on_busy="coalesce")
    claim = await stores.claimed()
    await stores.end(claim, "failed", reason="INTERNAL_ERROR")
    await retry(stores, claim.run.run_id)
    again = await stores.claimed()
    assert (again.turn.findings, again.turn.language) == (claim.turn.findings, claim.turn.language) == (wanted, "en")


async def test_the_same_request_answers_the_same_run_whatever_became_of_it(stores: Stores) -> None:
    old = await failed(stores)
    first = await retry(stores, old)
    again = await retry(stores, old)
    assert (again.run.run_id, first.fresh, again.fresh) == (first.run.run_id, True, False)
    await stores.end(await stores.claimed())
    later = await retry(stores, old)
    assert (later.run.run_id, later.run.status) == (first.run.run_id, "done")
    assert len(stores.rows("agent_runs")) == 2
    other = await failed(stores, "request-9")
    with pytest.raises(AlreadyExists) as conflict:
        await retry(stores, other)
    assert conflict.value.reason == "REQUEST_CONFLICT"
    with pytest.raises(AlreadyExists):
        await retry(stores, other, "request-9")  # the id of a message is taken, too


async def test_several_at_once_begin_one_run(stores: Stores) -> None:
    old = await failed(stores)
    same = await asyncio.gather(*(retry(stores, old) for _ in range(4)))
    assert len({one.run.run_id for one in same}) == 1
    assert [one.fresh for one in same].count(True) == 1
    others = await asyncio.gather(*(retry(stores, old, f"retry-10{n}") for n in range(4)), return_exceptions=True)
    assert [getattr(one, "reason", "") for one in others] == ["RUN_NOT_RETRYABLE"] * 4
    assert len(stores.rows("agent_runs")) == 2


async def test_only_a_run_that_failed_is_begun_once_more_and_only_the_newest_of_a_line(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    assert (await why_not(stores, claim.run.run_id))[0] == "NOT_FAILED"
    await stores.end(claim)
    why, _, told = await why_not(stores, claim.run.run_id)
    assert (why, "done" in told) == ("NOT_FAILED", True)
    old = await failed(stores, "request-2")
    newer = (await retry(stores, old)).run.run_id
    assert (await why_not(stores, old, request_id="retry-002"))[:2] == ("RETRIED", {"run_id": newer})
    await stores.end(await stores.claimed(), "failed", reason="INTERNAL_ERROR")
    assert (await retry(stores, newer, "retry-003")).run.retry_of == newer
    for owner, run_id in ((BEN, old), (ANA, "run_none")):
        with pytest.raises(NotFound):
            await retry(stores, run_id, owner=owner)


async def test_a_thread_that_serves_something_else_is_let_end_first(stores: Stores) -> None:
    old = await failed(stores)
    await stores.accepted("request-2")
    assert (await why_not(stores, old))[0] == "THREAD_BUSY"
    claim = await stores.claimed()
    assert (await why_not(stores, old))[0] == "THREAD_BUSY"
    await stores.end(claim, "suspended")
    assert (await why_not(stores, old))[0] == "THREAD_BUSY", "the next message answers what it asked"


async def test_a_run_that_waits_for_an_approval_keeps_no_other_from_being_retried_beside_it(stores: Stores) -> None:
    old = await failed(stores)
    await stores.accepted("request-2")
    waits = await stores.claimed()
    await stores.end(waits, "suspended", approval_id="ap_waiting1")
    again = await retry(stores, old)
    claim = await stores.claimed()
    assert (claim.run.run_id, claim.turn.resumed) == (again.run.run_id, False)
    await stores.end(claim)
    assert (await stores.runs.get(ANA, waits.run.run_id)).status == "suspended"


async def test_words_that_are_not_kept_cannot_be_said_again(stores: Stores) -> None:
    old = await failed(stores)
    await stores.database.write(lambda connection: connection.exec_driver_sql("DELETE FROM agent_inbox"))
    assert (await why_not(stores, old))[0] == "WORDS_GONE"


@pytest.mark.parametrize(
    ("then", "today", "kept"),
    [
        ((), ("read_file",), ("read_file",)),
        (("read_file",), (), ("read_file",)),
        (("read_file", "echo"), ("write_file", "echo"), ("echo",)),
        ((), (), ()),
    ],
)
async def test_a_run_begins_once_more_with_the_tools_of_both_its_callers(
    stores: Stores, then: tuple[str, ...], today: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    old = await failed(stores, allowed_tools=then)
    await retry(stores, old, tools=today)
    assert (await stores.claimed()).turn.allowed_tools == kept


async def test_callers_with_no_tool_in_common_are_refused_for_no_tool_would_mean_every_tool(stores: Stores) -> None:
    old = await failed(stores, allowed_tools=("read_file",))
    why, _, told = await why_not(stores, old, tools=("echo",))
    assert (why, "read_file" in told) == ("NO_TOOLS", False)
    assert len(stores.rows("agent_runs")) == 1


async def test_words_of_which_nothing_was_to_be_kept_cannot_be_said_again(stores: Stores) -> None:
    await stores.accepted("request-1", "uno", do_not_store=True)
    await stores.accepted("request-2", "dos", on_busy="coalesce")
    claim = await stores.claimed()
    await stores.end(claim, "failed", reason="INTERNAL_ERROR")
    assert set(stores.rows("agent_inbox", "text")) == {(b"",)}
    assert (await why_not(stores, claim.run.run_id))[0] == "WORDS_GONE"


@pytest.mark.parametrize(
    ("made", "state"),
    [({"finish": "success"}, "finished"), ({"finish": "error"}, "finished"), ({"doubt": True}, "in doubt"), ({}, "in")],
)
async def test_what_a_run_did_or_may_have_done_must_be_acknowledged(
    stores: Stores, made: dict[str, Any], state: str
) -> None:
    old = await acting(stores, **made)
    why, told, message = await why_not(stores, old)
    assert (why, told) == ("EFFECTS", {"tool_call_ids": "c1"})
    assert f"write_file ('c1') is {state}" in message
    assert "acknowledge_effects" in message
    retried = await retry(stores, old, effects=True)
    assert [one.tool_call_id for one in retried.effects] == ["c1"]


async def test_effects_of_every_run_before_count(stores: Stores) -> None:
    old = await acting(stores, finish="success")
    newer = (await retry(stores, old, effects=True)).run.run_id
    await stores.end(await stores.claimed(), "failed", reason="INTERNAL_ERROR")
    assert (await why_not(stores, newer, request_id="retry-002"))[:2] == ("EFFECTS", {"tool_call_ids": "c1"})


async def test_reads_and_what_a_person_says_did_not_happen_are_nothing_to_acknowledge(stores: Stores) -> None:
    assert (await retry(stores, await acting(stores, "read_file", finish="success"))).effects == []
    await stores.end(await stores.claimed())
    await stores.accepted("request-3")
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="1")
    await ledger.start("c1", execution_id="ex1", effect_key="k1", bound=BOUND)
    await ledger.doubt("c1", error_code="TIMEOUT")
    await stores.end(claim, "failed", reason="INTERNAL_ERROR")
    await Resolutions(stores.database, stores.clock).resolve(ANA, claim.run.run_id, "c1", "did_not_happen")
    assert (await retry(stores, claim.run.run_id, "retry-002")).effects == []


async def ask(channel: aio.Channel, person: Person, run_id: str, **fields: Any) -> run_pb2.RetryRunResponse:
    request = run_pb2.RetryRunRequest(run_id=run_id, request_id="retry-001", **fields)
    return await run_pb2_grpc.RunServiceStub(channel).RetryRun(request, metadata=person.metadata, timeout=60)


async def ended(channel: aio.Channel, person: Person, run_id: str) -> run_pb2.Run:
    stub = run_pb2_grpc.RunServiceStub(channel)
    async with asyncio.timeout(60):
        while True:
            request = run_pb2.GetRunRequest(run_id=run_id)
            run = (await stub.GetRun(request, metadata=person.metadata, timeout=60)).run
            if run.status not in (event_pb2.RUN_STATUS_QUEUED, event_pb2.RUN_STATUS_RUNNING):
                return run
            await asyncio.sleep(0.05)


async def test_a_run_that_could_not_ask_riskgate_is_carried_out_once_it_answers(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_given: Any, **_named: Any) -> None:
        raise GateUnavailableError

    with monkeypatch.context() as patch:
        patch.setattr(RiskGateAdapter, "evaluate", away)
        first = await ana.say(WRITE)
    assert (first.run.status, first.run.reason) == (FAILED, "GATE_UNAVAILABLE")
    with pytest.raises(aio.AioRpcError) as error:
        await ask(system.agent_channel, system.person("ben"), first.run.id)
    assert (error.value.code(), refused(error.value).reason) == (grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")
    new = (await ask(system.agent_channel, ana, first.run.id)).run
    assert (new.retry_of, new.thread_id) == (first.run.id, first.run.thread_id)
    assert (await ended(system.agent_channel, ana, new.id)).status == SUSPENDED  # a new decision, asked anew
    with pytest.raises(aio.AioRpcError) as error:
        await ask(system.agent_channel, ana, new.id)
    assert refused(error.value).reason == "REQUEST_CONFLICT"


async def nobody_else_delivers(*_given: Any) -> list[Any]:
    """Stands for a background delivery that has nothing to do at the moment."""
    return []


@pytest.mark.slow
@pytest.mark.parametrize("redeemed", [False, True])
async def test_an_effect_riskgate_never_saw_needs_no_acknowledgement_before_its_report_was_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redeemed: bool
) -> None:
    real = RiskGateAdapter.redeem

    async def lost(self: RiskGateAdapter, *args: Any, **named: Any) -> Any:
        if redeemed:
            await real(self, *args, **named)
        raise GateUnavailableError

    monkeypatch.setattr(OutboxStore, "lanes", nobody_else_delivers)
    async with open_system(tmp_path) as system:
        ana = system.person("ana")
        with monkeypatch.context() as patch:
            patch.setattr(RiskGateAdapter, "redeem", lost)
            first = await ana.say(WRITE)
        assert (first.run.status, first.run.reason) == (FAILED, "GATE_UNAVAILABLE")
        [begun] = first.run.tool_calls
        assert begun.state in {"finished", "in_doubt"}
        await system.stop("riskgate")
        with pytest.raises(aio.AioRpcError) as error:
            await ask(system.agent_channel, ana, first.run.id)
        assert refused(error.value).metadata["why"] == "EFFECTS", "nobody can say, so the person is asked"
        await system.come_back("riskgate")
        if redeemed:
            with pytest.raises(aio.AioRpcError) as error:
                await ask(system.agent_channel, ana, first.run.id)
            assert refused(error.value).metadata["why"] == "EFFECTS"
            return
        retried = await ask(system.agent_channel, ana, first.run.id)
        assert list(retried.effects) == []
        [call] = (await ana.run(first.run.id)).tool_calls
        assert (call.state, call.error_code) == ("denied", "NOT_REDEEMED")
        assert (await ended(system.agent_channel, ana, retried.run.id)).status == DONE
        assert system.sandbox.joinpath("notas.txt").read_text() == "hola"


async def test_a_narrowed_identity_begins_a_run_of_the_wider_one_with_its_own_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def holder(token: str, subject: str, role: str, **more: Any) -> dict[str, Any]:
        tenant = "*" if role == "delegate" else "acme"
        return {"hash": token_hash(token), "subject": subject, "tenant": tenant, "roles": [role], **more}

    tokens = tmp_path / "tokens.yaml"
    entries = [holder("wide", "ana", "caller"), holder("narrow", "ana", "caller", tools=["read_file"])]
    tokens.write_text(yaml.safe_dump({"tokens": [*entries, holder("of-agent", "agent", "delegate")]}))
    identity = {"identity_mode": "tokens", "tokens_file": tokens}
    async with open_system(tmp_path, identity, riskgate_token="of-agent", memory_token="of-agent") as system:

        async def away(*_given: Any, **_named: Any) -> None:
            raise GateUnavailableError

        monkeypatch.setattr(RiskGateAdapter, "evaluate", away)
        first = await system.bearer("wide").say(WRITE)
        new = (await ask(system.agent_channel, system.bearer("narrow"), first.run.id)).run
        with contextlib.closing(sqlite3.connect(tmp_path / "agent" / "agent.db")) as database:
            kept = dict(database.execute("SELECT run_id, allowed_tools FROM agent_inbox").fetchall())
    assert kept == {first.run.id: "[]", new.id: '["read_file"]'}


@pytest.mark.slow
async def test_an_agent_killed_right_after_the_commit_serves_the_new_run_once(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system:
        ana, folder = system.person("ana"), tmp_path / "killed"
        process = AgentProcess(system, folder, "agent.retry.committed")
        async with await process.channel() as channel:
            first = await system.through(channel, ana).say("hola")
            with contextlib.closing(sqlite3.connect(folder / "agent.db")) as database, database:
                database.execute("UPDATE agent_runs SET status = 'failed'")
            with pytest.raises(aio.AioRpcError):
                await ask(channel, ana, first.run.id)
        assert process.child.wait(60) == -signal.SIGKILL
        process = AgentProcess(system, folder)
        async with await process.channel() as channel:
            new = (await ask(channel, ana, first.run.id)).run
            assert (await ended(channel, ana, new.id)).status == DONE
            runs = await run_pb2_grpc.RunServiceStub(channel).ListRuns(run_pb2.ListRunsRequest(), metadata=ana.metadata)
            assert sorted(run.retry_of for run in runs.runs) == ["", first.run.id]
        process.end()


async def test_a_run_that_was_given_up_begins_once_more_too(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await stores.end(claim, "dead", reason="TOO_MANY_ATTEMPTS")
    assert (await retry(stores, claim.run.run_id)).run.retry_of == claim.run.run_id
