"""Erasing a user at the agent: no trace in any file, nothing open at RiskGate, no return, others unaffected."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import shutil
import signal
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.agent.v1 import privacy_pb2, privacy_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_agent.runtime.effects import ledger
from phylactery_agent.runtime.privacy import erase_user
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureCounts, ErasureStore, of_user
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.storage.schema import METADATA
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.util.ids import new_id

from tests.support.agent.bench import Bench
from tests.support.agent.process import AgentProcess
from tests.support.agent.stores import BOUND, Stores, call
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, refused
from tests.support.agent.threads import delete

Code = grpc.StatusCode
MARK = "zarzuela"
"""A word nobody else says."""
APPEND = f'añade "{MARK}" a lista.txt'
ENDS_SECONDS = 60.0


async def erase(
    channel: aio.Channel, metadata: Any, *, subject: str = "", request_id: str = "erase-me-1"
) -> privacy_pb2.Erasure:
    stub = privacy_pb2_grpc.PrivacyServiceStub(channel)
    request = privacy_pb2.EraseUserRequest(subject=subject, request_id=request_id)
    return (await stub.EraseUser(request, metadata=metadata, timeout=ENDS_SECONDS)).erasure


async def fill(person: Person, mark: str = MARK) -> str:
    """Say something in two threads, read a file, and leave an approval waiting; return its id.

    What was said is sealed in the agent's files; the mark is found in them by the id of the request.
    """
    await person.say(f"repite {mark}", "t1", request_id=new_id(mark))
    await person.say("hola", "t1")
    asked = await person.say(f'añade "{mark}" a lista.txt', "t2")
    assert asked.run.status == SUSPENDED
    return approval_of(asked)[0]


def files_with(folder: Path, *texts: str) -> list[str]:
    """Return which files of the agent hold one of the texts; what a tool wrote for the user is not among them."""
    wanted = [text.encode() for text in texts]
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sandbox" not in path.parts and any(text in path.read_bytes() for text in wanted)
    ]


async def state_of(system: System, person: Person, approval_id: str) -> int:
    request = approval_pb2.GetApprovalRequest(approval_id=approval_id)
    return (await person.approvals.GetApproval(request, metadata=person.metadata)).approval.state


async def threads_of(system: System, person: Person, *names: str) -> list[str]:
    """Return which of the threads the agent knows."""
    known = []
    for name in names:
        try:
            known.append((await person.thread(name)).id)
        except aio.AioRpcError as error:
            assert refused(error).reason == "THREAD_NOT_FOUND"  # noqa: PT017 - any other failure is one
    return known


async def gone(system: System, person: Person) -> None:
    """Wait until the agent knows none of the person's threads."""
    async with asyncio.timeout(ENDS_SECONDS):
        while await threads_of(system, person, "t1", "t2"):  # noqa: ASYNC110 - it happens behind an RPC
            await asyncio.sleep(0.02)


async def forgotten(folder: Path) -> None:
    """Wait until no file holds the user's words any more."""
    async with asyncio.timeout(ENDS_SECONDS):
        while files_with(folder, MARK):  # noqa: ASYNC110 - it happens in another task
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_everything_of_a_user_goes_and_everything_of_others_stays(system: System, ana: Person) -> None:
    ben, twin = system.person("ben"), system.person("ana", "other")
    approval_id, code = approval_of(await ana.say(f'escribe "hola" en {MARK}.txt', "t2"))
    assert (await ana.say(f"APROBAR {approval_id} {code}", "t2")).run.status == DONE
    waiting = await fill(ana)
    theirs = [await fill(other, "organillo") for other in (ben, twin)]
    folder = system.folder / "agent"
    assert "agent.db-wal" in files_with(folder, MARK)
    erasure = await erase(system.agent_channel, ana.metadata)
    counts = {field.name: value for field, value in erasure.counts.ListFields()}
    assert counts.pop("events") > 10
    assert counts.pop("checkpoints") > 1
    assert counts.pop("parcels") >= 3
    assert counts == {"threads": 2, "runs": 4, "turns": 5, "tool_calls": 3, "files": 1}
    assert system.written(f"{MARK}.txt") == []
    assert files_with(folder, MARK) == []
    assert await state_of(system, ana, waiting) == types_pb2.APPROVAL_STATE_CANCELLED
    assert await threads_of(system, ana, "t1", "t2") == []
    for other, approval_id in zip((ben, twin), theirs, strict=True):
        assert await threads_of(system, other, "t1", "t2") == ["t1", "t2"]
        assert await state_of(system, other, approval_id) == types_pb2.APPROVAL_STATE_PENDING
    assert files_with(folder, "organillo")


