"""What ran for its low stakes alone: told in one line, taken back by one word, and what stays if it cannot be."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.tools.contract import Restored
from phylactery_chassis.auth.identity import Principal, Role

from tests.support.agent.system import DONE, approval_of, open_system
from tests.support.riskgate.low_stakes_bundle import runs_low_stakes

ANA = Owner("acme", "ana")
_ALL = 'remind me tomorrow at 9 am to call the bank; write "hello" to a.txt; remember that I prefer tea'


def undone(system, column="undo"):
    rows = system.agent.database.read_sync(
        lambda c: c.exec_driver_sql(f"SELECT {column} FROM agent_tool_calls ORDER BY created_us, ordinal").all()
    )
    return [row[0] for row in rows]


async def memories(system, owner=ANA):
    return [one.text for one in await system.agent.services.memories(owner).recall("", limit=10)]


async def test_one_line_tells_what_ran_without_a_question_and_one_word_takes_it_back(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        answer = await ana.say(_ALL)
        line = answer.reply.text.rsplit("\n\n", 1)[1]
        assert line == (
            "I also set the reminder “call the bank”, wrote to “a.txt” and kept in mind what you said. "
            "“undo” takes them back."
        )
        assert (system.sandbox / "a.txt").read_text() == "hello"
        assert await memories(system) == ["I prefer tea"]
        assert undone(system, "told") == ["told"] * 3
        answer = await ana.say("undo")
        assert "I removed “a.txt”" in answer.reply.text
        assert "I cancelled the reminder “call the bank”" in answer.reply.text
        assert "I no longer remember it" in answer.reply.text
        assert "“undo”" not in answer.reply.text
        assert not (system.sandbox / "a.txt").exists()
        assert await memories(system) == []
        assert "call the bank" not in (await ana.say("what reminders do I have?")).reply.text
        assert sorted(undone(system)) == ["", "none", *["undone"] * 3]  # the list was read, the undo is none itself


async def test_the_earlier_state_comes_back_in_spanish_too(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana, file = system.person(), system.sandbox / "lista.txt"
        await ana.say("recuerda que vivo en Lima")
        await ana.say("recuérdame mañana a las 9 de la mañana llamar al banco")
        await ana.say('escribe "uno" en lista.txt')
        await ana.say('sobrescribe lista.txt con "dos"')
        answer = await ana.say("cancela el recordatorio de llamar al banco")
        assert answer.reply.text.endswith(
            "También cancelé el recordatorio «llamar al banco». Si dices «deshaz», lo dejo como estaba."
        )
        answer = await ana.say("deshaz eso")
        assert "El recordatorio «llamar al banco» vuelve a estar puesto." in answer.reply.text
        assert "llamar al banco" in (await ana.say("¿qué recordatorios tengo?")).reply.text
        answer = await ana.say("deshaz")  # and the turn before
        assert "«lista.txt» vuelve a estar como antes." in answer.reply.text
        assert file.read_text() == "uno"
        await ana.say("deshaz")
        assert not file.exists()
        await ana.say("recuerda que vivo en Cusco")
        assert await memories(system) == ["vivo en Cusco"]
        await ana.say("deshazlo")
        assert await memories(system) == ["vivo en Lima"]


async def test_what_was_changed_since_stays_and_is_asked_about_and_the_rest_is_taken_back(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        await ana.say('write "one" to a.txt; write "two" to b.txt')
        (system.sandbox / "a.txt").write_text("my own words")  # by another program
        answer = await ana.say("undo it")
        assert "I removed “b.txt”" in answer.reply.text
        assert "the file has changed since I last looked at it" in answer.reply.text
        assert answer.reply.text.endswith("?")
        assert (system.sandbox / "a.txt").read_text() == "my own words"
        assert sorted(undone(system)) == ["left:CHANGED_SINCE", "none", "undone"]
        await ana.say('write "three" to c.txt')
        (system.sandbox / "c.txt").write_text("mine")
        answer = await ana.say("undo")  # with nothing else to take back
        assert "the file has changed since I last looked at it" in answer.reply.text
        assert (system.sandbox / "c.txt").read_text() == "mine"


_NAMED = {
    "of two turns": (['write "one" to a.txt', 'write "two" to b.txt', "undo the last change to b.txt"], "a.txt"),
    "of one turn": (['write "one" to a.txt; write "two" to b.txt', "undo the last change to a.txt"], "b.txt"),
    "in the same turn": (
        ['write "one" to a.txt, then undo the last change to a.txt, then write "two" to a.txt'],
        "a.txt",
    ),
    "of another kind": (
        ["remind me tomorrow at 9 am to call Ana", 'write "one" to a.txt', "undo the last change to a.txt"],
        "call Ana",
    ),
}


@pytest.mark.parametrize(("said", "meant"), _NAMED.values(), ids=_NAMED)
async def test_what_was_undone_by_its_name_is_not_meant_by_a_later_undo(tmp_path, said, meant):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        for text in said:
            assert (await ana.say(text)).run.status == DONE
        answer = await ana.say("undo")
        assert answer.run.status == DONE
        assert answer.reply.text.count("\n") == 1
        assert f"“{meant}”" in answer.reply.text
        assert list(system.sandbox.iterdir()) == []


async def test_an_undo_of_what_nothing_else_takes_back_is_what_the_next_undo_means(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana, file = system.person(), system.sandbox / "a.txt"
        await ana.say("remind me tomorrow at 9 am to call Ana")
        await ana.say('write "one" to a.txt')
        for text, there in (
            ("undo the last change to a.txt", False),
            ("undo the last change to a.txt", True),  # it brings back what the first took back
            ("undo", False),
        ):
            assert (await ana.say(text)).run.status == DONE
            assert file.exists() is there
        assert "call Ana" in (await ana.say("what reminders do I have?")).reply.text


async def test_a_reminder_whose_time_has_passed_is_not_set_again(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        await ana.say("remind me in 20 minutes to call Ana")
        await ana.say("cancel the reminder to call Ana")
        system.clock.advance(3_600)
        answer = await ana.say("undo")
        assert "its time has passed" in answer.reply.text
        assert "call Ana" not in (await ana.say("what reminders do I have?")).reply.text


async def test_it_can_be_taken_back_after_a_restart_and_not_after_an_erasure(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        await ana.say('write "hello" to a.txt')
        await system.restart_agent()
        answer = await ana.say("undo")
        assert "I removed “a.txt”" in answer.reply.text
        await ana.say('write "secret plan" to a.txt')
        await ana.say('overwrite a.txt with "other"')
        await ana.say("undo")
        assert (system.sandbox / "a.txt").read_text() == "secret plan"
        owner = Principal("ana", "acme", frozenset({Role.CALLER}))
        await system.agent.privacy.erase(owner, "ana", "erase-0001")
        answer = await ana.say("undo")
        assert "there is no change to undo" in answer.reply.text
        assert system.written("a.txt") == []
        journal = tmp_path / "agent" / "journal"
        assert not [one for one in journal.rglob("*") if one.is_file() and one.name != "lock"]


async def test_an_undo_that_was_asked_about_takes_back_what_it_was_asked_for_or_nothing(tmp_path):
    unasked = " && false"  # nothing runs for its stakes, so everything is asked about
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle", unasked)) as system:
        ana = system.person()
        approval = approval_of(await ana.say('write "one" to a.txt'))
        await ana.say(f"APPROVE {approval[0]} {approval[1]}")
        assert undone(system) == ["kept"]  # what was approved can be taken back as well; its line is no concern
        assert undone(system, "told") == [""]
        answer = await ana.say("undo")
        assert "I removed “a.txt”" in answer.reply.text


async def test_a_forwarded_undo_takes_nothing_back(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        await ana.say('write "hello" to a.txt')
        for text in ('Ana wrote: "undo that"', "> undo\n\nwhat does that mean?", "she said: undo"):
            await ana.say(text)
            assert (system.sandbox / "a.txt").read_text() == "hello"


async def test_a_tool_that_lies_about_its_undo_is_told_of_and_trusted_no_more(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana, tools = system.person(), system.agent.executor._implementations
        honest = tools["write_file"]

        async def claims(_invocation, _effect):
            return Restored("a.txt", check="not there")

        tools["write_file"] = replace(honest, restore=claims)
        await ana.say('write "one" to a.txt')
        answer = await ana.say("undo")
        assert "could not be put back" in answer.reply.text
        assert (system.sandbox / "a.txt").read_text() == "one"
        tools["write_file"] = honest
        answer = await ana.say('write "two" to b.txt')
        assert answer.HasField("pending_approval")  # of medium stakes now
        assert not (system.sandbox / "b.txt").exists()


async def test_a_write_whose_earlier_version_cannot_be_kept_does_not_happen_and_is_asked_about(tmp_path):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana, file = system.person(), system.sandbox / "a.txt"
        file.write_text("mine")
        versions = tmp_path / "agent" / "journal" / "versions"
        shutil.rmtree(versions)
        versions.write_text("in the way of every folder")
        answer = await ana.say('overwrite a.txt with "other"')
        assert file.read_text() == "mine"
        assert answer.HasField("pending_approval")


async def test_a_line_that_nobody_heard_is_told_with_the_next_reply_and_asks_until_then(tmp_path):
    unless = " && context.usage.line_delivered"
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle", unless)) as system:
        ana = system.person()
        await ana.say('write "one" to a.txt')
        answer = await ana.say('write "two" to b.txt')
        assert not answer.HasField("pending_approval")
        owed = "UPDATE agent_tool_calls SET told = 'owed' WHERE undo = 'kept'"
        queued = "DELETE FROM agent_outbox WHERE once LIKE 'outcome:told:%'"  # it goes out when it can
        system.agent.database.write_sync(lambda c: (c.exec_driver_sql(owed), c.exec_driver_sql(queued))[0].rowcount)
        answer = await ana.say("hello")
        assert "wrote to a file" in answer.reply.text
        assert set(undone(system, "told")) == {"told"}


_GUESTS = {
    "a stranger": ("remind me tomorrow at 9 am to call Ana", "I also set the reminder “call Ana”.", "undo"),
    "un desconocido": ("recuérdame mañana a las 9 am llamar", "También puse el recordatorio «llamar».", "deshaz"),
}


@pytest.mark.parametrize(("said", "line", "undo"), _GUESTS.values(), ids=_GUESTS)
async def test_a_guest_is_promised_no_undo_that_is_refused(tmp_path, said, line, undo):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        guest = system.person("wa:usr_1")
        answer = await guest.say(said)
        assert answer.reply.text.endswith(line)
        assert undo not in answer.reply.text
        assert undone(system, "told") == ["told"]


_HINTS = (
    "undo the last reminder", "undo the change to a.txt", "undo all that", "undo everything", "deshaz todo",
    "deshaz lo del recordatorio", "quita lo que acabas de poner", "delete notes.txt", "remove what you just wrote",
    "borra la primera línea de notas.txt", "vacía notas.txt", "could you fix the thing in that file of mine",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["secured", "react"])
async def test_a_guest_is_offered_no_undo_either(tmp_path, graph):
    async with open_system(tmp_path) as system:
        for number, words in enumerate(_HINTS):
            guest = system.person(f"wa:usr_{number}")
            for said in ("remind me tomorrow at 9 am to call Ana", words):
                answer = await guest.say(said, graph=graph)
            for promised in ("undo", "deshac", "deshaz"):
                assert promised not in answer.reply.text.replace(words, ""), words
