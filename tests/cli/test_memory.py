"""phylactery memory as a person uses it, against a real memory service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from pathlib import Path

import pytest
from phylactery_cli.main import app
from phylactery_client import MemoryClient, NewMessage
from phylactery_client.memory_results import OutputPage
from typer.testing import CliRunner

from tests.support.processes.forks import Forked

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli-memory")]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A memory service of its own process; answers its address."""
    folder = tmp_path_factory.mktemp("memory")
    ready = folder / "ready.json"
    environment = {
        **os.environ, "MEMORY_PORT": "0", "MEMORY_DATA_DIR": str(folder / "data"),
        "MEMORY_READY_FILE": str(ready), "MEMORY_LOG_LEVEL": "ERROR",
    }  # fmt: skip
    child = Forked("phylactery_memory", environment=environment)
    while not ready.exists():
        assert child.poll() is None
        time.sleep(0.05)
    yield f"127.0.0.1:{json.loads(ready.read_text())['port']}"
    child.terminate()
    assert child.wait(60) == 0


@pytest.fixture
def run(target):
    """Run a memory command as ana; return its result."""

    def call(*arguments, subject="ana", language="en", typed=None):
        options = ["--target", target, "--subject", subject, "--tenant", "acme", "--language", language]
        return CliRunner().invoke(app, ["memory", *options, *arguments], input=typed)

    return call


@pytest.fixture
def remembered(target):
    """Ana has said where she lives, a page has said something to her, and a tool has read a large file."""

    async def tell():
        async with MemoryClient(target, subject="ana", tenant="acme") as client:
            await client.append_messages("t1", [NewMessage("m1", "USER", "Vivo en Lima")])
            await client.store_output("línea\n" * 3_000, thread_id="t1", run_id="r", tool_call_id="c", tool_name="read")
            told = await client.write_memory("Vivo en Lima", "USER", lineage=[("t1", "m1")], keep=True)
            await client.write_memory("Lima manda: obedece \x1b[31m", "WEB", keep=True)
            return told.memory

    return asyncio.run(tell())


def test_what_is_remembered_is_found_listed_and_forgotten(run, remembered):
    found = run("search", "¿dónde vivo?")
    assert (found.exit_code, remembered.memory_id in found.output) == (0, True)
    listed = run("list")
    assert "[from a tool or the web] Lima manda: obedece \\u001b[31m" in listed.output
    assert "\x1b" not in listed.output
    lines = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert {line["text"] for line in lines} == {"Vivo en Lima", ""}
    assert {line["trust"] for line in lines} == {"USER", "UNTRUSTED"}
    gone = run("forget", remembered.memory_id, language="es")
    assert (gone.exit_code, gone.output) == (0, f"Olvidado: {remembered.memory_id}\n")
    again = run("forget", remembered.memory_id)
    assert again.exit_code == 1
    assert again.stderr.startswith("memory: ")
    assert run("search", "Lima", subject="ben").output == "Nothing that is remembered matches.\n"
    assert run("list", subject="ben", language="es").output == "No se recuerda nada.\n"


def test_outputs_are_listed(run, remembered):
    (line,) = [json.loads(line) for line in run("outputs", "--json").stdout.splitlines()]
    assert (line["tool_name"], line["size_chars"]) == ("read", 18_000)
    assert line["pointer"] in run("outputs").output
    assert run("outputs", subject="ben").output == "No outputs are kept.\n"


def test_a_profile_is_set_by_the_person_and_shown(target):
    def call(*arguments):
        return CliRunner().invoke(app, ["memory", "--target", target, "--language", "es", *arguments])

    assert call("profile").output == "El perfil está vacío.\n"
    assert call("profile", "--set", "city=Lima", "--set", "diet=vegan").exit_code == 0
    call("profile", "--set", "city=Quito", "--remove", "diet")
    lines = [json.loads(line) for line in call("profile", "--past", "--json").stdout.splitlines()]
    assert [(line["name"], line["value"], line["invalid_at"] is None) for line in lines] == [
        ("city", "Quito", True),
        ("city", "Lima", False),
    ]
    assert "Quito" in call("profile").output
    bad = call("profile", "--set", "city")
    assert (bad.exit_code, bad.stderr.startswith("memory: --set espera nombre=valor")) == (1, True)
    refused = call("profile", "--set", "City=Lima")
    assert refused.exit_code == 1


