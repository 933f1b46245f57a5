"""The react graph in the real agent, with the real RiskGate and memory, and a real model endpoint on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc import aio
from phylactery_agent.graph.core.registry import SPECS
from phylactery_chassis.errors import StartError

from tests.support.agent.system import DONE, FAILED, SUSPENDED, Person, System, approval_of, open_system, refused
from tests.support.servers.model_server import ModelServer, calls, fails, malformed, says


@pytest.fixture
async def react(tmp_path: Path) -> AsyncIterator[System]:
    """The services with react as the default graph and without a model; every write is asked about."""
    async with open_system(tmp_path, asks=True, graph="react") as opened:
        yield opened


@pytest.fixture
async def modelled(tmp_path: Path, server: ModelServer) -> AsyncIterator[System]:
    """The same with a model on loopback."""
    endpoint = {"model_base_url": server.url, "model": "test-model", "model_retries": 0}
    async with open_system(tmp_path, asks=True, graph="react", **endpoint) as opened:
        yield opened


async def test_a_message_is_served_by_the_default_graph_and_the_run_says_which(react: System) -> None:
    ana = react.person()
    (react.sandbox / "notas.txt").write_text("hola mundo")
    answer = await ana.say("explica notas.txt")
    assert (answer.run.status, answer.run.graph) == (DONE, "react")
    assert answer.reply.text == "Contenido de «notas.txt»:\nhola mundo"
    assert [(step.step_id, step.status) for step in answer.run.plan_steps] == [("s1", "done"), ("s2", "done")]
    assert [call.tool for call in answer.run.tool_calls] == ["echo", "read_file"]


async def test_what_a_person_clearly_asks_for_is_done_at_once_though_echo_came_first(tmp_path: Path) -> None:
    async with open_system(tmp_path, graph="react") as system:
        ana = system.person()
        done = await ana.say('write "hello" to notes.txt')
        assert (done.run.status, done.run.reason) == (DONE, "ANSWERED")
        assert (system.sandbox / "notes.txt").read_text() == "hello"
        talked = await ana.say("hola")
        assert (talked.run.status, talked.reply.text) == (DONE, "¡Hola! ¿En qué te ayudo?")


async def test_a_thread_keeps_the_graph_it_was_opened_with(system: System, ana: Person) -> None:
    opened = await ana.say("repite hola", "t1", graph="react")
    assert opened.run.graph == "react"
    assert (await ana.say("repite adiós", "t1")).run.graph == "react"
    assert (await ana.say("repite adiós", "t2")).run.graph == "secured"
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.say("repite hola", "t1", graph="secured")
    assert (refused(caught.value).code, refused(caught.value).reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "GRAPH_CONFLICT",
    )
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.say("repite hola", "t3", graph="nobody")
    assert refused(caught.value).code is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_agent_with_a_default_graph_nobody_knows_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="AGENT_GRAPH: there is no graph 'reactor'"):
        async with open_system(tmp_path, graph="reactor"):
            pass


async def test_an_approval_of_react_survives_a_restart_and_runs_once(react: System) -> None:
    ana = react.person()
    asked = await ana.say('añade "+" a b.txt')
    assert (asked.run.status, asked.run.reason) == (SUSPENDED, "AWAITING_APPROVAL")
    await react.restart_agent()
    approval_id, code = approval_of(asked)
    done = await ana.say(f"APROBAR {approval_id} {code}")
    assert (done.run.id, done.run.status, done.run.graph) == (asked.run.id, DONE, "react")
    assert (react.sandbox / "b.txt").read_text() == "+\n"
    assert react.agent.database.read_sync(
        lambda c: {tuple(row) for row in c.exec_driver_sql("SELECT graph, graph_version FROM agent_runs")}
    ) == {("react", SPECS["react"].version)}


async def test_eight_answers_at_once_and_one_elsewhere_are_one_effect(react: System) -> None:
    ana = react.person()
    asked = await ana.say('añade "+" a b.txt')
    approval_id, code = approval_of(asked)
    answers = await asyncio.gather(
        *(ana.say(f"APROBAR {approval_id} {code}") for _ in range(8)),
        ana.approve_at_riskgate(approval_id),
        return_exceptions=True,
    )
    assert any(getattr(answer, "run", None) is not None and answer.run.status == DONE for answer in answers[:8])
    assert (react.sandbox / "b.txt").read_text() == "+\n"
    run = await ana.run(asked.run.id)
    assert [call.state for call in run.tool_calls] == ["finished", "finished"]


async def test_two_threads_wait_for_two_approvals_at_once_and_each_gets_its_own(react: System) -> None:
    ana = react.person()
    first, second = await asyncio.gather(ana.say('añade "1" a uno.txt', "t1"), ana.say('añade "2" a dos.txt', "t2"))
    crossed = await ana.say(f"APROBAR {approval_of(second)[0]} {approval_of(second)[1]}", "t1")
    assert crossed.run.status == SUSPENDED
    assert not (react.sandbox / "dos.txt").exists()
    done = await asyncio.gather(
        ana.say("APROBAR {} {}".format(*approval_of(first)), "t1"),
        ana.say("APROBAR {} {}".format(*approval_of(second)), "t2"),
    )
    assert [answer.run.status for answer in done] == [DONE, DONE]
    assert [(react.sandbox / name).read_text() for name in ("uno.txt", "dos.txt")] == ["1\n", "2\n"]


async def test_a_model_on_an_endpoint_proposes_and_answers_through_the_same_door(
    modelled: System, server: ModelServer
) -> None:
    ana = modelled.person()
    (modelled.sandbox / "notas.txt").write_text("hola mundo")
    server.script(calls(("read_file", {"path": "notas.txt"}), ("echo", {"text": "eso"})), says("Pone «hola mundo»."))
    answer = await ana.say("¿qué pone en notas.txt?")
    assert (answer.run.status, answer.run.reason) == (DONE, "ANSWERED")
    assert answer.reply.text == "Pone «hola mundo»."
    assert [call.state for call in answer.run.tool_calls] == ["finished", "finished"]
    roles = [message["role"] for message in server.asked[1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    named = [call["id"] for call in server.asked[1].messages[2]["tool_calls"]]
    assert [message["tool_call_id"] for message in server.asked[1].messages[3:]] == named


async def test_a_models_write_waits_for_a_person_and_the_model_is_not_asked_again_meanwhile(
    modelled: System, server: ModelServer
) -> None:
    ana = modelled.person()
    server.script(calls(("write_file", {"path": "b.txt", "content": "hola", "append": False})), says("Guardado."))
    asked = await ana.say("escribe hola en b.txt")
    assert (asked.run.status, len(server.asked)) == (SUSPENDED, 1)
    await modelled.restart_agent()
    modelled_again = await ana.say("APROBAR {} {}".format(*approval_of(asked)))
    assert (modelled_again.run.id, (modelled.sandbox / "b.txt").read_text()) == (asked.run.id, "hola")


@pytest.mark.slow
@pytest.mark.parametrize("answer", [fails(500), malformed()], ids=["500", "malformed"])
async def test_an_endpoint_that_fails_leaves_the_message_to_the_rules_and_says_so(
    modelled: System, server: ModelServer, answer: object
) -> None:
    server.otherwise = lambda _asked: answer  # type: ignore[assignment,return-value]
    ana = modelled.person()
    (modelled.sandbox / "notas.txt").write_text("hola mundo")
    told = await ana.say("explica notas.txt")
    assert told.run.status == DONE
    assert "hola mundo" in told.reply.text
    assert "no me responde el modelo" in told.reply.text
    assert [call.tool for call in told.run.tool_calls] == ["echo", "read_file"]


async def test_a_model_that_loops_for_ever_is_stopped_by_name(modelled: System, server: ModelServer) -> None:
    server.otherwise = lambda _asked: calls(("echo", {"text": "otra vez"}))
    answer = await modelled.person().say("no pares")
    assert (answer.run.status, answer.run.reason) == (FAILED, "REPEATED_CALL")
    assert len(server.asked) == 3
