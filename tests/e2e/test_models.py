"""The three real services with a real endpoint: a model's proposals are decided like any other, and paid once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from phylactery.agent.v1 import event_pb2, run_pb2, run_pb2_grpc
from phylactery_cli.supervisor import Stack

from tests.support.processes.stack import Person, await_death, crash_at, lines, relaunch, yes
from tests.support.servers.model_server import Exchange, ModelServer, calls, fails, hangs, model_server, says

pytestmark = pytest.mark.slow

DONE, SUSPENDED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_SUSPENDED
ASK = "append one line to log.txt"
KEY = "sk-very-secret-0123456789"
PROPOSAL = calls(("write_file", {"path": "log.txt", "content": "one line\n", "append": True}, "call_0"))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def modelled(make_stack: Callable[..., Stack], server: ModelServer) -> Stack:
    """A stack whose agent has a model, not started yet."""
    return make_stack(
        agent={
            "PHYLACTERY_MODEL_BASE_URL": server.url,
            "PHYLACTERY_MODEL": "test-model",
            "PHYLACTERY_MODEL_API_KEY": KEY,
            "AGENT_MODEL_BACKOFF_SECONDS": "0.01",
        }
    )


def conversations(server: ModelServer) -> list[str]:
    """Return every question that was asked, in its order."""
    return [repr((asked.messages, asked.tools)) for asked in server.asked]


def test_what_a_model_proposes_waits_for_a_person_and_the_key_lies_nowhere(
    modelled: Stack, server: ModelServer
) -> None:
    server.script(PROPOSAL, says("It is written."))
    modelled.start()
    with Person(modelled, "ana") as ana:
        asked = ana.say(ASK)
        assert asked.run.status == SUSPENDED
        assert lines(modelled) == []
        done = ana.say(yes(asked))
        assert (done.run.status, done.reply.text) == (DONE, "It is written.")
        assert lines(modelled) == ["one line"]
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    modelled.stop()
    files = [path for path in modelled.data_dir.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    assert any("gen_ai.request.model" in path.read_text() for path in files if path.suffix == ".jsonl")
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(("point", "paid"), [("agent.model.kept", 1), ("agent.model.answered", 2)])
def test_killed_between_a_reply_and_its_use_the_run_goes_on_and_the_effect_happens_once(
    modelled: Stack, server: ModelServer, point: str, paid: int
) -> None:
    # What reads the words is asked beside the planner and passes the same points.
    modelled.extra_env["agent"] = {**modelled.extra_env["agent"], "AGENT_INTERPRETER": "off"}
    server.script(*[PROPOSAL] * paid, says("It is written."))
    crash_at(modelled, "agent", point)
    modelled.start()
    with Person(modelled, "ana") as ana:
        ana.say_and_lose(ASK, "ask-request-1")
        await_death(modelled, "agent")
        assert len(server.asked) == 1
        relaunch(modelled, "agent")
        asked = ana.say(ASK, request_id="ask-request-1")
        assert asked.run.status == SUSPENDED
        assert len(server.asked) == paid, "a reply that is durable is paid once"
        assert len(set(conversations(server))) == 1, "the same question, whoever asks it"
        done = ana.say(yes(asked))
        assert (done.run.status, done.reply.text) == (DONE, "It is written.")
        assert lines(modelled) == ["one line"]
        assert [call.state for call in ana.run(done.run.id).tool_calls] == ["finished"]


@pytest.mark.parametrize(("point", "paid"), [("agent.model.kept", 1), ("agent.model.answered", 2)])
def test_killed_while_its_words_are_interpreted_the_run_goes_on_and_the_effect_happens_once(
    modelled: Stack, server: ModelServer, point: str, paid: int
) -> None:
    server.otherwise = lambda _asked: hangs()
    crash_at(modelled, "agent", point)
    modelled.start()
    with Person(modelled, "ana") as ana:
        ana.say_and_lose(ASK, "ask-request-1")
        await_death(modelled, "agent")
        assert len(server.interpretations) == 1
        server.script(PROPOSAL, says("It is written."))
        relaunch(modelled, "agent")
        asked = ana.say(ASK, request_id="ask-request-1")
        assert asked.run.status == SUSPENDED
        assert len(server.interpretations) == paid, "an interpretation that is durable is paid once"
        done = ana.say(yes(asked))
        assert (done.run.status, done.reply.text) == (DONE, "It is written.")
        assert lines(modelled) == ["one line"]
        assert [call.state for call in ana.run(done.run.id).tool_calls] == ["finished"]


def test_where_no_endpoint_answers_the_turn_goes_on_in_static_mode(modelled: Stack, server: ModelServer) -> None:
    server.otherwise = lambda _asked: fails(503)
    modelled.start()
    with Person(modelled, "ana") as ana:
        asked = ana.say(ASK)
        assert asked.run.status == SUSPENDED
        assert ana.say(yes(asked)).run.status == DONE
        assert lines(modelled) == ["one line"]
    assert server.asked


def test_who_cancels_a_run_does_not_wait_for_its_model(modelled: Stack, server: ModelServer) -> None:
    server.otherwise = lambda _asked: hangs()
    modelled.start()
    with Person(modelled, "ana") as ana, ThreadPoolExecutor(1) as beside:
        answer = beside.submit(ana.say, ASK)
        server.wait_until_asked()
        run = ana.standing().last_run
        stub = run_pb2_grpc.RunServiceStub(ana.channel("agent"))
        stub.CancelRun(run_pb2.CancelRunRequest(run_id=run.id), metadata=ana.metadata, timeout=60)
        assert answer.result(30).run.status == event_pb2.RUN_STATUS_CANCELLED
        assert lines(modelled) == []


@pytest.mark.parametrize(("words", "kept"), [("explain log.txt", True), ("do not store this: explain log.txt", False)])
def test_of_a_turn_that_is_not_to_be_stored_no_reply_is_kept_even_while_it_runs(
    modelled: Stack, server: ModelServer, words: str, kept: bool
) -> None:
    found: list[tuple[bytes | None, int]] = []

    def look_and_answer(exchange: Exchange) -> None:
        with sqlite3.connect(modelled.data_dir / "agent" / "agent.db") as connection:
            query = "SELECT reply, completion_tokens FROM agent_model_calls WHERE key LIKE 'plan:%'"
            found.extend(connection.execute(query).fetchall())
        says("A written word.")(exchange)

    modelled.sandbox_of("ana").mkdir(parents=True)
    (modelled.sandbox_of("ana") / "log.txt").write_text("one line\n")
    server.script(calls(("read_file", {"path": "log.txt"})), look_and_answer)
    modelled.start()
    with Person(modelled, "ana") as ana:
        assert ana.say(words).reply.text.startswith("A written word.")
    [(reply, tokens)] = found
    assert (reply is not None, tokens) == (kept, 7)
