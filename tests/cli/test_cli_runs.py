"""phylactery runs as a person uses it, against the three real services."""

from __future__ import annotations

import asyncio
import json

import pytest
from phylactery_cli.main import app
from phylactery_cli.supervisor import Stack, running
from phylactery_client import PhylacteryClient
from typer.testing import CliRunner

pytestmark = pytest.mark.xdist_group("cli-runs")
CARD = 'escribe "tarjeta 4111 1111 1111 1111" en pagos.txt'


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The services as phylactery up starts them; answers where the agent is."""
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    folder = tmp_path_factory.mktemp("runs")
    with running(Stack(folder, {"agent": 0, "riskgate": 0, "memory": 0}, extra_env=quiet)) as stack:
        yield stack.target("agent")


@pytest.fixture
def runs(target):
    """Runs a command; answers its result."""

    def call(*arguments, language="en", typed=None):
        options = ["--target", target, "--language", language]
        return CliRunner().invoke(app, ["runs", *options, *arguments], input=typed)

    return call


def say(target: str, text: str, thread: str) -> str:
    async def within() -> str:
        async with PhylacteryClient(target) as client:
            return (await client.send_message(text, thread_id=thread)).run.id

    return asyncio.run(within())


def test_runs_are_listed_shown_and_cancelled(runs, target):
    done, waiting = say(target, "hola", "t1"), say(target, CARD, "t2")
    listed = runs("list")
    assert listed.exit_code == 0, listed.output
    assert [line.split()[:2] for line in listed.output.splitlines()[1:]] == [[waiting, "SUSPENDED"], [done, "DONE"]]
    assert [json.loads(line)["id"] for line in runs("list", "--status", "done", "--json").stdout.splitlines()] == [done]
    assert "write_file" in runs("show", waiting).output
    kept = runs("cancel", waiting, typed="n\n")
    assert (kept.exit_code, "Nothing was changed." in kept.output) == (1, True)
    gone = runs("cancel", waiting, "--yes", language="es")
    assert gone.exit_code == 0, gone.output
    assert "CANCELLED" in gone.output
    assert gone.output.split()[0] == "ejecución"
    assert "denied (CANCELLED)" in gone.output
    again = runs("cancel", done, "--yes")
    assert (again.exit_code, again.stderr.startswith("runs: ")) == (1, True)


def test_what_cannot_be_done_is_said_in_one_sentence(runs):
    assert (runs("doubts").output, runs("doubts", language="es").output) == (
        "Nothing is in doubt.\n",
        "Nada está en duda.\n",
    )
    for arguments, said in (
        (("show", "ru_none"), "there is no run 'ru_none' of yours"),
        (("list", "--status", "asleep"), "ASLEEP"),
        (("resolve", "ru_none", "c1"), "--happened"),
        (("resolve", "ru_none", "c1", "--happened"), "ru_none"),
    ):
        failed = runs(*arguments)
        assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.output
        assert said in failed.stderr