async def test_the_receipt_proves_itself_names_nobody_and_is_shown_to_the_user_and_an_operator(
    system: System, ana: Person
) -> None:
    await fill(ana)
    erasure = await erase(system.agent_channel, ana.metadata)
    assert erasure.receipt_hash == "sha256:" + hashlib.sha256(erasure.receipt.encode()).hexdigest()
    told = f"{erasure.salt}\0acme\0ana".encode()
    assert erasure.subject_hash == "sha256:" + hashlib.sha256(told).hexdigest()
    assert json.loads(erasure.receipt)["counts"]["threads"] == erasure.counts.threads == 2
    stub = privacy_pb2_grpc.PrivacyServiceStub(system.agent_channel)
    request = privacy_pb2.GetErasureRequest(erasure_id=erasure.erasure_id)
    assert (await stub.GetErasure(request, metadata=ana.metadata)).erasure == erasure
    operator = Principal("olga", "acme", frozenset({Role.CALLER, Role.OPERATOR}))
    assert (await system.agent.privacy.get(operator, erasure.erasure_id)).receipt == erasure.receipt
    for stranger in (system.person("ben"), system.person("ana", "other")):
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.GetErasure(request, metadata=stranger.metadata)
        assert (refused(caught.value).code, refused(caught.value).reason) == (Code.NOT_FOUND, "ERASURE_NOT_FOUND")


@pytest.mark.slow
async def test_the_same_request_is_the_same_erasure_and_what_comes_later_is_kept(system: System, ana: Person) -> None:
    await fill(ana)
    first = await erase(system.agent_channel, ana.metadata)
    assert (await ana.say("repite hola", "t1")).reply.text == "hola"
    assert await erase(system.agent_channel, ana.metadata) == first
    assert await threads_of(system, ana, "t1", "t2") == ["t1"]
    other = await erase(system.agent_channel, ana.metadata, request_id="erase-me-2")
    assert (other.counts.threads, other.counts.turns) == (1, 1)
    at_once = await asyncio.gather(
        *(erase(system.agent_channel, ana.metadata, request_id="erase-me-3") for _ in range(5))
    )
    assert len({erasure.erasure_id for erasure in at_once}) == 1


async def test_another_person_is_erased_by_an_operator_of_the_tenant_alone(system: System, ana: Person) -> None:
    local = system.person("ana", "local")
    await fill(local)
    with pytest.raises(aio.AioRpcError) as caught:
        await erase(system.agent_channel, system.person("ben", "local").metadata, subject="ana")
    refusal = refused(caught.value)
    assert (refusal.code, refusal.reason, refusal.metadata) == (
        Code.PERMISSION_DENIED,
        "ROLE_REQUIRED",
        {"role": "operator"},
    )
    assert await threads_of(system, local, "t1", "t2") == ["t1", "t2"]
    erasure = await erase(system.agent_channel, (), subject="ana")  # 'local' of 'local', with every role
    assert (erasure.requested_by_operator, erasure.counts.threads) == (True, 2)
    assert await threads_of(system, local, "t1", "t2") == []
    assert "ana" not in (system.folder / "agent" / "erasures.jsonl").read_text()


@pytest.mark.slow
async def test_while_riskgate_is_away_nothing_goes_and_it_is_finished_when_it_is_back(
    system: System, ana: Person
) -> None:
    waiting = await fill(ana)
    await system.stop("riskgate")
    with pytest.raises(aio.AioRpcError) as caught:
        await erase(system.agent_channel, ana.metadata)
    refusal = refused(caught.value)
    assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "RISKGATE_UNAVAILABLE")
    assert await threads_of(system, ana, "t1", "t2") == ["t1", "t2"]
    await system.come_back("riskgate")
    await gone(system, ana)
    assert await state_of(system, ana, waiting) == types_pb2.APPROVAL_STATE_CANCELLED
    erasure = await erase(system.agent_channel, ana.metadata)
    assert (erasure.replayed, erasure.counts.threads) == (True, 2)
    assert files_with(system.folder / "agent", MARK) == []


