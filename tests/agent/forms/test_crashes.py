"""An agent killed around the submission of a form: what was agreed to happens once, and the form ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from phylactery.agent.v1 import chat_pb2, form_pb2, form_pb2_grpc
from phylactery_agent.tools.named_folders import person_folder
from phylactery_forms.definitions.reading import read_forms
from phylactery_forms.definitions.submissions import submissions_section
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from tests.support.agent.process import AgentProcess
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
submit: {tool: write_file, args: {path: "desk.txt", content: "{seats} seats", append: true}}
"""
POINTS = (
    "agent.inbox.before", "agent.5", "agent.claim.before", "agent.claim", "agent.6", "agent.7", "agent.8",
    "agent.write_file.noted", "agent.write_file.kept", "agent.write_file.renamed", "agent.9", "agent.10",
    "agent.write.before", "agent.write", "agent.write#2",
)  # fmt: skip


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    (tmp_path / "forms").mkdir()
    (tmp_path / "forms" / "desk.yaml").write_text(FORM)
    bundle = tmp_path / "bundle"
    shutil.copytree(default_bundle_folder(), bundle)
    with (bundle / "tools.yaml").open("a", encoding="utf-8") as catalog:
        catalog.write(submissions_section(read_forms(tmp_path / "forms").values()))
    async with open_system(tmp_path, bundle=bundle) as opened:
        yield opened


@pytest.mark.parametrize("point", POINTS)
async def test_a_form_is_submitted_once_wherever_the_agent_is_killed(system: System, point: str) -> None:
    folder, forms = system.folder / "killed", str(system.folder / "forms")
    first = AgentProcess(system, folder, AGENT_FORMS_DIR=forms)
    ana = system.through(await first.channel(), system.person())
    await ana.say("i want a desk")
    review = await ana.say("4")
    assert review.run.status == SUSPENDED
    first.end()

    pending = review.pending_approval
    shown = [chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)]
    dying = AgentProcess(system, folder, point, AGENT_FORMS_DIR=forms)
    ana = system.through(await dying.channel(), ana)
    with pytest.raises(aio.AioRpcError) as gone:
        await ana.say("yes", request_id="request-yes", shown_approvals=shown)
    assert gone.value.code() is StatusCode.UNAVAILABLE
    assert await asyncio.to_thread(dying.child.wait, 60) == -9, "it died somewhere else"

    last = AgentProcess(system, folder, AGENT_FORMS_DIR=forms)
    channel = await last.channel()
    ana = system.through(channel, ana)
    sent = await ana.say("yes", request_id="request-yes", shown_approvals=shown)
    assert (sent.run.status, sent.reply.text) == (DONE, "Thank you, “Desk” is complete.")
    written = person_folder(folder / "sandbox", "acme", "ana") / "desk.txt"
    assert written.read_text() == "4 seats\n"
    asked = form_pb2.GetFormStateRequest(thread_id="t1")
    state = await form_pb2_grpc.FormServiceStub(channel).GetFormState(asked, metadata=ana.metadata, timeout=60)
    assert state.state.status == form_pb2.FORM_STATUS_SUBMITTED
    last.end()
