"""An attempt that did nothing uses up nothing: the run's own retry, and the person's, ask for no approval."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from phylactery_agent.adapters.memory import MemoriesAdapter, _never_sent
from phylactery_agent.ports import MemoryUnavailableError

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """The default bundle: what a person's own words ask for is not asked about."""
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    "said", ["remember that I like tea", "recuerda que mi perro se llama Nilo", "don't forget that I live in Lima"]
)
async def test_without_memory_what_is_to_be_remembered_is_tried_again_and_not_asked_about(
    system: System, ana: Person, said: str
) -> None:
    await system.stop("memory")
    answer = await ana.say(said)
    assert (answer.HasField("pending_approval"), answer.run.reason) == (False, "AWAITING_USER_INPUT"), answer.reply.text
    assert {call.error_code for call in answer.run.tool_calls} == {"MEMORY_UNAVAILABLE"}
    assert len(answer.run.tool_calls) > 1
    await system.come_back("memory")
    again = await ana.say(said)
    assert (again.run.status, again.run.tool_calls[-1].status) == (DONE, "success")


async def test_memory_is_back_at_the_second_attempt_of_the_run(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = MemoriesAdapter.write, []

    async def away_at_first(self: MemoriesAdapter, text: str, **about: Any) -> Any:
        seen.append(text)
        if len(seen) == 1:
            raise MemoryUnavailableError("not reached", sent=False)
        return await real(self, text, **about)

    monkeypatch.setattr(MemoriesAdapter, "write", away_at_first)
    answer = await ana.say("remember that I like tea")
    assert (answer.run.status, seen) == (DONE, ["I like tea", "I like tea"])


async def test_what_memory_may_have_kept_is_not_repeated_without_a_question(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost_answer(*_args: Any, **_about: Any) -> Any:
        raise MemoryUnavailableError("the answer got lost")

    monkeypatch.setattr(MemoriesAdapter, "write", lost_answer)
    assert (await ana.say("remember that I like tea")).run.status == SUSPENDED


async def test_only_a_call_without_a_connection_was_never_sent() -> None:
    def failed(code: StatusCode, details: str) -> bool:
        return _never_sent(aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details=details))

    assert failed(StatusCode.UNAVAILABLE, "failed to connect to all addresses; last error: UNKNOWN: refused")
    assert not failed(StatusCode.UNAVAILABLE, "Socket closed")
    assert not failed(StatusCode.UNAVAILABLE, "")
    assert not failed(StatusCode.DEADLINE_EXCEEDED, "failed to connect to all addresses")
    async with aio.insecure_channel("127.0.0.1:1") as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await channel.unary_unary("/x/y")(b"")
    assert _never_sent(caught.value)