async def test_an_effect_under_way_is_in_doubt_at_riskgate_and_those_who_wait_are_told(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, reports = asyncio.Event(), []
    real = ledger.queue_outcome

    async def never_recorded(*_args: Any, **_values: Any) -> None:
        ran.set()
        await asyncio.Event().wait()

    def noted(connection: Any, lease: Any, report: Any, *, now_us: int) -> None:
        reports.append(report["outcome"])
        real(connection, lease, report, now_us=now_us)

    monkeypatch.setattr(ledger.SqlLedger, "finish", never_recorded)
    monkeypatch.setattr(ledger, "queue_outcome", noted)
    asked = await ana.say(APPEND, "t1")
    approval_id, code = approval_of(asked)
    answer = f"APROBAR {approval_id} {code}"
    sent = asyncio.create_task(ana.say(answer, "t1", request_id="request-approve"))
    streamed = asyncio.create_task(ana.stream(answer, "t1", request_id="request-approve"))
    await asyncio.wait_for(ran.wait(), ENDS_SECONDS)
    erasure = await erase(system.agent_channel, ana.metadata)
    assert (erasure.counts.tool_calls, reports) == (1, ["IN_DOUBT"])
    for waiting in (sent, streamed):
        with pytest.raises(aio.AioRpcError) as caught:
            await waiting
        assert refused(caught.value).reason == "THREAD_NOT_FOUND"
    assert await state_of(system, ana, approval_id) == types_pb2.APPROVAL_STATE_REDEEMED
    monkeypatch.undo()
    assert (await ana.say("repite hola", "t1")).run.status == DONE


async def test_what_an_erasure_withdraws_is_no_turn_of_the_users(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(ana)
    real, woken = erase_user.forget_noted, []

    async def watched(*args: Any, **named: Any) -> None:
        woken.append(await system.agent.watcher.poll_once())
        await real(*args, **named)

    monkeypatch.setattr(erase_user, "forget_noted", watched)
    erasure = await erase(system.agent_channel, ana.metadata)
    assert woken == [0]
    assert (erasure.counts.runs, erasure.counts.turns) == (3, 3)


@pytest.mark.parametrize("number", range(1, 6))
async def test_a_turn_whose_write_is_under_way_leaves_no_row_behind_an_erasure(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The n-th write of the turn, its last one among them, is in the writer when the threads are held."""
    real, under_way, go, numbers = TurnWrites._run, threading.Event(), threading.Event(), itertools.count(1)

    def slow(self: TurnWrites, *given: Any) -> Any:
        if next(numbers) == number:
            under_way.set()
            assert go.wait(ENDS_SECONDS)
        return real(self, *given)

    monkeypatch.setattr(TurnWrites, "_run", slow)
    saying = asyncio.create_task(ana.say(APPEND, "t1"))
    waiting = asyncio.create_task(asyncio.to_thread(under_way.wait, ENDS_SECONDS))
    await asyncio.wait({saying, waiting}, return_when=asyncio.FIRST_COMPLETED)
    under_way.set()  # a turn with fewer writes has ended
    erasing = asyncio.create_task(erase(system.agent_channel, ana.metadata))
    await asyncio.sleep(0)
    go.set()
    await erasing
    await asyncio.gather(saying, waiting, return_exceptions=True)
    count = sa.func.count()
    for _, table, _ in of_user(Owner("acme", "ana"), ()):
        query = sa.select(count).select_from(table)
        assert system.agent.database.read_sync(lambda c, query=query: c.scalar(query)) == 0, table.name


@pytest.mark.slow
async def test_a_backup_from_before_brings_nobody_back_and_nothing_of_them_is_served(
    system: System, ana: Person, tmp_path: Path
) -> None:
    await fill(ana)
    await system.person("ben").say("repite organillo")
    await system.stop("agent")
    folder, backup = system.folder / "agent", tmp_path / "backup"
    shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("erasures.jsonl"))
    await system.start_agent()
    erasure = await erase(system.agent_channel, ana.metadata)
    await system.stop("agent")
    for path in folder.glob("*.db*"):
        path.unlink()
    shutil.copytree(backup, folder, dirs_exist_ok=True)
    assert files_with(folder, MARK)
    await system.start_agent()
    assert files_with(folder, MARK) == []
    assert await threads_of(system, ana, "t1", "t2") == []
    again = await erase(system.agent_channel, ana.metadata)
    assert (again.erasure_id, again.replayed, again.counts) == (erasure.erasure_id, True, erasure.counts)
    assert await threads_of(system, system.person("ben"), "t1") == ["t1"]


@pytest.mark.slow
async def test_a_start_erases_again_and_serves_though_a_reader_keeps_removed_words_in_the_files(
    system: System, ana: Person
) -> None:
    await fill(ana)
    await system.stop("agent")
    folder = system.folder / "agent"
    before = (folder / "agent.db").read_bytes()
    await system.start_agent()
    await erase(system.agent_channel, ana.metadata)
    await system.stop("agent")
    (folder / "agent.db").write_bytes(before)
    reader = sqlite3.connect(folder / "agent.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM agent_runs").fetchone()
    await system.start_agent()
    assert await threads_of(system, ana, "t1", "t2") == []
    assert files_with(folder, MARK) != []
    reader.execute("COMMIT")
    reader.close()
    await forgotten(folder)  # nobody has to erase anybody else for that


@pytest.mark.slow
async def test_an_erasure_that_a_reader_kept_in_the_files_is_forgotten_without_being_asked_again(
    system: System, ana: Person
) -> None:
    await fill(ana)
    folder = system.folder / "agent"
    reader = sqlite3.connect(folder / "agent.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM agent_runs").fetchone()
    with pytest.raises(aio.AioRpcError) as caught:
        await erase(system.agent_channel, ana.metadata)
    assert refused(caught.value).reason == "STORE_UNAVAILABLE"
    reader.execute("COMMIT")
    reader.close()
    await forgotten(folder)


@pytest.mark.slow
async def test_a_restored_user_is_not_served_while_riskgate_is_away(
    system: System, ana: Person, tmp_path: Path
) -> None:
    await fill(ana)
    await system.stop("agent")
    folder, backup = system.folder / "agent", tmp_path / "backup"
    shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("erasures.jsonl"))
    await system.start_agent()
    await erase(system.agent_channel, ana.metadata)
    await system.stop("agent")
    shutil.copytree(backup, folder, dirs_exist_ok=True)
    await system.stop("riskgate")
    await system.start_agent()
    held = {Owner("acme", "ana").thread_key(name) for name in ("t1", "t2")}
    assert await system.agent.runner.hold(held, by="erasures") == frozenset()  # held already
    await system.come_back("riskgate")
    await gone(system, ana)
    assert (await ana.say("repite hola", "t1")).run.status == DONE


async def test_the_store_removes_one_user_alone_on_both_databases_and_only_with_every_thread_held(
    stores: Stores,
) -> None:
    ana, ben = Owner("acme", "ana"), Owner("acme", "ben")
    for owner in (ana, ben):
        await stores.accepted("request-1", "hola", owner=owner)
        claim = await stores.claimed(owner=owner)
        ledger_ = stores.ledger(claim.lease)
        await ledger_.propose(call(), plan_step="s1")
        await ledger_.start("c1", execution_id=f"ex_{owner.user_id}", effect_key=f"ek_{owner.user_id}", bound=BOUND)
    store = ErasureStore(stores.database, stores.clock)
    intent = Erasure("era_1", "sha256:0", "00", "acme", False, 1, "sha256:1", ErasureCounts())  # noqa: FBT003
    assert set(await store.users()) == {ana, ben}
    assert len(await store.open_runs(ana)) == 1
    assert await store.effects(ana) == ["ek_ana"]
    await store.give_up(ana)
    assert sorted(stores.rows("agent_tool_calls", "state, execution_id")) == [
        ("in_doubt", "ex_ana"),
        ("started", "ex_ben"),
    ]
    assert stores.rows("agent_outbox", "kind, user_id") == [("outcome", "ana")]

    def done(counts: ErasureCounts) -> Erasure:
        return replace(intent, counts=counts)

    assert await store.erase(ana, (), done) is None
    removed = await store.erase(ana, {ana.thread_key("t1")}, done)
    assert removed is not None
    assert removed.erasure.counts == ErasureCounts(threads=1, runs=1, turns=1, events=1, tool_calls=1, parcels=1)
    assert len(removed.unhandled) == 1
    assert await store.users() == [ben]
    assert await store.find("sha256:1") == await store.get("era_1") == removed.erasure
    assert await store.known() == {"era_1"}
    assert stores.rows("agent_tool_calls", "execution_id") == [("ex_ben",)]


async def test_what_is_on_its_way_to_memory_is_waited_for(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, begun, go = Bench(stores), asyncio.Event(), asyncio.Event()
    real = bench.services.append

    async def slow(*parcel: Any) -> None:
        begun.set()
        await go.wait()
        await real(*parcel)

    monkeypatch.setattr(bench.services, "append", slow)
    await stores.accepted()
    await stores.end(await stores.claimed())
    key = Owner("acme", "ana").thread_key("t1")
    sending = asyncio.create_task(bench.delivery.flush("transcript", key))
    await asyncio.wait_for(begun.wait(), ENDS_SECONDS)
    quiet = asyncio.create_task(bench.delivery.quiet(key))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not quiet.done()
    go.set()
    await quiet
    assert bench.services.told == [("t1", "hola"), ("t1", "listo")]
    await sending


def test_every_table_is_a_users_or_names_nobody() -> None:
    """Whoever adds a table decides here what an erasure does with it."""
    own = {table.name for _, table, _ in of_user(Owner("acme", "ana"), ())}
    assert METADATA.tables.keys() - own == {"agent_erasures", "agent_duties", "agent_marks", "agent_escalation_queues"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["logged", "closed", "forgotten", "removed"])
async def test_an_agent_killed_in_the_middle_of_an_erasure_finishes_it_and_the_same_request_answers_it(
    system: System, ana: Person, tmp_path: Path, point: str
) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    process = AgentProcess(system, folder, f"agent.erase.{point}")
    async with await process.channel() as channel:
        chat = system.through(channel, ana)
        waiting = await fill(chat)
        with pytest.raises(aio.AioRpcError) as caught:
            await erase(channel, ana.metadata)
        assert caught.value.code() is Code.UNAVAILABLE
    assert process.child.wait(60) == -signal.SIGKILL
    assert files_with(folder, MARK)
    process = AgentProcess(system, folder)
    async with await process.channel() as channel:
        assert files_with(folder, MARK) == []
        erasure = await erase(channel, ana.metadata)
        assert (erasure.counts.threads, erasure.counts.runs) == (2, 3)
        assert erasure.replayed == (point != "removed")
        assert await state_of(system, ana, waiting) == types_pb2.APPROVAL_STATE_CANCELLED
        assert await threads_of(system, system.through(channel, ana), "t1", "t2") == []
        assert (await system.through(channel, ana).say("repite hola", "t1")).run.status == DONE
    process.end()


async def versions_of(system: System, person: Person, name: str, *contents: str) -> list[str]:
    """Let a person write a file several times; return what is kept beside the files for everybody."""
    for content in contents:
        approval_id, code = approval_of(await person.say(f'escribe "{content}" en {name}', "files"))
        assert (await person.say(f"APROBAR {approval_id} {code}", "files")).run.status == DONE
    return kept_versions(system.folder / "agent")


def kept_versions(folder: Path) -> list[str]:
    found = (folder / "journal" / "versions").rglob("*")
    return sorted(path.read_text() for path in found if path.is_file() and path.name != "changes.json")


@pytest.mark.slow
async def test_earlier_versions_of_files_go_with_the_user_who_changed_them_and_with_no_thread(
    system: System, ana: Person
) -> None:
    ben = system.person("ben")
    await versions_of(system, ana, "ana.txt", f"{MARK} 1", f"{MARK} 2")
    assert await versions_of(system, ben, "ben.txt", "organillo 1", "organillo 2") == ["organillo 1", f"{MARK} 1"]
    await delete(ana, "files")
    assert kept_versions(system.folder / "agent") == ["organillo 1", f"{MARK} 1"]
    erasure = await erase(system.agent_channel, ana.metadata)
    assert kept_versions(system.folder / "agent") == ["organillo 1"]
    assert files_with(system.folder / "agent", MARK, "ana.txt") == []
    assert (erasure.counts.files, system.written("ana.txt")) == (1, []), "a person's files go with the person"
    assert (system.sandbox_of("ben") / "ben.txt").read_text() == "organillo 2"


@pytest.mark.slow
async def test_a_backup_brings_no_version_back_of_a_user_who_has_no_thread_in_it(
    system: System, ana: Person, tmp_path: Path
) -> None:
    await versions_of(system, ana, "ana.txt", f"{MARK} 1", f"{MARK} 2")
    await delete(ana, "files")
    await system.stop("agent")
    folder, backup = system.folder / "agent", tmp_path / "backup"
    shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("erasures.jsonl"))
    await system.start_agent()
    await erase(system.agent_channel, ana.metadata)
    assert kept_versions(folder) == []
    await system.stop("agent")
    for path in folder.glob("*.db*"):
        path.unlink()
    shutil.copytree(backup, folder, dirs_exist_ok=True)
    assert kept_versions(folder) == [f"{MARK} 1"]
    assert len(system.written("ana.txt")) == 1
    await system.start_agent()
    assert (kept_versions(folder), system.written("ana.txt")) == ([], [])
