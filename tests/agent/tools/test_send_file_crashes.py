"""An agent killed around the sending of a file: the file is sent once, as it was permitted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from grpc import StatusCode, aio
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_chassis.util.ids import new_id

from tests.support.agent.process import MortalAgent
from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system

pytestmark = pytest.mark.slow

POINTS = ("agent.5", "agent.claim", "agent.6", "agent.7", "agent.8", "agent.send_file.sent", "agent.9", "agent.10")
CHANGED = ("agent.6", "agent.8", "agent.send_file.sent")
WAYS = [*((point, False) for point in POINTS), *((point, True) for point in CHANGED)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agents(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[System, MortalAgent]]:
    async with open_system(tmp_path_factory.mktemp("crashes"), asks=True) as opened:
        agent = MortalAgent(opened)
        yield opened, agent
        agent.leave()


@pytest.fixture
def mortal(request: pytest.FixtureRequest, agents: tuple[System, MortalAgent]) -> Iterator[tuple[System, MortalAgent]]:
    """The services that the tests share; what a failed one left is not used any more."""
    before = request.session.testsfailed
    yield agents
    if request.session.testsfailed != before:
        agents[1].leave()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("point", "changes"), WAYS)
async def test_a_file_is_sent_once_wherever_the_agent_is_killed(
    mortal: tuple[System, MortalAgent], point: str, changes: bool
) -> None:
    (system, agent), tenant = mortal, new_id("tenant")
    file = make_person_folder(agent.folder / "sandbox", tenant, "ana") / "a.txt"
    file.write_text("permitted")
    ana = system.through(await agent.channel(), system.person("ana", tenant))
    asked = await ana.say("send me a.txt")
    assert asked.run.status == SUSPENDED

    pending = asked.pending_approval
    shown = [chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)]
    await agent.crash_at(point)
    with pytest.raises(aio.AioRpcError) as gone:
        await ana.say("yes", request_id="request-yes", shown_approvals=shown)
    assert gone.value.code() is StatusCode.UNAVAILABLE
    assert await agent.died()
    if changes:
        file.write_text("something else")

    ana = system.through(await agent.channel(), ana)
    answered = await ana.say("yes", request_id="request-yes", shown_approvals=shown)
    assert changes or answered.run.status == DONE
    sent = await sent_until(ana, answered.last_sequence)
    assert len(sent) <= 1
    assert changes or len(sent) == 1
    for one in sent:
        call = ana.chat.FetchFile(
            chat_pb2.FetchFileRequest(thread_id="t1", file_id=one.file_id), metadata=ana.metadata, timeout=60
        )
        if changes:
            with pytest.raises(aio.AioRpcError) as refused:
                await call.read()
            assert refused.value.code() is StatusCode.FAILED_PRECONDITION
        else:
            assert b"".join([part.data async for part in call]) == b"permitted"


async def sent_until(ana: Person, sequence: int) -> list[event_pb2.SentFile]:
    """Return the files that were sent up to an event of the thread."""
    watch = ana.chat.WatchThread(chat_pb2.WatchThreadRequest(thread_id="t1"), metadata=ana.metadata, timeout=60)
    found = []
    async for response in watch:
        if response.event.HasField("file"):
            found.append(response.event.file)
        if response.event.sequence >= sequence:
            break
    watch.cancel()
    return found
