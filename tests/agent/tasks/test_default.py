"""Common requests in Spanish and English, through the default bundle with each message's task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.agent.documents import document, pdf
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system, outputs_of

CARD = "4111 1111 1111 1111"
"""The number payment networks give out for tests."""
SECRET = "ghp_" + "x7Yk2Qm9Rt4Vb8Nc1Zd6Fh3Jl5Pw0Sa2Ue4G"

WRITES = [
    ('escribe "hola" en {name}', "hola"),
    ('guarda "hola" en {name}', "hola"),
    ('por favor, escribe "hola" en el fichero {name}', "hola"),
    ('¿puedes escribir "hola" en {name}?', "hola"),
    ('quiero que escribas "buenos días" en {name}', "buenos días"),
    ("graba «la niña comió piñas» en el archivo {name}", "la niña comió piñas"),
    ('añade "una línea" a {name}', "una línea\n"),
    ('agrega "una línea" al fichero {name}', "una línea\n"),
    ('anexa "una línea" a {name}', "una línea\n"),
    ('write "hello" to {name}', "hello"),
    ('save "hello" in {name}', "hello"),
    ('could you store "hello" in the file {name}?', "hello"),
    ('append "one line" to {name}', "one line\n"),
    ('add "one line" to {name}', "one line\n"),
]


@pytest.fixture
async def default_system(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def person(default_system: System) -> Person:
    return default_system.person("ana")


@pytest.mark.slow
async def test_every_example_of_every_tool_goes_through_in_both_languages_and_only_forgetting_asks(
    default_system: System, person: Person
) -> None:
    box = default_system.sandbox
    for name in ("notas.txt", "mis notas.txt", "notes.txt"):
        (box / name).write_text(f"contenido de {name}")
    (box / "docs").mkdir()
    (box / "docs" / "plan.md").write_text("the plan")
    for name in ("informe.pdf", "report.pdf"):
        (box / name).write_bytes(pdf("the report"))
    (box / "large.txt").write_text("".join(f"{number:05d} sin memoria, error\n" for number in range(1_000)))
    pointer = (await person.say("lee large.txt")).run.tool_calls[0].pointer
    came_to = {}
    tools = default_system.agent.tools
    here = tools.offered()
    for spec in here:
        for number, example in enumerate(spec.examples):
            if spec.name == "write_file" and "append" not in example.text and "añade" not in example.text.lower():
                for name in (
                    "notes.txt",
                    "notas.txt",
                    "a.txt",
                    "b.txt",
                ):  # what is there is replaced only if that is said
                    (box / name).unlink(missing_ok=True)
            thread = f"{spec.name}-{number}"
            if spec.name == "undo_write":  # of the same conversation
                await person.say(f'append "one more" to {example.args.get("path", "b.txt")}', thread)
            named = pointer
            if example.text == "cancel all my reminders":  # the Spanish example left none
                await person.say("remind me to stretch in 2 hours", thread)
            if spec.name == "read_attachment":  # of the same conversation
                await person.say("", thread, attachments=[document(b"a;b", "text/csv")])
                kept = await outputs_of(default_system, person)
                [named] = [one.pointer for one in kept if (one.thread_id, one.tool_name) == (thread, "attachment")]
            answer = await person.say(example.text.replace("out_abcdefgh", named), thread)
            ran = [(call.tool, call.state, call.status) for call in answer.run.tool_calls]
            if spec.name == "forget":  # nothing is kept in these words: what is found is on a card
                assert (answer.run.status, ran) == (SUSPENDED, [("forget", "proposed", "")])
            elif (answer.run.status, ran) != (DONE, [(spec.name, "finished", "success")]):
                came_to[example.text] = (answer.run.reason, ran, answer.reply.text)
    assert came_to == {}
    assert set(tools) - {spec.name for spec in here} == {"http_get", "send_email", "submit_form"}
    assert {example.language for spec in tools.values() for example in spec.examples} == {"es", "en"}


@pytest.mark.slow
async def test_a_write_that_is_asked_for_in_any_usual_form_is_done_at_once(
    default_system: System, person: Person
) -> None:
    came_to = {}
    for number, (form, content) in enumerate(WRITES):
        name = f"f{number}.txt"
        answer = await person.say(form.format(name=name), f"t{number}")
        path = default_system.sandbox / name
        written = path.read_text(encoding="utf-8") if path.exists() else None
        if (answer.run.status, written) != (DONE, content):
            came_to[form] = (answer.run.reason, answer.reply.text, written)
    assert came_to == {}


async def test_a_card_in_what_is_written_is_asked_about_though_it_was_asked_for(
    default_system: System, person: Person
) -> None:
    content = f"mi tarjeta es {CARD}"
    asked = await person.say(f'escribe "{content}" en notas.txt')
    assert (asked.run.status, asked.run.reason) == (SUSPENDED, "AWAITING_APPROVAL")
    assert not (default_system.sandbox / "notas.txt").exists()
    approval_id, code = approval_of(asked)
    assert (await person.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    assert (default_system.sandbox / "notas.txt").read_text() == content


async def test_a_secret_in_what_is_written_is_taken_out_at_the_edge_and_stands_nowhere(
    default_system: System, person: Person
) -> None:
    answer = await person.say(f'escribe "la clave es {SECRET}" en notas.txt')
    assert answer.run.status == DONE
    assert (default_system.sandbox / "notas.txt").read_text().startswith("la clave es ")
    assert SECRET.encode() not in default_system.everything_stored()  # the sandbox is among it


async def test_several_writes_of_one_message_are_each_asked_for_by_it(default_system: System, person: Person) -> None:
    answer = await person.say('escribe "uno" en a.txt y luego escribe "dos" en b.txt y luego lee a.txt')
    assert answer.run.status == DONE
    assert [call.status for call in answer.run.tool_calls] == ["success"] * 3
    assert [(default_system.sandbox / f"{name}.txt").read_text() for name in ("a", "b")] == ["uno", "dos"]


async def test_a_write_answered_in_a_suspended_run_is_asked_for_by_the_answer(
    default_system: System, person: Person
) -> None:
    asked = await person.say("lee no-existe.txt")
    assert asked.run.reason == "AWAITING_USER_INPUT"
    answer = await person.say('escribe "hola" en existe.txt')
    assert (answer.run.id, answer.run.status) == (asked.run.id, DONE)
    assert (default_system.sandbox / "existe.txt").read_text() == "hola"