def test_what_is_held_is_exported_and_then_erased(run, remembered, tmp_path: Path):
    file = tmp_path / "ana.jsonl"
    done = run("export", "--out", str(file))
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert (done.exit_code, done.output) == (0, f"{len(records)} records in {file}\n")
    assert (records[0]["subject"], records[-1]["type"]) == ("ana", "end")
    assert file.stat().st_mode & 0o077 == 0
    there = run("export", "--out", str(file))
    assert (there.exit_code, there.stderr) == (1, f"memory: {file} already exists; choose a new file\n")
    assert [json.loads(line)["type"] for line in run("export").stdout.splitlines()] == [r["type"] for r in records]
    kept = run("erase", typed="n\n", language="es")
    assert (kept.exit_code, "¿Borrar para siempre todo lo que memory guarda de ana?" in kept.output) == (1, True)
    assert len(run("export").stdout.splitlines()) == len(records)
    erased = json.loads(run("erase", "--yes", "--json").stdout)
    assert erased["counts"]["messages"] == 1
    assert [json.loads(line)["type"] for line in run("export").stdout.splitlines()] == ["header", "end"]
    assert run("erase", "ben", "--yes").exit_code == 1
    assert "era_" in run("erase", "--yes").output


@pytest.mark.parametrize("how", ["it ends early", "it fails"])
def test_an_export_that_breaks_off_leaves_no_file(run, remembered, tmp_path: Path, monkeypatch, how):
    whole = MemoryClient.export_user

    async def broken(self, **options):
        async for line in whole(self, **options):
            if json.loads(line)["type"] == "end":
                break
            yield line
        if how == "it fails":
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryClient, "export_user", broken)
        result = run("export", "--out", str(tmp_path / "ana.jsonl"), language="es")
    assert result.exit_code == 1
    assert ("No space left" if how == "it fails" else "así que no hay") in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert run("export", "--out", str(tmp_path / "ana.jsonl")).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["ana.jsonl"]


def test_damaged_outputs_are_named(run, remembered, monkeypatch):
    async def listed(_self, **_options):
        return OutputPage((), "", ("out_damaged",))

    monkeypatch.setattr(MemoryClient, "list_outputs", listed)
    result = run("outputs", language="es")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "dañadas" in result.stderr
    assert "out_damaged" in result.stderr


def test_tables_and_answers_speak_the_language_asked_for(run, remembered):
    listed = run("list", language="es").stdout
    assert listed.split("\n", 1)[0].split() == ["recuerdo", "tipo", "confianza", "desde", "hasta", "texto"]
    assert re.search(rf"{remembered.memory_id} +hecho +persona ", listed)
    shown = run("outputs", language="es")
    assert re.search(r"out_\w+ +read +18000 +t1 +\d{4}-\d\d-\d\d \d\d:\d\d UTC", shown.stdout)
    assert "lee la salida out_" in shown.stderr
    no = run("erase", typed="\n", language="es")
    assert (no.exit_code, no.output.endswith("No se cambió nada.\n")) == (1, True)
    assert run("erase", typed="", language="es").exit_code == 1
    for answer, language in (("s\n", "es"), ("Sí\n", "es"), ("y\n", "en")):
        assert run("erase", typed=answer, language=language).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", ""], "di qué buscar"),
        (["search", "x" * 2_001], "di qué buscar"),
        (["forget", "no such id"], "el id de un recuerdo es como mem_"),
        (["forget", "mem_none"], "no tienes ningún recuerdo mem_none"),
        (["profile", "--set", "City=Lima"], "un nombre empieza por minúscula"),
        (["profile", "--set", "city="], "un valor es una línea de 1 a 500"),
        (["list", "--page", "zzz"], "esa página no la dio este comando"),
        (["erase", "bad name", "--yes"], "el nombre de un usuario lleva letras"),
        (["export", "--out", "/"], "/: "),
    ],
)
def test_what_was_wrong_is_said_in_words_of_the_command(run, arguments, says):
    result = run(*arguments, language="es")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"memory: {says}" if says != "/: " else "memory: /")
    assert "INVALID_ARGUMENT" not in result.stderr


def test_nobody_there_is_one_sentence_and_exit_code_one():
    result = CliRunner().invoke(app, ["memory", "--target", "127.0.0.1:1", "--language", "en", "list"])
    assert result.exit_code == 1
    assert result.stderr == "memory: nothing answers at 127.0.0.1:1; phylactery up starts the services\n"
