"""An agent killed between an effect of low stakes and its line, and within an undo: told once, taken back whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from grpc import aio
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_chassis.util.ids import new_id

from tests.support.agent.process import MortalAgent
from tests.support.agent.system import DONE, System, open_system
from tests.support.riskgate.low_stakes_bundle import runs_low_stakes

pytestmark = pytest.mark.slow

BEFORE_LINE = ("agent.7", "agent.8", "agent.write_file.renamed", "agent.9", "agent.10", "agent.write.before#3")
IN_UNDO = (
    "agent.7",
    "agent.8",
    "agent.undo.taken",
    "agent.write_file.kept",
    "agent.write_file.renamed",
    "agent.undo.restored",
    "agent.undo.restored#2",
    "agent.undo.restored#3",
    "agent.undo.settled",
    "agent.undo.settled#3",
    "agent.9",
    "agent.10",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agents(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[System, MortalAgent]]:
    folder = tmp_path_factory.mktemp("crashes")
    async with open_system(folder, bundle=runs_low_stakes(folder / "bundle")) as opened:
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
@pytest.mark.parametrize("point", BEFORE_LINE)
async def test_the_line_is_told_wherever_the_agent_is_killed_before_it(
    mortal: tuple[System, MortalAgent], point: str
) -> None:
    (system, agent), tenant = mortal, new_id("tenant")
    ana = system.through(await agent.channel(), system.person("ana", tenant))
    await agent.crash_at(point)
    with pytest.raises(aio.AioRpcError):
        await ana.say('append "one line" to a.txt', request_id="request-0001")
    assert await agent.died()
    ana = system.through(await agent.channel(), ana)
    answer = await ana.say('append "one line" to a.txt', request_id="request-0001")
    assert answer.run.status == DONE
    assert answer.reply.text.endswith("I also wrote to “a.txt”. “undo” takes it back.")
    file = make_person_folder(agent.folder / "sandbox", tenant, "ana") / "a.txt"
    assert file.read_text() == "one line\n"
    assert "“undo”" not in (await ana.say("hello")).reply.text


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("point", IN_UNDO)
async def test_an_undo_is_whole_wherever_the_agent_is_killed_in_it(
    mortal: tuple[System, MortalAgent], point: str
) -> None:
    (system, agent), tenant = mortal, new_id("tenant")
    file = make_person_folder(agent.folder / "sandbox", tenant, "ana") / "a.txt"
    file.write_text("mine")
    ana = system.through(await agent.channel(), system.person("ana", tenant))
    reminded = "remind me tomorrow at 9 am to call the bank"
    await ana.say(f'read a.txt; remember that I prefer tea; {reminded}; write "other" to a.txt')
    assert file.read_text() == "other"
    await agent.crash_at(point)
    with pytest.raises(aio.AioRpcError):
        await ana.say("undo", request_id="request-undo")
    assert await agent.died()
    ana = system.through(await agent.channel(), ana)
    answer = await ana.say("undo", request_id="request-undo")
    assert answer.run.status == DONE
    assert file.read_text() == "mine"
    assert "call the bank" not in (await ana.say("what reminders do I have?")).reply.text
    assert "tea" not in (await ana.say("what do you remember about tea?")).reply.text
    await ana.say("undo")
    assert file.read_text() == "mine"  # nothing is left to take back


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("point", ["agent.write_file.kept", "agent.write_file.renamed", "agent.9", "agent.10"])
async def test_what_was_undone_by_its_name_is_not_meant_again_wherever_the_agent_is_killed(
    mortal: tuple[System, MortalAgent], point: str
) -> None:
    (system, agent), tenant = mortal, new_id("tenant")
    folder = make_person_folder(agent.folder / "sandbox", tenant, "ana")
    ana = system.through(await agent.channel(), system.person("ana", tenant))
    await ana.say('write "one" to a.txt')
    await ana.say('write "two" to b.txt')
    await agent.crash_at(point)
    with pytest.raises(aio.AioRpcError):
        await ana.say("undo the last change to b.txt", request_id="request-undo")
    assert await agent.died()
    ana = system.through(await agent.channel(), ana)
    assert (await ana.say("undo the last change to b.txt", request_id="request-undo")).run.status == DONE
    assert [one.name for one in folder.iterdir()] == ["a.txt"]
    assert (await ana.say("undo")).run.status == DONE
    assert list(folder.iterdir()) == []
