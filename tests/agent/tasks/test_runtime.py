"""A turn's task at RiskGate: begun once, shown every result before the next evaluation, ended with its run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.ports import BoundCall, CallContext, GateRefusedError, GateUnavailableError
from phylactery_agent.ports import ProposedCall as Proposed
from phylactery_agent.runtime.privacy.erasure_store import ErasureStore
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.turn.gate import MAX_CONTINUED, TurnTask
from phylactery_agent.runtime.turn.tasks import TaskStore
from phylactery_agent.tools.executor import Executor, ToolSettings
from phylactery_agent.tools.named_folders import make_person_folder, person_folder
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.agent.bench import STATE, Bench
from tests.support.agent.gate import FakeGate, Task
from tests.support.agent.graph import Died, dies_at
from tests.support.agent.stores import ANA, T1, Stores, sha


def where(run_id: str) -> CallContext:
    return CallContext("t1", run_id, "s1", "tool_intent")


@pytest.fixture
def gate() -> FakeGate:
    return FakeGate()


@pytest.fixture
def bench(stores: Stores, gate: FakeGate) -> Bench:
    made = Bench(stores)
    made.services.gate = lambda *_whose: gate  # type: ignore[method-assign]
    return made


def proposed(tool_call_id: str = "c1", tool: str = "echo", args: dict[str, Any] | None = None) -> Proposed:
    args = args or {"text": "hola"}
    text = json.dumps(args, separators=(",", ":"), sort_keys=True)
    return Proposed(tool, tool_call_id, args, text, sha(text), ToolRegistry()[tool].schema_hash)


async def ran(stores: Stores, claim: Claim, tool_call_id: str = "c1", output: str = "hola", status: str = "success"):
    """Take one call through the ledger, to its result."""
    ledger, call = stores.ledger(claim.lease), proposed(tool_call_id)
    await ledger.propose(call, plan_step="s1")
    bound = BoundCall("echo", "v1", call.canonical_args, call.args_hash)
    await ledger.start(tool_call_id, execution_id=f"ex_{tool_call_id}", effect_key="k", bound=bound)
    await ledger.finish(tool_call_id, arguments_json=bound.arguments_json, status=status, output=output, error_code="")


def asked(gate: FakeGate) -> list[tuple[str, str]]:
    return [
        call for call in gate.calls if call[0] in {"begin_task", "observe", "evaluate", "report_outcome", "end_task"}
    ]


async def test_the_words_open_one_task_named_by_the_run_and_every_call_of_the_turn_names_it(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease
    turn = bench.gate(lease, "repite hola")
    for number in (1, 2):
        await turn.evaluate(proposed(f"c{number}"), where(lease.run_id))
    assert [what for method, what in gate.calls if method == "begin_task"] == [lease.run_id]
    [(task_id, task)] = gate.tasks.items()
    assert (task.words, task.thread_id, task.continues) == ("repite hola", "t1", "")
    assert gate.asked_in == [("c1", task_id), ("c2", task_id)]


async def test_killed_once_the_task_is_open_the_next_attempt_opens_the_same_one(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease
    with dies_at("agent.0"), pytest.raises(Died):
        await bench.gate(lease, "repite hola").evaluate(proposed(), where(lease.run_id))
    assert gate.asked_in == []
    again = (await stores.claimed()).lease
    await bench.gate(again, "repite hola").evaluate(proposed(), where(lease.run_id))
    assert gate.asked_in == [("c1", "task_0")]
    assert list(gate.tasks) == ["task_0"]


async def test_killed_once_a_correction_opened_its_task_the_next_attempt_goes_on_from_the_same(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    gate.tasks["earlier"] = Task("t1", "repite hola", "", ended=True, kept=True)
    await stores.accepted(text="no, adiós")

    def task(claim: Claim) -> TurnTask:
        store = TaskStore(stores.database, stores.clock)
        return TurnTask(gate, store, claim.lease, "no, adiós", opens_run=True, changes="earlier")

    with dies_at("agent.0"), pytest.raises(Died):
        await task(await stores.claimed()).current()
    gate.tasks["earlier"].kept = False  # its time is up meanwhile
    opened = await task(await stores.claimed()).current()
    assert [(name, one.continues) for name, one in gate.tasks.items()] == [("earlier", ""), (opened, "earlier")]


async def test_a_correction_of_what_is_kept_no_more_stands_alone(stores: Stores, gate: FakeGate) -> None:
    gate.tasks["earlier"] = Task("t1", "repite hola", "", ended=True)
    await stores.accepted(text="no, adiós")
    store = TaskStore(stores.database, stores.clock)
    claim = await stores.claimed()
    opened = await TurnTask(gate, store, claim.lease, "no, adiós", opens_run=True, changes="earlier").current()
    assert (gate.tasks[opened].words, gate.tasks[opened].continues) == ("no, adiós", "")


async def test_a_turn_on_another_replica_finds_the_task_and_asks_for_none(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease
    await bench.gate(lease, "repite hola").evaluate(proposed(), where(lease.run_id))
    other = (await stores.claimed(holder="me")).lease
    await bench.gate(other, "repite hola").evaluate(proposed("c2"), where(lease.run_id))
    assert len([call for call in gate.calls if call[0] == "begin_task"]) == 1
    assert gate.asked_in == [("c1", "task_0"), ("c2", "task_0")]


async def test_an_answer_to_an_approval_opens_no_task_and_small_talk_neither(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    async def ask(_given: Any, context: Any) -> dict[str, Any]:
        await context.gate.evaluate(proposed(f"c{bench.graph.calls}"), where("r"))
        return {**STATE, "run_status": "suspended", "approval_id": "ap_waiting0"}

    await stores.accepted("request-1", text="gracias")
    await bench.server().serve(await stores.claimed())
    assert gate.tasks == {}
    bench.graph.work = ask
    await stores.accepted("request-2", text="repite hola")
    await bench.server().serve(await stores.claimed())
    await stores.accepted("request-3", text="APROBAR ap_waiting0 ________")
    await bench.server().serve(await stores.claimed())
    assert [task.words for task in gate.tasks.values()] == ["repite hola"]
    assert [task_id for _, task_id in gate.asked_in] == ["task_0", "task_0"]


async def test_every_result_is_shown_once_and_before_the_next_question(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    run_id, turn = claim.lease.run_id, bench.gate(claim.lease, "repite hola")
    await turn.evaluate(proposed("c1"), where(run_id))
    await ran(stores, claim, "c1", "hola")
    await turn.evaluate(proposed("c2"), where(run_id))
    await ran(stores, claim, "c2", "no se puede", "error")
    await turn.evaluate(proposed("c3"), where(run_id))
    assert asked(gate) == [
        ("begin_task", run_id),
        ("evaluate", "c1"),
        ("report_outcome", "ex_c1"),
        ("observe", "c1"),
        ("evaluate", "c2"),
        ("report_outcome", "ex_c2"),
        ("observe", "c2"),
        ("evaluate", "c3"),
    ]
    about = {"run_id": run_id, "tool": "echo", "arguments_json": '{"text":"hola"}'}
    assert gate.tasks["task_0"].shown == {
        "c1": {**about, "result_text": "hola", "failed": False},
        "c2": {**about, "result_text": "no se puede", "failed": True},
    }
    assert "hola" not in str(stores.rows("agent_outbox", "payload")), "what was delivered is not kept"


async def test_a_result_riskgate_cannot_be_told_of_stops_the_next_question_until_it_is(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    turn = bench.gate(claim.lease, "repite hola")
    await turn.evaluate(proposed("c1"), where(claim.lease.run_id))
    await ran(stores, claim)
    gate.down = {"observe"}
    with pytest.raises(GateUnavailableError):
        await turn.evaluate(proposed("c2"), where(claim.lease.run_id))
    assert [call for call, _ in gate.asked_in] == ["c1"]
    gate.down = set()
    await turn.evaluate(proposed("c2"), where(claim.lease.run_id))
    assert [call for call, _ in gate.asked_in] == ["c1", "c2"]
    assert list(gate.tasks["task_0"].shown) == ["c1"]


async def test_a_result_riskgate_refuses_for_good_stops_its_run_and_no_other(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted("request-1", text="repite hola")
    claim = await stores.claimed()
    turn = bench.gate(claim.lease, "repite hola")
    await turn.evaluate(proposed("c1"), where(claim.lease.run_id))
    await ran(stores, claim)
    gate.refusals = {"observe": "TASK_FULL"}
    for _ in range(2):
        with pytest.raises(GateRefusedError) as caught:
            await turn.evaluate(proposed("c2"), where(claim.lease.run_id))
        assert caught.value.reason == "RESULT_NOT_SHOWN"
    assert [call for call, _ in gate.asked_in] == ["c1"]
    gate.refusals = {}
    await stores.end(claim)
    await stores.accepted("request-2", text="repite adiós")
    later = await stores.claimed()
    await bench.gate(later.lease, "repite adiós").evaluate(proposed("c9"), where(later.lease.run_id))
    assert gate.asked_in[-1] == ("c9", "task_1")


async def test_without_a_task_nothing_is_asked(stores: Stores, bench: Bench, gate: FakeGate) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease
    gate.down = {"begin_task"}
    with pytest.raises(GateUnavailableError):
        await bench.gate(lease, "repite hola").evaluate(proposed(), where(lease.run_id))
    assert gate.asked_in == []


async def test_killed_between_the_result_and_telling_it_the_result_is_shown_at_recovery_once(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    await bench.gate(claim.lease, "repite hola").evaluate(proposed("c1"), where(claim.lease.run_id))
    await ran(stores, claim)
    with dies_at("agent.11.observe"), pytest.raises(Died):  # RiskGate has it, and the agent does not know that
        await bench.delivery.flush("observation", T1)
    again = await stores.claimed()
    await bench.gate(again.lease, "repite hola").evaluate(proposed("c2"), where(claim.lease.run_id))
    assert [what for method, what in gate.calls if method == "observe"] == ["c1", "c1"]
    assert list(gate.tasks["task_0"].shown) == ["c1"]
    assert gate.asked_in == [("c1", "task_0"), ("c2", "task_0")]


async def test_the_end_of_the_run_ends_its_task_after_everything_it_had_to_tell(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    await bench.gate(claim.lease, "repite hola").evaluate(proposed("c1"), where(claim.lease.run_id))
    await ran(stores, claim)
    await stores.end(claim)
    gate.down = {"report_outcome"}
    with pytest.raises(GateUnavailableError):
        await bench.delivery.flush("task_end", T1)
    assert not gate.tasks["task_0"].ended
    gate.down = set()
    gate.calls.clear()
    await bench.delivery.flush("task_end", T1)
    assert asked(gate) == [("report_outcome", "ex_c1"), ("observe", "c1"), ("end_task", "task_0")]
    assert await bench.delivery.flush_all()
    assert gate.tasks["task_0"].ended


async def test_a_suspended_run_keeps_its_task_and_what_the_person_answers_continues_it(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted("request-1", text="lee a.txt")
    claim = await stores.claimed()
    await bench.gate(claim.lease, "lee a.txt").evaluate(proposed("c1"), where(claim.lease.run_id))
    await stores.end(claim, "suspended", reason="AWAITING_USER_INPUT")
    assert await bench.delivery.flush_all()
    assert not gate.tasks["task_0"].ended
    await stores.accepted("request-2", text="sí, hazlo")
    later = await stores.claimed()
    assert later.turn.resumed
    turn = bench.gate(later.lease, "sí, hazlo", opens_run=False)
    await turn.evaluate(proposed("c2"), where(later.lease.run_id))
    assert (gate.tasks["task_1"].words, gate.tasks["task_1"].continues) == ("sí, hazlo", "task_0")
    assert gate.asked_in == [("c1", "task_0"), ("c2", "task_1")]
    await ran(stores, later, "c2")
    await stores.end(later)
    assert await bench.delivery.flush_all()
    assert list(gate.tasks["task_1"].shown) == ["c2"]
    assert [task.ended for task in gate.tasks.values()] == [True, True]


async def test_so_many_answers_continue_one_task_and_the_next_stands_alone(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    for number in range(MAX_CONTINUED + 2):
        await stores.accepted(f"request-{number}", text=f"palabra {number}")
        claim = await stores.claimed()
        turn = bench.gate(claim.lease, claim.turn.text, opens_run=not claim.turn.resumed)
        await turn.evaluate(proposed(f"c{number}"), where(claim.lease.run_id))
        await stores.end(claim, "suspended", reason="AWAITING_USER_INPUT")
    continued = [task.continues for task in gate.tasks.values()]
    assert continued == ["", *(f"task_{n}" for n in range(MAX_CONTINUED - 1)), "", f"task_{MAX_CONTINUED}"]


async def test_an_answer_that_comes_after_the_time_of_the_task_stands_alone(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted("request-1", text="lee a.txt")
    claim = await stores.claimed()
    await bench.gate(claim.lease, "lee a.txt").evaluate(proposed("c1"), where(claim.lease.run_id))
    await stores.end(claim, "suspended", reason="AWAITING_USER_INPUT")
    gate.tasks["task_0"].ended = True
    await stores.accepted("request-2", text="lee b.txt")
    later = await stores.claimed()
    turn = bench.gate(later.lease, "lee b.txt", opens_run=False)
    await turn.evaluate(proposed("c2"), where(later.lease.run_id))
    assert (gate.tasks["task_1"].words, gate.tasks["task_1"].continues) == ("lee b.txt", "")


async def test_an_effect_in_doubt_and_a_call_that_was_denied_show_nothing(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    await bench.gate(claim.lease, "repite hola").evaluate(proposed("c1"), where(claim.lease.run_id))
    ledger, call = stores.ledger(claim.lease), proposed("c1")
    await ledger.propose(call, plan_step="s1")
    bound = BoundCall("echo", "v1", call.canonical_args, call.args_hash)
    await ledger.start("c1", execution_id="ex_c1", effect_key="k", bound=bound)
    await ledger.doubt("c1", error_code="CRASHED")
    await ledger.propose(proposed("c2"), plan_step="s2")
    await ledger.deny("c2", error_code="POLICY")
    assert await stores.outbox.waiting("observation", T1) == []


async def test_a_run_from_before_there_were_tasks_goes_on_without_one(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    await bench.gate(claim.lease).evaluate(proposed("c1"), where(claim.lease.run_id))
    await ran(stores, claim)
    await stores.end(claim)
    assert await bench.delivery.flush_all()
    assert gate.asked_in == [("c1", "")]
    assert {method for method, _ in gate.calls} == {"evaluate", "report_outcome"}


async def test_an_erased_user_leaves_nothing_that_waits_to_be_shown(stores: Stores, bench: Bench) -> None:
    await stores.accepted(text="repite hola")
    claim = await stores.claimed()
    await bench.gate(claim.lease, "repite hola").evaluate(proposed("c1"), where(claim.lease.run_id))
    await ran(stores, claim)
    await stores.end(claim)
    await ErasureStore(stores.database, stores.clock).give_up(ANA)
    assert [tuple(row) for row in stores.rows("agent_outbox", "kind")] == [("outcome",)]


async def test_a_call_whose_arguments_claim_a_task_and_origins_is_asked_about_in_the_turns_own(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease
    lying = {"text": "x", "task_id": "task_9", "origin": {"worst": 0}, "intent": 2}
    await bench.gate(lease, "repite hola").evaluate(proposed(args=lying), where(lease.run_id))
    assert gate.asked_in == [("c1", "task_0")]


async def test_a_task_that_is_expected_is_opened_before_anybody_asks_and_once(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease
    turn = bench.gate(lease, "repite hola")
    turn.expect()
    async with asyncio.timeout(60):
        while not gate.tasks:  # noqa: ASYNC110 - the stand-in tells nobody
            await asyncio.sleep(0.01)
    await turn.evaluate(proposed(), where(lease.run_id))
    turn.close()
    assert [call[0] for call in asked(gate)] == ["begin_task", "evaluate"]
    assert gate.asked_in == [("c1", "task_0")]


async def test_a_task_that_could_not_be_opened_fails_who_asks_and_nobody_else(
    stores: Stores, bench: Bench, gate: FakeGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.accepted(text="repite hola")
    lease = (await stores.claimed()).lease

    async def away(*_about: Any, **_more: Any) -> str:
        raise GateUnavailableError("down")

    monkeypatch.setattr(gate, "begin_task", away)
    silent, asking = bench.gate(lease, "repite hola"), bench.gate(lease, "repite hola")
    for turn in (silent, asking):
        turn.expect()
    await asyncio.sleep(0)
    silent.close()
    with pytest.raises(GateUnavailableError):
        await asking.evaluate(proposed(), where(lease.run_id))
    asking.close()


async def test_a_turn_that_was_given_back_and_counts_no_attempt_keeps_the_task_it_had_opened(
    stores: Stores, bench: Bench, gate: FakeGate
) -> None:
    asked_about, served = asyncio.Event(), bench.server()

    async def asks(_given: Any, context: Any) -> dict[str, Any]:
        await context.gate.evaluate(proposed(), where("r"))
        if not asked_about.is_set():
            asked_about.set()
            await asyncio.Event().wait()
        return STATE

    bench.graph.work = asks
    await stores.accepted(text="repite hola")
    serving = asyncio.create_task(served.serve(claim := await stores.claimed()))
    async with asyncio.timeout(60):
        await asked_about.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    await stores.claims.give_back(claim, pause_seconds=0, counted=False)
    again = await stores.claimed()
    assert again.attempt == 1
    await served.serve(again)
    assert [call[0] for call in asked(gate)] == ["begin_task", "evaluate", "evaluate"]
    assert [task_id for _, task_id in gate.asked_in] == ["task_0", "task_0"]


@pytest.fixture
def replacing(stores: Stores, bench: Bench, tmp_path: Path) -> Proposed:
    """A call that would replace a file which is there."""
    bench.executor = Executor(ToolSettings(tmp_path / "sandbox", tmp_path / "journal"), stores.tools)
    box = make_person_folder(tmp_path / "sandbox", ANA.tenant, ANA.user_id)
    box.joinpath("a.txt").write_text("hola")
    return proposed("c1", "write_file", {"path": "a.txt", "content": "x"})


def looked(gate: FakeGate) -> dict[str, Any]:
    """Return what RiskGate was shown of looks, by the tool_call_id."""
    return {
        tool_call_id: json.loads(shown["result_json"])
        for task in gate.tasks.values()
        for tool_call_id, shown in task.shown.items()
        if shown["tool"] == "file_info"
    }


async def test_a_file_that_a_call_would_replace_is_shown_once_before_the_first_question_about_it(
    stores: Stores, bench: Bench, gate: FakeGate, replacing: Proposed
) -> None:
    await stores.accepted(text="escribe x en a.txt")
    lease = (await stores.claimed()).lease
    turn = bench.gate(lease, "escribe x en a.txt")
    for _ in range(3):  # as it is asked about again with its approval
        await turn.evaluate(replacing, where(lease.run_id))
    assert [method for method, _ in asked(gate)] == ["begin_task", "observe", "evaluate", "evaluate", "evaluate"]
    found = looked(gate)["c1.info"]
    assert (found["path"], found["exists"], found["size"]) == ("a.txt", True, 4)
    (shown,) = gate.tasks["task_0"].shown.values()
    assert (shown["arguments_json"], shown["failed"]) == ('{"path":"a.txt"}', False)


async def test_the_look_stays_what_it_was_when_the_file_changes_before_the_next_question(
    stores: Stores, bench: Bench, gate: FakeGate, replacing: Proposed, tmp_path: Path
) -> None:
    await stores.accepted(text="escribe x en a.txt")
    lease = (await stores.claimed()).lease
    turn = bench.gate(lease, "escribe x en a.txt")
    await turn.evaluate(replacing, where(lease.run_id))
    (person_folder(tmp_path / "sandbox", ANA.tenant, ANA.user_id) / "a.txt").write_text("much longer than before")
    await turn.evaluate(replacing, where(lease.run_id))
    assert looked(gate)["c1.info"]["size"] == 4


@pytest.mark.usefixtures("replacing")
@pytest.mark.parametrize(
    "call",
    [
        ("write_file", {"path": "new.txt", "content": "x"}),
        ("write_file", {"path": "a.txt", "content": "x", "append": True}),
        ("write_file", {"path": "nowhere/a.txt", "content": "x"}),
        ("write_file", {"path": "../a.txt", "content": "x"}),
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "a.txt"}),
    ],
    ids=["new", "append", "no folder", "outside", "read", "no content"],
)
async def test_nothing_is_shown_of_a_call_that_replaces_nothing(
    stores: Stores, bench: Bench, gate: FakeGate, call: tuple[str, dict[str, Any]]
) -> None:
    await stores.accepted(text="algo")
    lease = (await stores.claimed()).lease
    await bench.gate(lease, "algo").evaluate(proposed("c1", *call), where(lease.run_id))
    assert [method for method, _ in asked(gate)] == ["begin_task", "evaluate"]


@pytest.mark.parametrize("point", ["agent.looked", "agent.outbox.before", "agent.11.observe", "agent.outbox.settled"])
async def test_killed_around_the_look_the_next_attempt_shows_it_all_the_same_and_once(
    stores: Stores, bench: Bench, gate: FakeGate, replacing: Proposed, point: str
) -> None:
    await stores.accepted(text="escribe x en a.txt")
    lease = (await stores.claimed()).lease
    with dies_at(point), pytest.raises(Died):
        await bench.gate(lease, "escribe x en a.txt").evaluate(replacing, where(lease.run_id))
    assert gate.asked_in == []
    again = (await stores.claimed()).lease
    await bench.gate(again, "escribe x en a.txt").evaluate(replacing, where(lease.run_id))
    assert list(looked(gate)) == ["c1.info"]
    assert gate.asked_in == [("c1", "task_0")]


async def test_what_a_call_that_has_begun_wrote_itself_is_not_shown_as_what_it_replaces(
    stores: Stores, bench: Bench, gate: FakeGate, replacing: Proposed
) -> None:
    await stores.accepted(text="escribe x en a.txt")
    lease = (await stores.claimed()).lease
    ledger = stores.ledger(lease)
    await ledger.propose(replacing, plan_step="s1")
    bound = BoundCall("write_file", "v1", replacing.canonical_args, replacing.args_hash)
    await ledger.start("c1", execution_id="ex_c1", effect_key="k", bound=bound)
    await bench.gate(lease, "escribe x en a.txt").evaluate(replacing, where(lease.run_id))
    assert looked(gate) == {}


async def test_a_look_riskgate_does_not_take_stops_the_call_it_belongs_to(
    stores: Stores, bench: Bench, gate: FakeGate, replacing: Proposed
) -> None:
    await stores.accepted(text="escribe x en a.txt")
    lease = (await stores.claimed()).lease
    turn = bench.gate(lease, "escribe x en a.txt")
    gate.down.add("observe")
    with pytest.raises(GateUnavailableError):
        await turn.evaluate(replacing, where(lease.run_id))
    gate.down.clear()
    assert gate.asked_in == []
    await turn.evaluate(replacing, where(lease.run_id))
    assert list(looked(gate)) == ["c1.info"]
