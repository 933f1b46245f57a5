"""phylactery handoff as a person uses it, against the three real services: single commands, and the desk."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from phylactery_cli.handoff.desk import Desk
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.main import app
from phylactery_cli.supervisor import running
from phylactery_cli.terminal import plain_console
from phylactery_client import EscalationClient, PhylacteryClient
from typer.testing import CliRunner

from tests.support.processes.stack import ForkedStack

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli-handoff")]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The services as phylactery up starts them, with people on duty; answers where the agent is."""
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    quiet["agent"] |= {"AGENT_HANDOFF": "on"}
    with running(ForkedStack(tmp_path_factory.mktemp("handoff"), dict.fromkeys(quiet, 0), extra_env=quiet)) as stack:
        yield stack.target("agent")


@pytest.fixture
def handoff(target):
    """Run a command; return its result."""

    def call(*arguments, language="en", typed=None):
        options = ["--target", target, "--language", language]
        return CliRunner().invoke(app, ["handoff", *options, *arguments], input=typed)

    return call


def say(target: str, text: str, thread: str) -> str:
    async def within() -> str:
        async with PhylacteryClient(target) as client:
            return (await client.send_message(text, thread_id=thread)).reply.text

    return asyncio.run(within())


def waiting(handoff, thread: str) -> str:
    lines = [json.loads(line) for line in handoff("list", "--json").stdout.splitlines()]
    return next(line["escalation_id"] for line in lines if line["thread_id"] == thread)


def test_a_conversation_is_listed_shown_claimed_answered_and_given_back_by_single_commands(handoff, target):
    assert handoff("list").output == "Nobody waits for a person.\n"
    assert "a person of our team" in say(target, "I want to talk to a person", "t1")
    one = waiting(handoff, "t1")
    assert "asked for it" in handoff("list").output
    shown = handoff("show", one, language="es").output
    assert "local › I want to talk to a person" in shown
    assert "lo ha pedido" in shown
    assert handoff("claim", one, "--name", "Marta").output.startswith(f"You have {one} until ")
    assert say(target, "are you there?", "t1") == ""
    assert handoff("note", one, "calm").output == "Noted.\n"
    sent = handoff("reply", one, "I am Marta", "--request-id", "request-1", "--json").stdout
    assert json.loads(sent)["kind"] == "REPLY"
    assert handoff("reply", one, "I am Marta", "--request-id", "request-1", "--json").stdout == sent
    seen = CliRunner().invoke(app, ["threads", "--target", target, "--language", "en", "watch", "t1", "--no-follow"])
    assert "Marta has the conversation and answers here." in seen.output
    assert "Marta › I am Marta" in seen.output
    assert (
        handoff("release", one, "--summary", "solved", language="es").output == f"{one} vuelve a estar con el agente.\n"
    )
    assert say(target, "thanks", "t1")
    assert [json.loads(line)["state"] for line in handoff("list", "--state", "all", "--json").stdout.splitlines()] == [
        "RELEASED"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "esc_none"), "escalation 'esc_none' not found"),
        (("claim", "esc_none"), "escalation 'esc_none' not found"),
        (("reply", "esc_none", "hi"), "escalation 'esc_none' not found"),
        (("list", "--state", "none"), "'NONE' is not a EscalationState"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(handoff, arguments, said):
    failed = handoff(*arguments)
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.output
    assert said in failed.stderr


def test_a_reply_without_a_claim_is_not_sent_and_says_why(handoff, target):
    say(target, "hello", "t2")
    say(target, "human please", "t2")
    failed = handoff("reply", waiting(handoff, "t2"), "hi")
    assert (failed.exit_code, "claim it first" in failed.stderr) == (1, True)
    handoff("claim", waiting(handoff, "t2"))
    handoff("release", waiting(handoff, "t2"))


@pytest.mark.parametrize(
    ("language", "sent", "back"), [("en", "Sent.", "with the agent"), ("es", "Enviado.", "agente")]
)
def test_a_person_works_the_queue_at_the_desk(handoff, target, language, sent, back):
    thread = f"desk-{language}"
    say(target, "quiero hablar con una persona", thread)
    one = waiting(handoff, thread)
    typed = f"/list\n/claim {one}\nhola, soy Marta\n/note tranquila\n/release todo listo\n/nothing\n/quit\n"
    done = handoff("--name", "Marta", typed=typed, language=language)
    assert done.exit_code == 0, done.output
    assert "quiero hablar con una persona" in done.output
    assert sent in done.output
    assert back in done.output
    events = CliRunner().invoke(app, ["threads", "--target", target, "watch", thread, "--no-follow", "--json"]).stdout
    said = [json.loads(line)["human_message"]["text"] for line in events.splitlines() if "human_message" in line]
    assert said == ["hola, soy Marta"]


async def test_the_desk_shows_what_the_person_says_and_gives_up_a_claim_that_was_taken_from_it(target):
    async with PhylacteryClient(target) as person, EscalationClient(target) as client:
        await person.send_message("I want to talk to a person", thread_id="live")
        one = (await client.list()).escalations[-1]
        out = io.StringIO()
        desk = Desk(client, plain_console(file=out, width=200), Texts("en"), name="Marta")
        await desk._list()
        watching = asyncio.create_task(desk._watch())
        try:
            await desk._obey(f"/claim {one.escalation_id}")
            await person.send_message("my parcel is late", thread_id="live")
            await seen(out, "local › my parcel is late")
            await client.release(one.escalation_id, to="QUEUE")  # from another terminal
            await seen(out, "is over; nothing more is sent there")
            await desk._obey("I will look into it")
            assert "You have no conversation." in out.getvalue()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        assert (await person.send_message("hello", thread_id="live")).reply.text


async def seen(out: io.StringIO, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in out.getvalue():  # noqa: ASYNC110 - only the output tells
            await asyncio.sleep(0.02)
