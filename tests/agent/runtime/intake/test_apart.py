"""Messages joined into one turn that are no one request: what one asks for is done, the other is answered or named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_agent.rules.apart import read_apart
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.agent.system import DONE, Person, System, approval_of, open_system
from tests.support.cases import each_case

APPEND = 'append "x" to p.txt'
HELP = "what can you do?"
TOOLS = ToolRegistry()


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """The default bundle: what a person's own words ask for is not asked about."""
    async with open_system(tmp_path) as opened:
        yield opened


async def say_together(person: Person, *messages: str, graph: str = "") -> str:
    """Say messages that a channel joined, and return the reply.

    RiskGate, which reads all of the words, asks about a request with a question beside it: the card is answered.
    """
    text, starts = "\n".join(messages), [len("\n".join(messages[:at])) + 1 for at in range(1, len(messages))]
    answer = await person.say(text, message_starts=starts, graph=graph, language="en")
    if answer.HasField("pending_approval"):
        approval_id, code = approval_of(answer)
        assert (await person.say(f"APPROVE {approval_id} {code}")).run.status == DONE
    else:
        assert answer.run.status == DONE, answer.reply.text
    return answer.reply.text


@pytest.mark.parametrize("graph", ["secured", "react"])
@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ((APPEND, HELP), "files: read notes.txt"),
        ((HELP, APPEND), "files: read notes.txt"),
        ((APPEND, "book me a table"), "I didn't get “book me a table”"),
        ((APPEND, "what time is it?"), "UTC"),
        ((APPEND, "thanks", "what is the capital of France?"), "I didn't get “what is the capital of France?”"),
        (("I live in Oslo", APPEND, "my dog is called Toby"), ""),
    ],
)
async def test_the_half_that_is_understood_is_done_and_the_other_is_answered(
    system: System, ana: Person, messages: tuple[str, ...], told: str, graph: str
) -> None:
    reply = await say_together(ana, *messages, graph=graph)
    assert system.sandbox.joinpath("p.txt").read_text() == "x\n"
    assert told in reply
    assert f"I didn't get “{APPEND}" not in reply


@each_case(
    "other",
    [
        *("no", "wait", "not yet", "never mind the file", "undo that", "don't", "actually forget it", "or not?"),
        *("tomorrow", "at 8", "only if it rains", "twice", "but in capitals", "to q.txt", "p.txt or q.txt?"),
        *("I mean q.txt", "what about q.txt?", "and eggs", "eggs", "should I?", "is that ok?", "can you undo it?"),
        *("can you do that tomorrow?", "make it uppercase", "mañana", "o mejor en q.txt", "jaja", "do it", "why?"),
        *("don't do it if p.txt is there", "send it to nobody", "APPROVE ap_abcdef 123456"),
    ],
)
def test_what_may_be_about_the_other_is_not_read_apart(other: str) -> None:
    for text in (f"{APPEND}\n{other}", f"{other}\n{APPEND}"):
        assert read_apart(text, [text.index("\n") + 1], TOOLS) is None


def test_one_message_is_never_divided() -> None:
    assert read_apart(f"{APPEND}\n{HELP}", [], TOOLS) is None


def test_very_many_messages_are_not_tried() -> None:
    text = "\n".join([APPEND, *[HELP] * 50])
    starts = [at + 1 for at, char in enumerate(text) if char == "\n"]
    assert read_apart(text, starts, TOOLS) is None


@each_case(
    ("said", "request"),
    [
        (f"{APPEND}. I live in Oslo.", f"{APPEND}. "),
        (f"I live in Oslo\n{APPEND}", APPEND),
        (f"trabajo de enfermera. {APPEND}", APPEND),
        (f"{APPEND}. I'm allergic to nuts.", f"{APPEND}. "),
        (f"{APPEND}. I am kidding", None),
        (f"{APPEND}. I'm kidding", None),
        (f"{APPEND}. I'm waiting for the boss to agree.", None),
        (f"{APPEND}. I'm checking with Bob.", None),
        (f"{APPEND}. I'm opposed.", None),
        (f"{APPEND}. I'm a bit hesitant.", None),
        (f"{APPEND}. I don't live in Oslo", None),
        (f"{APPEND}. My boss is against it", None),
        (f"{APPEND}. My file is q.txt", None),
        (f"{APPEND}. I work tomorrow at 8", None),
        ("write my address to p.txt. I live in Oslo", None),
        (f"{APPEND}. what is the capital of France?", None),
    ],
)
def test_what_a_person_tells_of_themselves_divides_one_message_too(said: str, request: str | None) -> None:
    read = read_apart(said, [], TOOLS)
    assert (None if read is None else read.request) == request


@pytest.mark.parametrize("said", ["I live in Oslo\nwhat time is it?", "I live in Oslo. What time is it?"])
async def test_a_question_beside_what_is_kept_is_answered(system: System, ana: Person, said: str) -> None:
    reply = (await ana.say(said)).reply.text
    assert "UTC" in reply
    assert "I will remember: I live in Oslo" in reply


async def test_an_order_beside_what_is_kept_is_not_lost(system: System, ana: Person) -> None:
    answer = await ana.say(f"{APPEND}. I live in Oslo.", language="en")
    approval_id, code = approval_of(answer)
    assert (await ana.say(f"APPROVE {approval_id} {code}")).run.status == DONE
    assert system.sandbox.joinpath("p.txt").read_text() == "x\n"
