"""phylactery runs as a person uses it, against the three real services."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3

import pytest
from phylactery_cli.main import app
from phylactery_cli.supervisor import running
from phylactery_client import PhylacteryClient
from typer.testing import CliRunner

from tests.support.processes.stack import ForkedStack

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli-runs")]
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CARD = 'escribe "tarjeta 4111 1111 1111 1111" en pagos.txt'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def target(folder):
    """The services as phylactery up starts them; answers where the agent is."""
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    with running(ForkedStack(folder, {"agent": 0, "riskgate": 0, "memory": 0}, extra_env=quiet)) as stack:
        yield stack.target("agent")


@pytest.fixture
def runs(target):
    """Run a command; return its result."""

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
    assert "CANCELADA" in gone.output
    assert gone.output.split()[0] == "ejecución"
    assert "denegada (CANCELLED)" in gone.output
    again = runs("cancel", done, "--yes")
    assert (again.exit_code, again.stderr.startswith("runs: ")) == (1, True)


def test_what_cannot_be_done_is_said_in_one_sentence(runs):
    assert (runs("unknown").output, runs("doubts", language="es").output) == (  # doubts: its name before 0.2
        "No effect has an unknown outcome.\n",
        "Ningún efecto tiene un resultado desconocido.\n",
    )
    for arguments, said in (
        (("show", "ru_none"), "run 'ru_none' not found"),
        (("list", "--status", "asleep"), "ASLEEP"),
        (("resolve", "ru_none", "c1"), "--happened"),
        (("resolve", "ru_none", "c1", "--happened"), "ru_none"),
    ):
        failed = runs(*arguments)
        assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.output
        assert said in failed.stderr


def test_a_run_is_shown_with_its_nodes_its_events_and_its_budgets(runs, target):
    run_id = say(target, "hola", "t5")
    say(target, "hola", "t5")
    shown = json.loads(runs("show", run_id, "--json").stdout)
    assert shown["id"] == run_id
    assert [one["node"] for one in shown["run_steps"]] == ["Router", "Finalizer"]
    kinds = [next(name for name in event if isinstance(event[name], dict)) for event in shown["events"]]
    assert kinds == ["run_started", "route_decided", "message", "run_finished"]
    assert {event["run_id"] for event in shown["events"]} == {run_id}
    assert (shown["budget"]["supersteps"]["used"], shown["budget"]["supersteps"]["limit"]) == (2, 25)
    told = runs("show", run_id, language="es")
    assert told.exit_code == 0, told.output
    for said in ("superpaso", "Finalizer", "ANSWERED", "presupuesto", "superpasos", "TERMINADA"):
        assert said in told.output, said
    [supersteps] = [line.split() for line in told.output.splitlines() if line.split()[:1] == ["superpasos"]]
    assert supersteps == ["superpasos", "2", "25"]
    waiting = say(target, CARD, "t6")
    asked = runs("show", waiting, "--json").stdout
    assert "approval_required" in asked
    assert '"code"' not in asked


def test_a_retry_says_what_is_wrong_in_the_persons_language_and_shows_the_new_run(runs, target):
    run_id = say(target, "hola", "t7")
    refused = runs("retry", run_id, language="es")
    assert (refused.exit_code, refused.stderr.strip()) == (
        1,
        f"runs: solo se puede repetir una ejecución fallida: {run_id} no falló",
    )
    missing = runs("retry", "run_none")
    assert (missing.exit_code, "run 'run_none' not found" in missing.stderr) == (1, True)


def test_what_a_run_did_is_told_before_it_begins_once_more(runs, target, folder):
    run_id = say(target, 'escribe "hola" en notas.txt', "t8")
    [file] = folder.rglob("agent.db")
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE agent_runs SET status = 'failed' WHERE run_id = ?", [run_id])
        [(call,)] = database.execute("SELECT tool_call_id FROM agent_tool_calls WHERE run_id = ?", [run_id])
    refused = runs("retry", run_id)
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1)
    assert f"({call})" in refused.stderr
    assert "--acknowledge-effects" in refused.stderr
    begun = runs("retry", run_id, "--acknowledge-effects", "--request-id", "again-001", language="es")
    assert begun.exit_code == 0, begun.output
    assert "Ya hecho antes" in begun.output
    assert call in begun.output
    again = json.loads(runs("retry", run_id, "--request-id", "again-001", "--json").stdout)
    assert again["run"]["id"] in begun.output
    assert "Repeats" in runs("show", again["run"]["id"]).output


def test_a_list_for_machines_is_whole_each_run_with_its_calls_and_its_times_as_rfc_3339_has_them(runs, target):
    async def many() -> list[str]:
        async with PhylacteryClient(target) as client:
            turns = [client.send_message("repite hola", thread_id=f"many-{number}") for number in range(22)]
            return [turn.run.id for turn in await asyncio.gather(*turns)]

    said = asyncio.run(many())
    listed = [json.loads(line) for line in runs("list", "--json").stdout.splitlines()]
    assert {run["id"] for run in listed} >= set(said)
    for run in listed:
        if run["id"] in said:
            assert [call["tool"] for call in run["tool_calls"]] == ["echo"]
            assert len(run["plan_steps"]) == 1
            for time in (run["create_time"], run["tool_calls"][0]["create_time"]):
                assert RFC_3339.fullmatch(time), time
    page = runs("list")
    assert len(page.stdout.splitlines()) == 21
    assert "There is more: --page" in page.stderr
    shown = json.loads(runs("show", said[0], "--json").stdout)
    assert all(RFC_3339.fullmatch(event["create_time"]) for event in shown["events"])
