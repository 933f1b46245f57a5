"""The agent's service when other services are unavailable, and at its limits: bad input, paging, backlogs."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from langsmith.utils import get_env_var, tracing_is_enabled
from phylactery.agent.v1 import chat_pb2, run_pb2, run_pb2_grpc
from phylactery_agent.app import build_agent
from phylactery_agent.graph.secured.nodes import finalizer as finalizer_module
from phylactery_agent.runtime.dispatch.process_registry import LOCK_FILE
from phylactery_agent.settings import AgentSettings
from phylactery_chassis.errors import StartError, StoreFull
from phylactery_memory.transcript.store import MessageStore
from phylactery_riskgate.decisions.evaluate import Evaluation
from phylactery_riskgate.decisions.redeem import Redemptions

from tests.support.agent.process import AgentProcess
from tests.support.agent.system import DONE, FAILED, SUSPENDED, Person, System, approval_of, refused

AT_ONCE_SECONDS = 8.0
"""Well below the bound of one call: somebody waits for the answer. It is two seconds where the machine is free."""
START_REFUSED = 2
"""The exit code of a program that says in one sentence why it cannot start."""
WRITE = 'escribe "hola" en notas.txt'
APPEND = 'añade "línea" a lista.txt'


def outcomes(system: System) -> list[tuple[str, str]]:
    """Return how each outcome for RiskGate stands, and why it was refused."""
    with closing(sqlite3.connect(system.folder / "agent" / "agent.db")) as database:
        return database.execute("SELECT state, refusal FROM agent_outbox WHERE kind = 'outcome'").fetchall()


@pytest.mark.slow
async def test_without_riskgate_nothing_is_taken_in_and_the_next_turn_works(system: System, ana: Person) -> None:
    await system.stop("riskgate")
    async with asyncio.timeout(AT_ONCE_SECONDS):
        with pytest.raises(aio.AioRpcError, match="RiskGate does not answer, so nothing was done"):
            await ana.say(WRITE)
    await system.come_back("riskgate")
    assert (await ana.say(WRITE)).run.status == SUSPENDED
    assert not system.sandbox.joinpath("notas.txt").exists()


@pytest.mark.slow
async def test_without_riskgate_a_waiting_approval_keeps_waiting_and_is_told_without_its_code(
    system: System, ana: Person
) -> None:
    asked = await ana.say(APPEND)
    approval_id, code = approval_of(asked)
    await system.stop("riskgate")
    tried = await ana.say(f"APROBAR {approval_id} {code}")
    assert (tried.run.status, tried.run.reason) == (SUSPENDED, "GATE_UNAVAILABLE")
    assert (tried.pending_approval.approval_id, tried.pending_approval.code) == (approval_id, "")
    assert await system.agent.watcher.poll_once() == 0
    await system.come_back("riskgate")
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


@pytest.mark.slow
async def test_without_memory_the_turn_goes_on_degraded_says_so_and_nothing_is_lost(
    system: System, ana: Person
) -> None:
    await ana.say("hola")
    await system.stop("memory")
    events = await ana.stream("repite esto", request_id="request-degraded")
    assert [event.memory_degraded.reason for event in events if event.WhichOneof("kind") == "memory_degraded"] == [
        "MEMORY_UNAVAILABLE"
    ]
    answer = await ana.say("repite esto", request_id="request-degraded")
    assert (answer.run.status, answer.run.reason) == (DONE, "ANSWERED")
    assert answer.reply.text.startswith("esto\n\n(La memoria no está disponible")
    assert [call.status for call in answer.run.tool_calls] == ["success"]
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.transcript()
    assert refused(caught.value).reason == "MEMORY_UNAVAILABLE"
    await system.come_back("memory")
    told = await ana.stream("repite aquello")
    assert "memory_degraded" not in [event.WhichOneof("kind") for event in told]
    assert (await ana.thread()).last_run.status == DONE
    assert [text for role, text in await ana.transcript() if role == "user"] == [
        "hola",
        "repite esto",
        "repite aquello",
    ]


async def test_a_full_disk_under_memory_loses_no_message(ana: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_args: Any) -> None:
        raise StoreFull

    with monkeypatch.context() as disk:
        disk.setattr(MessageStore, "append", full)
        assert (await ana.say("repite esto")).run.status == DONE
        assert (await ana.say("repite aquello")).run.status == DONE
    assert [text for role, text in await ana.transcript() if role == "user"] == ["repite esto", "repite aquello"]


async def test_a_full_disk_under_riskgate_loses_no_outcome_and_is_as_one_that_does_not_answer(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await ana.say(APPEND)
    approval_id, code = approval_of(asked)

    async def full(*_args: Any) -> None:
        raise StoreFull

    with monkeypatch.context() as disk:
        disk.setattr(Redemptions, "report_outcome", full)
        assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
        disk.setattr(Evaluation, "evaluate", full)
        answer = await ana.say(WRITE)
        assert (answer.run.status, answer.run.reason) == (FAILED, "GATE_UNAVAILABLE")
    while (told := outcomes(system)) == [("waiting", "")]:  # noqa: ASYNC110 - the service tells it when it can
        await asyncio.sleep(0.02)
    assert told == [("delivered", "")]


@pytest.mark.slow
async def test_without_memory_a_suspended_run_takes_its_approval_and_other_words_leave_it_waiting(
    system: System, ana: Person
) -> None:
    asked = await ana.say(APPEND)
    approval_id, code = approval_of(asked)
    await system.stop("memory")
    other = await ana.say("hola")
    assert (other.run.id != asked.run.id, other.run.status) == (True, DONE)
    assert "La memoria no está disponible" in other.reply.text
    assert (await ana.thread()).pending_approval.code == code
    approved = await ana.say(f"APROBAR {approval_id} {code}")
    assert (approved.run.id, approved.run.status) == (asked.run.id, DONE)
    assert "La memoria no está disponible" not in approved.reply.text
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1
    await system.come_back("memory")
    assert len(await ana.transcript()) == 6


async def test_a_caller_that_hangs_up_stops_nothing(system: System, ana: Person) -> None:
    await ana.say("hola")
    call = ana.chat.StreamMessage(
        chat_pb2.StreamMessageRequest(request_id="request-gone", thread_id="t1", text="repite hola"),
        metadata=ana.metadata,
    )
    first = await call.read()
    assert first.event.WhichOneof("kind") == "run_started"
    call.cancel()
    await system.agent.runner.idle()
    assert (await ana.thread()).last_run.status == DONE
    assert (await ana.say("repite hola", request_id="request-gone")).reply.text == "hola"


async def test_an_empty_thread_id_opens_a_new_thread(ana: Person) -> None:
    first, second = await ana.say("hola", ""), await ana.say("hola", "")
    assert first.run.thread_id != second.run.thread_id
    assert (await ana.thread(first.run.thread_id)).last_run.id == first.run.id


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"request_id": "short", "text": "hola"}, "request_id"),
        ({"request_id": "request-1" * 20, "text": "hola"}, "request_id"),
        ({"request_id": "request-1", "text": ""}, "text"),
        ({"request_id": "request-1", "text": "x" * 20_001}, "text"),
        ({"request_id": "request-1", "text": "hola", "thread_id": "no spaces"}, "thread_id"),
        ({"request_id": "request-1", "text": "hola", "language": "fr"}, "language"),
    ],
)
async def test_a_bad_message_is_refused_with_its_field(ana: Person, fields: dict[str, str], field: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.chat.SendMessage(chat_pb2.SendMessageRequest(**fields), metadata=ana.metadata)
    error = refused(caught.value)
    assert (error.code, error.reason, error.fields) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        [field],
    )


async def test_bad_questions_about_threads_and_runs_are_refused(system: System, ana: Person) -> None:
    await ana.say("hola")
    runs = run_pb2_grpc.RunServiceStub(system.agent_channel)
    calls = [
        ana.chat.GetThread(chat_pb2.GetThreadRequest(), metadata=ana.metadata),
        ana.chat.ListMessages(chat_pb2.ListMessagesRequest(thread_id="t1", page_size=501), metadata=ana.metadata),
        ana.chat.ListMessages(chat_pb2.ListMessagesRequest(thread_id="t1", page_size=-1), metadata=ana.metadata),
        ana.chat.ListMessages(chat_pb2.ListMessagesRequest(thread_id="t1", page_token="??"), metadata=ana.metadata),
        runs.GetRun(run_pb2.GetRunRequest(), metadata=ana.metadata),
    ]
    for call in calls:
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        assert refused(caught.value).reason == "INVALID_REQUEST"


async def test_the_transcript_pages_from_the_newest(ana: Person) -> None:
    for number in range(3):
        await ana.say(f"repite {number}")
    request = chat_pb2.ListMessagesRequest(thread_id="t1", page_size=4)
    first = await ana.chat.ListMessages(request, metadata=ana.metadata)
    request.page_token = first.next_page_token
    second = await ana.chat.ListMessages(request, metadata=ana.metadata)
    sequences = [message.sequence for message in [*first.messages, *second.messages]]
    assert sequences == [6, 5, 4, 3, 2, 1]
    assert second.next_page_token == ""


async def test_a_second_agent_on_the_same_folder_refuses_to_start(system: System) -> None:
    settings = AgentSettings(data_dir=system.folder / "agent", port=0)
    with pytest.raises(StartError, match="another agent"):
        await build_agent(settings)


@pytest.mark.slow
async def test_a_second_agent_refuses_to_start_where_somebody_removed_the_lock_file(
    system: System, tmp_path: Path
) -> None:
    (system.folder / "agent" / LOCK_FILE).unlink()
    second = AgentProcess(system, system.folder / "agent", AGENT_LOG_LEVEL="INFO")
    assert second.child.wait(60) == START_REFUSED
    beside = tmp_path / "beside"
    other = AgentProcess(system, beside, AGENT_DATABASE_URL=f"sqlite:///{system.folder / 'agent' / 'agent.db'}")
    assert other.child.wait(60) == START_REFUSED
    assert not second.ready.exists()
    assert not other.ready.exists()


async def test_the_state_of_ended_runs_does_not_pile_up(system: System, ana: Person) -> None:
    def kept() -> list[int]:
        with closing(sqlite3.connect(system.folder / "agent" / "agent.db")) as connection:
            tables = ("agent_checkpoints", "agent_checkpoint_blobs", "agent_checkpoint_writes")
            return [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables]

    approval_id, code = approval_of(await ana.say(WRITE))
    assert kept()[0] > 0
    await ana.say(f"APROBAR {approval_id} {code}")
    await ana.say("repite hola", "t2")
    await system.agent.runner.idle()
    assert kept() == [0, 0, 0]


async def test_a_tracing_variable_of_the_graphs_library_sends_nothing_anywhere(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    get_env_var.cache_clear()
    seen: list[bool | str] = []
    real = finalizer_module.talk_text

    def noted(*args: Any, **params: Any) -> str:
        seen.append(tracing_is_enabled())
        return real(*args, **params)

    monkeypatch.setattr(finalizer_module, "talk_text", noted)
    assert tracing_is_enabled()
    await ana.say("hola")
    monkeypatch.undo()
    get_env_var.cache_clear()
    assert seen == [False]
