"""Model prompts are inspected before they are sent, in every graph; without inspection nothing is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery_agent.llm_client.request import Question
from phylactery_agent.ports import GateRefusedError, Inspected, ModelUnavailableError
from phylactery_agent.runtime.turn.model_session import ShownInspection
from phylactery_chassis.util.ids import new_id

from tests.support.agent.inspector import LocalInspector
from tests.support.agent.system import DONE, Person, System, open_system
from tests.support.servers.model_server import ModelServer, calls, model_server, says

KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
OTHER = "ghp_" + "w4Zq8Lx2Rt6Yp0Bn3Vm7Kc1Hd5Jf9Ga2Ss4D"
SYSTEM = {"role": "system", "content": "You help one person."}


def question(*messages: dict[str, Any]) -> Question:
    return Question([SYSTEM, *messages], [])


def user(*blocks: str) -> dict[str, Any]:
    return {"role": "user", "content": "\n\n".join(blocks)}


def block(text: str) -> str:
    return f"<data 1> known\n{text}\n</data 1>"


def called(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


class Narrow(LocalInspector):
    """Takes no text longer than so many characters."""

    most = 60

    async def inspect(self, text: str) -> Inspected:
        looked = await super().inspect(text)
        if len(text) > self.most:
            raise GateRefusedError("INVALID_REQUEST", "too long")
        return looked


async def test_all_that_is_new_is_looked_at_in_one_call_and_never_again_in_the_turn() -> None:
    inspector = LocalInspector()
    shown = ShownInspection(inspector)
    first = question(user(block("a profile"), block("a memory")), {"role": "user", "content": "hola"})
    assert await shown.checked(first) == first
    assert len(inspector.looked_at) == 1
    assert await shown.checked(first) == first
    assert len(inspector.looked_at) == 1
    second = question(user(block("a profile"), block("a memory"), block("a result")), first.messages[2], user("otra"))
    assert await shown.checked(second) == second
    assert len(inspector.looked_at) == 2
    assert "a profile" not in inspector.looked_at[1]
    assert {"a result", "otra"} == {word for word in ("a result", "otra") if word in inspector.looked_at[1]}


async def test_our_own_instructions_cost_nothing_and_stay_as_they_are() -> None:
    inspector = LocalInspector()
    assert await ShownInspection(inspector).checked(question()) == question()
    assert inspector.looked_at == []


async def test_a_secret_is_taken_out_wherever_it_stands_and_nothing_else_changes() -> None:
    inspector = LocalInspector()
    shown = ShownInspection(inspector)
    asked = question(
        user(block("likes tea"), block(f"key {KEY} here")),
        called(f'{{"text": "{OTHER}"}}'),
        {"role": "tool", "content": f"a {KEY}", "tool_call_id": "c1"},
    )
    for _ in range(2):  # and what was taken out once is taken out again, for no further call
        checked = await shown.checked(asked)
        assert KEY not in str(checked.messages)
        assert OTHER not in str(checked.messages)
        assert checked.messages[1] == user(block("likes tea"), block("key «stripe_key» here"))
        assert checked.messages[2] == called('{"text": "«github_token»"}')
        assert checked.messages[3] == {"role": "tool", "content": "a «stripe_key»", "tool_call_id": "c1"}
        assert len(inspector.looked_at) == 1


async def test_a_secret_that_reaches_over_parts_leaves_each_where_it_was() -> None:
    begun, ended = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7x", "cR9bVqz0\n-----END RSA PRIVATE KEY-----"
    checked = await ShownInspection(LocalInspector()).checked(question(user(begun), user(ended), user("then")))
    assert [message["role"] for message in checked.messages] == ["system", "user", "user", "user"]
    assert "MIIEpAIBAAKCAQEA7x" not in str(checked.messages)
    assert checked.messages[3] == user("then")


async def test_a_part_that_ends_like_what_stands_between_parts_moves_no_other() -> None:
    asked = question(user("one\n\n\x1e"), called('{"a": "b"}'), user("\x1e\n\ntwo"))
    assert await ShownInspection(LocalInspector()).checked(asked) == asked


async def test_arguments_a_redaction_breaks_are_none() -> None:
    class Tearing(LocalInspector):
        async def inspect(self, text: str) -> Inspected:
            return Inspected(text.replace('secret"', "«password»"), ("password",))

    checked = await ShownInspection(Tearing()).checked(question(called('{"a": "secret"}')))
    assert checked.messages[1] == called("{}")


async def test_what_is_too_much_at_once_is_looked_at_part_by_part() -> None:
    shown = ShownInspection(Narrow())
    asked = question(*(user("x" * 40 + str(place)) for place in range(3)), user(f"k {KEY}"))
    checked = await shown.checked(asked)
    assert checked.messages[1:4] == asked.messages[1:4]
    assert checked.messages[4] == user("k «stripe_key»")


@pytest.mark.parametrize("inspector", [LocalInspector(available=False), Narrow()])
async def test_what_nobody_looked_at_never_goes_out(inspector: LocalInspector) -> None:
    shown = ShownInspection(inspector)
    for _ in range(2):
        with pytest.raises(ModelUnavailableError, match="MODEL_NOT_INSPECTED"):
            await shown.checked(question(user("short"), user("x" * 80)))


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture(params=["secured", "react"])
async def thinking(request: pytest.FixtureRequest, tmp_path: Path, endpoint: ModelServer) -> AsyncIterator[System]:
    """The three services with a model, and one of both graphs."""
    options: dict[str, Any] = {"model_base_url": endpoint.url, "model": "test-model", "model_attempts": 1}
    async with open_system(tmp_path, graph=request.param, **options) as opened:
        yield opened


async def told_to_memory(system: System, person: Person, text: str) -> None:
    """Put a message into the transcript past the agent's edge, as another client of memory may."""
    stub = memory_pb2_grpc.MemoryServiceStub(system.memory_channel)
    told = memory_pb2.Message(message_id=new_id("m"), role=memory_pb2.ROLE_USER, content=text)
    request = memory_pb2.AppendMessagesRequest(thread_id="t1", messages=[told])
    await stub.AppendMessages(request, metadata=person.metadata, timeout=60)


async def test_a_secret_in_what_was_said_before_reaches_no_model(thinking: System, endpoint: ModelServer) -> None:
    ana = thinking.person("ana")
    await told_to_memory(thinking, ana, f"mi clave es {KEY} y me gusta el té")
    endpoint.script(calls(("echo", {"text": "eso"})), says("Dijiste que te gusta el té."))
    answer = await ana.say("¿qué dije antes? repítelo")
    assert answer.run.status == DONE
    assert len(endpoint.asked) == 2
    for asked in endpoint.asked:
        assert "me gusta el té" in str(asked.messages), "it is shown, without what is secret in it"
        assert "«stripe_key»" in str(asked.messages)
        assert KEY not in str(asked.body)


@pytest.mark.slow
async def test_without_riskgate_nothing_goes_to_a_model_and_the_person_is_told(
    thinking: System, endpoint: ModelServer
) -> None:
    ana = thinking.person("ana")
    await thinking.stop("riskgate")
    answer = await ana.say("hola")  # every word of it is known, so the edge takes it in all the same
    assert endpoint.asked == []
    assert "No he podido comprobar lo que iba a enseñarle al modelo, así que sigo sin él." in answer.reply.text
    await thinking.come_back("riskgate")
    endpoint.script(says("Hola, Ana."))
    assert "Hola, Ana." in (await ana.say("hola")).reply.text
