"""Answers that go on with one more request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2
from phylactery_agent.rules.going_on import split_answer
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.agent.system import DONE, System, open_system
from tests.support.cases import each_case

TOOLS = ToolRegistry()


@pytest.mark.parametrize(
    ("text", "answer", "rest"),
    [
        ("Yes. What time is it?", "Yes", "What time is it?"),
        ("yes, what time is it?", "yes", "what time is it?"),
        ("No. List my files", "No", "List my files"),
        ("sí. ¿qué recordatorios tengo?", "sí", "¿qué recordatorios tengo?"),
        ("yes. read notes.txt", "yes", "read notes.txt"),
        ("yes! search for milk", "yes", "search for milk"),
    ],
)
def test_an_answer_may_go_on_with_a_simple_request(text, answer, rest):
    assert split_answer(text, TOOLS) == (answer, rest)


@each_case(
    "text",
    [
        "yes",
        "yes, but make it 5",
        "no, read b.txt",
        "yes, read b.txt",
        "No. Read b.txt",
        "yes. read it",
        "yes. write hello to a.txt",
        "yes. delete a.txt",
        "no. at 5",
        "yes. what time is it? and write hello to a.txt",
        "maybe. what time is it?",
        "what time is it? yes.",
        "yes. " + "x" * 400,
        "ok, what time is it?",
        "Vale, qué hora es",
        "venga, lista mis archivos",
        "k, what time is it",
        "claro, lista mis recordatorios",
        "ok. list my files",
        "Vale. lee plan.md",
        "dale, qué hora es",
    ],
)
def test_what_may_be_a_correction_or_does_more_is_not_split(text):
    assert split_answer(text, TOOLS) is None


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path, asks=True) as system:
        yield system


async def test_both_are_done_once_as_two_turns(asking):
    ana = asking.person()
    card = (await ana.say('write "hello" to a.txt')).pending_approval
    assert card.tool == "write_file"
    shown = [chat_pb2.ShownApproval(approval_id=card.approval_id, args_hash=card.args_hash)]
    for _ in range(2):  # sent again, it is the same
        turn = await ana.say("Yes. List my files", request_id="request-0001", shown_approvals=shown)
        assert turn.run.status == DONE
        assert "a.txt" in turn.reply.text
    assert (asking.sandbox / "a.txt").read_text(encoding="utf-8") == "hello"
    assert [text for role, text in await ana.transcript() if role == "user"].count("List my files") == 1


async def test_where_nothing_shown_waits_nothing_is_split(asking):
    ana = asking.person()
    await ana.say('write "hello" to a.txt')
    shown = [chat_pb2.ShownApproval(approval_id="ap_" + "a" * 26, args_hash="sha256:" + "0" * 64)]
    await ana.say("Yes. List my files", shown_approvals=shown)
    assert not (asking.sandbox / "a.txt").exists()
