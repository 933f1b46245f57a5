"""An agent killed around the submission of a form: what was agreed to happens once, and the form ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from grpc import StatusCode, aio
from phylactery.agent.v1 import chat_pb2, form_pb2, form_pb2_grpc
from phylactery_chassis.util.ids import new_id

from tests.support.agent.process import MortalAgent
from tests.support.agent.system import DONE, SUSPENDED, System, open_system

pytestmark = pytest.mark.slow

FORM = """
id: desk
version: 1
title: {es: Puesto, en: Desk}
description: {es: Pide un puesto., en: Asks for a desk.}
triggers: {es: [quiero un puesto], en: [i want a desk]}
fields:
  - id: seats
    type: number
    label: {es: sitios, en: seats}
    ask: {es: "¿Cuántos sitios?", en: "How many seats?"}
submit: true
"""
POINTS = (
    "agent.inbox.before", "agent.5", "agent.claim.before", "agent.claim", "agent.6", "agent.7", "agent.8",
    "agent.submit_form.stored", "agent.9", "agent.10",
    "agent.write.before", "agent.write", "agent.write#2",
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agents(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[System, MortalAgent]]:
    folder = tmp_path_factory.mktemp("crashes")
    (folder / "forms").mkdir()
    (folder / "forms" / "desk.yaml").write_text(FORM)
    async with open_system(folder) as opened:
        agent = MortalAgent(opened, AGENT_FORMS_DIR=str(folder / "forms"))
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
@pytest.mark.parametrize("point", POINTS)
async def test_a_form_is_submitted_once_wherever_the_agent_is_killed(
    mortal: tuple[System, MortalAgent], point: str
) -> None:
    (system, agent), tenant = mortal, new_id("tenant")
    ana = system.through(await agent.channel(), system.person("ana", tenant))
    await ana.say("i want a desk")
    review = await ana.say("4")
    assert review.run.status == SUSPENDED

    pending = review.pending_approval
    shown = [chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)]
    await agent.crash_at(point)
    with pytest.raises(aio.AioRpcError) as gone:
        await ana.say("yes", request_id="request-yes", shown_approvals=shown)
    assert gone.value.code() is StatusCode.UNAVAILABLE
    assert await agent.died()

    channel = await agent.channel()
    ana = system.through(channel, ana)
    sent = await ana.say("yes", request_id="request-yes", shown_approvals=shown)
    assert (sent.run.status, sent.reply.text) == (DONE, "Thank you, “Desk” is complete.")
    assert await ana.submitted() == [{"seats": "4"}]
    asked = form_pb2.GetFormStateRequest(thread_id="t1")
    state = await form_pb2_grpc.FormServiceStub(channel).GetFormState(asked, metadata=ana.metadata, timeout=60)
    assert state.state.status == form_pb2.FORM_STATUS_SUBMITTED
