"""phylactery erase as a person uses it, against the three real services."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from phylactery_chassis.auth.identity import token_hash
from phylactery_cli.main import app
from phylactery_cli.supervisor import Stack, running
from typer.testing import CliRunner, Result

from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person, lasting_ports, relaunch
from tests.support.riskgate.asking_bundle import asks_first

pytestmark = [pytest.mark.xdist_group("cli-erase"), pytest.mark.slow]
MARK = "zarzuela"
SERVICES = ["agent", "riskgate", "memory"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The three services on loopback, where whoever calls is 'local' with every role."""
    folder = tmp_path_factory.mktemp("erase")
    asking = {"riskgate": {"RISKGATE_BUNDLE": str(asks_first(folder / "bundle"))}}
    with running(ForkedStack(folder / "data", lasting_ports(), extra_env=asking)) as started:
        yield started


def run(stack: Stack, *arguments: str, typed: str | None = None, language: str = "en") -> Result:
    places = [part for name in SERVICES for part in (f"--{name}", stack.target(name))]
    return CliRunner().invoke(app, ["erase", *places, "--language", language, *arguments], input=typed)


def completed(stack: Stack, *arguments: str) -> Result:
    """Erase; what a busy machine cut short is finished by the command that is named, as a person would do it."""
    done = run(stack, *arguments, "--yes")
    if command := re.search(r"phylactery erase (.+)\n", done.output):
        done = run(stack, *command.group(1).split(), "--yes")
    assert done.exit_code == 0, done.output
    return done


def told(result: Result) -> dict[str, dict]:
    """Return what each service said, by its name."""
    return {line["service"]: line for line in map(json.loads, result.stdout.splitlines())}


def fill(stack: Stack, subject: str) -> None:
    """Say something, leaves something to remember, and an approval waiting."""
    with Person(stack, subject, thread=f"of-{subject}") as person:
        person.say(f"recuerda que mi perro se llama {MARK.title()}")
        person.say(f"repite {MARK}")
        assert person.say(f'añade "{MARK}" a lista.txt').pending_approval.approval_id


def files_with(stack: Stack, text: str) -> list[str]:
    """Return which files of agent and memory hold a text; what a tool wrote for the user is not among them."""
    return [
        path.name
        for name in ("agent", "memory")
        for path in sorted((stack.data_dir / name).rglob("*"))
        if path.is_file() and "sandbox" not in path.parts and text.encode() in path.read_bytes().lower()
    ]


def test_a_person_goes_from_all_three_services_and_each_proves_it(stack: Stack) -> None:
    fill(stack, "ana")
    assert files_with(stack, MARK)
    done = run(stack, "ana", typed="y\n")
    assert done.exit_code == 0, done.output
    assert "Erase everything that agent, riskgate and memory hold about ana, for good?" in done.output
    assert re.search(r"^agent +erased: threads 1, runs 3, turns 3, .*checkpoints \d", done.output, re.MULTILINE), (
        done.output
    )
    assert re.search(r"^riskgate +erased: the arguments of [1-9]\d* entries", done.output, re.MULTILINE)
    assert re.search(r"^memory +erased: threads 1, messages 6, memories 1, postings", done.output, re.MULTILINE)
    assert len(re.findall(r"^ +proof: era_\w+  sha256:[0-9a-f]{64}$", done.output, re.MULTILINE)) == 2
    values_and_open_task = r"^ +proof: riskgate:\d+, riskgate:\d+$"
    assert re.search(values_and_open_task, done.output, re.MULTILINE)
    assert done.output.endswith(
        "Everything is erased, the files of ana included. What is in shared folders stays, and so do files of an "
        "earlier version that belong to nobody, and what was sent.\n"
    )
    assert files_with(stack, MARK) == []


