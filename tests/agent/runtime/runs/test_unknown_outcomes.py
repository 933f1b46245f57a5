"""Effects with unknown outcome: settled by their user, and listed over all runs through an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.agent.v1 import run_pb2
from phylactery_agent.runtime.runs.queries import RunLists
from phylactery_agent.runtime.runs.unknown_outcomes import Resolutions
from phylactery_chassis.errors import FailedPrecondition, NotFound
from phylactery_chassis.rpc.paging import encode_token

from tests.support.agent.stores import ANA, BEN, BOUND, Stores, call, open_stores
from tests.support.agent.system import Person, System, approval_of, refused, runs_of

WRITE = 'escribe "hola" en notas.txt'


async def in_doubt(stores: Stores) -> str:
    """Make a run with one effect in doubt, and return its id."""
    await stores.accepted()
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="1")
    await ledger.start("c1", execution_id="ex1", effect_key="k1", bound=BOUND)
    await ledger.doubt("c1", error_code="TIMEOUT")
    await stores.end(claim)
    return claim.run.run_id


@pytest.mark.parametrize(
    ("word", "status", "code", "outcome"),
    [("happened", "success", "", "SUCCEEDED"), ("did_not_happen", "error", "NOT_DONE", "FAILED")],
)
async def test_a_persons_word_settles_an_effect_in_doubt_and_is_reported(
    stores: Stores, word: Any, status: str, code: str, outcome: str
) -> None:
    run_id = await in_doubt(stores)
    resolutions = Resolutions(stores.database, stores.clock)
    settled = await resolutions.resolve(ANA, run_id, "c1", word)
    assert (settled.state, settled.status, settled.error_code, settled.resolution) == ("finished", status, code, word)
    assert await resolutions.resolve(ANA, run_id, "c1", word) == settled
    parcels = sorted(stores.rows("agent_outbox", "outbox_id, once"))
    reported = [once for _, once in parcels if once.startswith("outcome:")]
    assert reported == ["outcome:ex1:IN_DOUBT", f"outcome:ex1:{outcome}"]
    other = "happened" if word == "did_not_happen" else "did_not_happen"
    with pytest.raises(FailedPrecondition) as refusal:
        await resolutions.resolve(ANA, run_id, "c1", other)
    assert refusal.value.reason == "NOT_IN_DOUBT"


async def test_only_ones_own_effects_in_doubt_can_be_settled(stores: Stores) -> None:
    run_id = await in_doubt(stores)
    resolutions = Resolutions(stores.database, stores.clock)
    for owner, run, tool_call, reason in (
        (BEN, run_id, "c1", "RUN_NOT_FOUND"),
        (ANA, "ru_none", "c1", "RUN_NOT_FOUND"),
        (ANA, run_id, "c2", "TOOL_CALL_NOT_FOUND"),
    ):
        with pytest.raises(NotFound) as refusal:
            await resolutions.resolve(owner, run, tool_call, "happened")
        assert refusal.value.reason == reason


async def test_what_is_in_doubt_shows_in_the_ledger_over_all_runs(system: System, ana: Person) -> None:
    system.sandbox.joinpath("notas.txt").write_text("contenido")
    for number in range(3):
        await ana.say("lee notas.txt", f"t{number}")
    await ana.say(WRITE)
    stub = runs_of(system)

    async def listed(**fields: Any) -> run_pb2.ListToolCallsResponse:
        return await stub.ListToolCalls(run_pb2.ListToolCallsRequest(**fields), metadata=ana.metadata)

    first = await listed(page_size=2)
    second = await listed(page_size=2, page_token=first.next_page_token)
    shown = [*first.tool_calls, *second.tool_calls]
    assert sorted((one.tool, one.thread_id, one.state) for one in shown) == [
        *(("read_file", f"t{number}", "finished") for number in range(3)),
        ("write_file", "t1", "proposed"),
    ]
    assert len({(one.run_id, one.tool_call_id) for one in shown}) == 4
    assert list((await listed(state="in_doubt")).tool_calls) == []
    change = "UPDATE agent_tool_calls SET state = 'in_doubt', execution_id = 'ex_none' WHERE tool = 'write_file'"
    await system.agent.database.write(lambda connection: connection.exec_driver_sql(change))
    [doubt] = (await listed(state="in_doubt")).tool_calls
    assert (doubt.tool, doubt.thread_id) == ("write_file", "t1")
    request = run_pb2.ResolveInDoubtRequest(
        run_id=doubt.run_id, tool_call_id=doubt.tool_call_id, resolution=run_pb2.RESOLUTION_DID_NOT_HAPPEN
    )
    settled = (await stub.ResolveInDoubt(request, metadata=ana.metadata)).tool_call
    assert (settled.state, settled.error_code, settled.resolution) == ("finished", "NOT_DONE", request.resolution)
    assert list((await listed(state="in_doubt")).tool_calls) == []
    with pytest.raises(aio.AioRpcError) as error:
        await listed(state="lost")
    assert refused(error.value).fields == ["state"]


@pytest.mark.slow
async def test_a_write_that_could_not_be_noted_is_no_doubt_and_is_told_as_not_done(system: System, ana: Person) -> None:
    approval_id, code = approval_of(await ana.say(WRITE))
    journal = system.folder / "agent" / "journal"
    journal.rename(journal.with_name("elsewhere"))
    answer = await ana.say(f"APROBAR {approval_id} {code}")
    [tool_call] = answer.run.tool_calls
    assert (tool_call.state, tool_call.status, tool_call.error_code) == ("finished", "error", "NOT_NOTED")
    assert "no he cambiado nada" in answer.reply.text
    assert list(system.sandbox.iterdir()) == []


@pytest.mark.parametrize(
    ("state", "index"), [("", "agent_tool_calls_by_user"), ("in_doubt", "agent_tool_calls_in_doubt")]
)
async def test_the_ledger_over_all_runs_is_read_along_an_index_and_sorted_by_nobody(
    tmp_path: Path, state: str, index: str
) -> None:
    with open_stores(f"sqlite:///{tmp_path / 'agent.db'}") as stores:
        asked: list[tuple[str, Any]] = []

        def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
            asked.append((statement, parameters))

        sa.event.listen(stores.database.engine, "before_cursor_execute", note)
        await RunLists(stores.database).tool_calls(ANA, state=state, size=20, token=encode_token(5, "a", "b"))
        sa.event.remove(stores.database.engine, "before_cursor_execute", note)
        [(statement, parameters)] = [one for one in asked if "agent_tool_calls" in one[0]]
        plan = stores.database.read_sync(
            lambda connection: connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
        )
        told = "\n".join(str(row[-1]) for row in plan)
        assert f"USING INDEX {index}" in told, told
        assert "TEMP B-TREE" not in told, told
