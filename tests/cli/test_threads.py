"""phylactery threads as a person uses it, against the three real services."""

from __future__ import annotations

import asyncio
import json

import pytest
from phylactery_cli.main import app
from phylactery_cli.supervisor import running
from phylactery_client import PhylacteryClient
from typer.testing import CliRunner

from tests.support.processes.stack import ForkedStack

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli-threads")]
CARD = 'escribe "tarjeta 4111 1111 1111 1111" en pagos.txt'


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The services as phylactery up starts them; answers where the agent is."""
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    with running(ForkedStack(tmp_path_factory.mktemp("threads"), dict.fromkeys(quiet, 0), extra_env=quiet)) as stack:
        yield stack.target("agent")


@pytest.fixture
def threads(target):
    """Run a command; return its result."""

    def call(*arguments, language="en", typed=None):
        options = ["--target", target, "--language", language]
        return CliRunner().invoke(app, ["threads", *options, *arguments], input=typed)

    return call


def say(target: str, text: str, thread: str) -> int:
    async def within() -> int:
        async with PhylacteryClient(target) as client:
            return (await client.send_message(text, thread_id=thread)).last_sequence

    return asyncio.run(within())


def test_conversations_are_listed_shown_watched_and_deleted(threads, target):
    assert threads("list").output == "No conversations.\n"
    last = say(target, "hola", "t1")
    asked = say(target, CARD, "t2")
    listed = threads("list", language="es")
    assert [line.split()[0] for line in listed.output.splitlines()] == ["conversación", "t2", "t1"]
    assert "EN ESPERA" in listed.output
    assert [json.loads(line)["id"] for line in threads("list", "--json").stdout.splitlines()] == ["t2", "t1"]
    shown = threads("show", "t1").output
    assert shown.splitlines()[1].split()[:3] == ["t1", "DONE", "secured"]
    assert "you › hola" in shown
    events = [json.loads(line) for line in threads("watch", "t1", "--no-follow", "--json").stdout.splitlines()]
    assert [int(event["sequence"]) for event in events] == list(range(1, last + 1))
    rest = threads("watch", "t1", "--no-follow", "--json", "--after", str(last - 1)).stdout.splitlines()
    assert [json.loads(line) for line in rest] == events[-1:]
    assert "espera que una persona lo apruebe" in threads("watch", "t2", "--no-follow", language="es").output
    kept = threads("delete", "t1", typed="n\n")
    assert (kept.exit_code, "Nothing was changed." in kept.output) == (1, True)
    assert threads("delete", "t1", "--yes").output == "Deleted: t1\n"
    assert threads("delete", "t1", "--yes", language="es").output == "Borrada: t1\n"
    assert [json.loads(line)["id"] for line in threads("list", "--json").stdout.splitlines()] == ["t2"]
    assert asked > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "none"), "thread 'none' not found"),
        (("watch", "none"), "thread 'none' not found"),
        (("delete", "not a name", "--yes"), "thread_id"),
        (("list", "--page", "WzFd"), "page_token"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(threads, arguments, said):
    failed = threads(*arguments)
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.output
    assert failed.stderr.startswith("threads: ")
    assert said in failed.stderr