def test_the_same_request_answers_the_same_receipts_and_another_finds_nothing(stack: Stack) -> None:
    fill(stack, "bea")
    first = told(run(stack, "bea", "--yes", "--json", "--request-id", "erase-bea-1"))
    again = told(run(stack, "bea", "--yes", "--json", "--request-id", "erase-bea-1"))
    assert list(first) == SERVICES
    assert all(line["complete"] for line in first.values())
    for name in ("agent", "memory"):
        assert first[name] == again[name]
        assert first[name]["receipt_hash"] == "sha256:" + hashlib.sha256(first[name]["receipt"].encode()).hexdigest()
    assert (first["riskgate"]["erased"] > 0, first["riskgate"]["kept_open"]) == (True, 0)
    assert again["riskgate"]["erased"] == 0
    fresh = run(stack, "bea", "--yes", language="es")
    assert fresh.output.count("no quedaba nada que borrar") == 3
    assert "Está todo borrado, también los archivos de bea" in fresh.output


def test_what_one_service_could_not_do_is_said_and_finished_by_the_command_it_names(stack: Stack) -> None:
    fill(stack, "cid")
    stack.kill("memory")
    cut = run(stack, "cid", "--yes", language="es")
    assert cut.exit_code == 1
    assert f"memory    no se ha borrado: nada responde en {stack.target('memory')}" in cut.output
    assert re.search(r"^agent +borrado: ", cut.output, re.MULTILINE)
    command = re.search(r"Para seguir, cuando eso se arregle: phylactery erase (.+)\n", cut.output)
    assert command is not None
    relaunch(stack, "memory")
    done = run(stack, *command.group(1).split(), "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert told(done)["agent"]["erasure_id"] in cut.output
    assert told(done)["memory"]["counts"]["messages"] > 0
    assert files_with(stack, MARK) == []


def test_without_the_agent_nothing_is_erased_because_it_might_write_again(stack: Stack) -> None:
    fill(stack, "dan")
    stack.kill("agent")
    cut = run(stack, "dan", "--yes")
    assert cut.exit_code == 1
    assert cut.output.count("not asked, because the agent might still write to it") == 2
    assert files_with(stack, MARK)
    relaunch(stack, "agent")
    completed(stack, "dan")
    assert files_with(stack, MARK) == []


def test_a_person_who_says_no_changes_nothing(stack: Stack) -> None:
    fill(stack, "eva")
    kept = run(stack, "eva", typed="n\n", language="es")
    assert (kept.exit_code, "No se cambió nada." in kept.output) == (1, True)
    assert files_with(stack, MARK)
    assert run(stack, "eva", typed="sí\n", language="es").exit_code == 0


def test_only_an_operator_erases_others_and_riskgates_part_of_oneself(tmp_path: Path) -> None:
    roles = {"ana": ["caller"], "ben": ["caller"], "olga": ["caller", "operator"], "agent": ["delegate"]}
    entries = [
        {"hash": token_hash(f"of-{name}"), "subject": name, "tenant": "*" if name == "agent" else "acme", "roles": has}
        for name, has in roles.items()
    ]
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(yaml.safe_dump({"tokens": entries}))
    for name in roles:
        (tmp_path / name).write_text(f"of-{name}\n")
    asked = {
        name: {f"{name.upper()}_IDENTITY_MODE": "tokens", f"{name.upper()}_TOKENS_FILE": str(tokens)}
        for name in SERVICES
    }
    asked["agent"] |= {"AGENT_RISKGATE_TOKEN": "of-agent", "AGENT_MEMORY_TOKEN": "of-agent"}

    with running(ForkedStack(tmp_path / "data", FREE_PORTS, extra_env=asked)) as stack, Person(stack, "ana") as ana:
        ana.metadata = (("authorization", "Bearer of-ana"),)
        ana.say(f"recuerda que mi perro se llama {MARK}")

        def as_(name: str, *arguments: str) -> Result:
            return run(stack, *arguments, "--yes", "--token-file", str(tmp_path / name))

        refused = as_("ben", "ana")
        assert refused.exit_code == 1
        assert "only an operator may erase there; ask one to run: phylactery erase ana" in refused.output
        assert files_with(stack, MARK)
        own = as_("ana")
        assert own.exit_code == 1
        assert re.search(
            r"^riskgate +not erased: only an operator may erase there.*erase ana$", own.output, re.MULTILINE
        )
        assert files_with(stack, MARK) == []
        rest = as_("olga", "ana")
        assert rest.exit_code == 0, rest.output
        assert re.search(r"^riskgate +erased: the arguments of \d+ entries", rest.output, re.MULTILINE)
