"""What an undo came to, and what else a person reads of tools: in words, never by a tool's own name or code."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
from phylactery_agent.i18n.messages import is_message
from phylactery_agent.i18n.texts import named, say, step_text, tool_title, waiting_line, what_was_done
from phylactery_agent.ports import ApprovalRequest
from phylactery_agent.rules.undoing import read_undo
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import (
    BUILTIN_SPECS,
    CANCEL_REMINDER,
    CREATE_REMINDER,
    REMEMBER,
    UNDO_WRITE,
    WRITE_FILE,
)

from tests.support.agent.system import DONE, approval_of, open_system
from tests.support.cases import each_case
from tests.support.riskgate.low_stakes_bundle import runs_low_stakes

TOOLS = ToolRegistry()
NAMES = [spec.name for spec in BUILTIN_SPECS]
CODES = ("NOT_REVERSIBLE", "CHANGED_SINCE", "UNDO_FAILED", "NOT_BEGUN", "IN_DOUBT", "A_PLUG_INS_OWN", "TIMEOUT")


def shown(language, undone=(), left=()):
    told = json.dumps({"undone": list(undone), "left": list(left)})
    return UNDO_WRITE.quoted(told, language, lambda name: tool_title(name, language, TOOLS))


@each_case("language", ["en", "es"])
@each_case("name", ["", "call Ana"])
@each_case("tool", NAMES)
def test_what_is_taken_back_or_stays_is_told_in_words(tool, name, language):
    for code in CODES:
        told = shown(language, [{"tool": tool, "name": name}], [{"tool": tool, "name": name, "code": code}])
        for raw in (tool, code) if "_" in tool else (code,):
            assert raw not in told
    assert tool_title("send_email", language, TOOLS) in shown(language, left=[{"tool": "send_email", "code": "X"}])


@each_case("language", ["en", "es"])
@each_case("tool", [name for name in NAMES if "_" in name])
def test_no_sentence_about_a_tool_says_its_name(tool, language):
    title = tool_title(tool, language, TOOLS)
    asked = ApprovalRequest("ap_1", tool, "self")
    told = [
        what_was_done(tool, "", language, TOOLS),
        what_was_done(tool, "call Ana", language, TOOLS),
        step_text("", tool, language, TOOLS),
        step_text(tool, tool, language, TOOLS),
        waiting_line([asked], language, TOOLS),
        say("approval_required", language, tools=named([tool, tool], language, TOOLS)),
        *(say(key, language, tool=title) for key in ("still_pending", "effect_in_doubt", "done_tool")),
        say("ahead_approved", language, steps=title),
        say("tool_off", language, tool=title, why=""),
    ]
    assert is_message(f"tool_{tool}")
    assert [one for one in told if tool in one or not one] == []


async def approved(person, answer):
    """Approve what an answer asks about, if it does, and return the last answer."""
    if not answer.HasField("pending_approval"):
        return answer
    return await person.say("APPROVE {} {}".format(*approval_of(answer)))


SEVERAL = (
    ("remind me tomorrow at {} am to {}", "cancel all my reminders", "undo", "The reminder “{}” is set again."),
    ("recuérdame mañana a las {} am {}", "cancela todos mis recordatorios", "deshaz", "«{}» vuelve a estar puesto."),
)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "cancel", "undo", "told"), SEVERAL, ids=["en", "es"])
async def test_each_of_several_reminders_that_are_set_again_is_named(tmp_path, make, cancel, undo, told):
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        for hour, what in ((9, "uno; dos"), (10, "tres"), (11, "cuatro")):
            assert (await ana.say(make.format(hour, f'"{what}"'))).run.status == DONE
        assert (await approved(ana, await ana.say(cancel))).run.status == DONE
        again = (await ana.say(undo)).reply.text
        for what in ("uno; dos", "tres", "cuatro"):
            assert told.format(what) in again


_TOGETHER = {
    "en": 'remind me tomorrow at 9 am to call the bank; write "hello" to a.txt',
    "es": 'recuérdame mañana a las 9 de la mañana llamar al banco; escribe "hola" en a.txt',
}
_A_REMINDER = {
    "en": "remind me tomorrow at 9 am to call the bank",
    "es": "recuérdame mañana a las 9 am llamar al banco",
}
_EVERYTHING = (
    ("en", "undo everything"), ("en", "undo what you just did"), ("en", "please take it all back"),
    ("en", "cancel what you just did"), ("es", "deshaz todo"), ("es", "deshaz lo que acabas de hacer"),
)  # fmt: skip
_ONE_THING = (
    ("en", "undo the reminder"), ("en", "undo my last reminder"), ("en", "take the reminder back"),
    ("en", "undo that reminder"), ("en", "remove what you just added"), ("es", "deshaz el recordatorio"),
    ("es", "deshaz lo del recordatorio"), ("es", "quita lo que acabas de poner"), ("es", "borra lo que has puesto"),
)  # fmt: skip
_FILE = (
    ("en", "undo the change to a.txt"),
    ("en", "undo the changes in a.txt"),
    ("es", "deshaz lo de a.txt"),
    ("es", "deshaz el cambio de a.txt"),
)


@asynccontextmanager
async def after(tmp_path, *said):
    """Yield a system, and somebody in it who said that."""
    async with open_system(tmp_path, bundle=runs_low_stakes(tmp_path / "bundle")) as system:
        ana = system.person()
        for text in said:
            await ana.say(text)
        yield system, ana


async def left_after(system, ana, language, words):
    """Say words, and approve what is asked; return the reply, the files that are left and whether a reminder is."""
    answer = await approved(ana, await ana.say(words))
    asked = {"en": "what reminders do I have?", "es": "¿qué recordatorios tengo?"}[language]
    listed = (await ana.say(asked)).reply.text
    files = sorted(one.name for one in system.sandbox.iterdir())
    return answer.reply.text, files, "banco" in listed or "bank" in listed


@pytest.mark.slow
@pytest.mark.parametrize(("language", "words"), _EVERYTHING)
async def test_everything_is_what_the_last_turn_did_and_nothing_before_it(tmp_path, language, words):
    async with after(tmp_path, 'write "old" to old.txt', _TOGETHER[language]) as (system, ana):
        _, files, reminded = await left_after(system, ana, language, words)
        assert (files, reminded) == (["old.txt"], False)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "words"), _ONE_THING)
async def test_what_is_named_is_taken_back_where_it_is_all_that_was_done(tmp_path, language, words):
    async with after(tmp_path, 'write "old" to old.txt', _A_REMINDER[language]) as (system, ana):
        _, files, reminded = await left_after(system, ana, language, words)
        assert (files, reminded) == (["old.txt"], False)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "words"), _ONE_THING)
async def test_who_names_less_than_was_done_is_told_what_it_was(tmp_path, language, words):
    async with after(tmp_path, _TOGETHER[language]) as (system, ana):
        told, files, reminded = await left_after(system, ana, language, words)
        assert (files, reminded) == (["a.txt"], True)
        assert {"en": "set a reminder", "es": "puse un recordatorio"}[language] in told


@pytest.mark.slow
@pytest.mark.parametrize(("language", "words"), _ONE_THING[:2] + _ONE_THING[5:7])
async def test_what_an_earlier_turn_did_is_not_taken_back_silently(tmp_path, language, words):
    async with after(tmp_path, _A_REMINDER[language], 'write "hello" to a.txt') as (system, ana):
        told, files, reminded = await left_after(system, ana, language, words)
        assert (files, reminded) == (["a.txt"], True)
        assert {"en": "wrote to a file", "es": "escribí en un archivo"}[language] in told


@pytest.mark.slow
@pytest.mark.parametrize(("language", "words"), _FILE)
async def test_the_change_of_one_file_leaves_the_rest(tmp_path, language, words):
    async with after(tmp_path, _TOGETHER[language]) as (system, ana):
        _, files, reminded = await left_after(system, ana, language, words)
        assert (files, reminded) == ([], True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "words", "told"),
    [
        ("en", "undo everything except a.txt", "I took nothing back"),
        ("en", "undo what you did apart from the reminder", "I took nothing back"),
        ("es", "deshaz todo menos a.txt", "No he deshecho nada"),
        ("en", "don't undo it", "All right, it stays as it is."),
        ("es", "no lo deshagas", "De acuerdo, se queda como está."),
    ],
)
async def test_what_is_to_stay_stays_whatever_else_is_to_be_undone(tmp_path, language, words, told):
    async with after(tmp_path, _TOGETHER[language]) as (system, ana):
        said, files, reminded = await left_after(system, ana, language, words)
        assert (files, reminded) == (["a.txt"], True)
        assert said.startswith(told)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["undo everything", "undo the reminder", "deshaz lo del archivo", "undo both"])
async def test_where_nothing_was_done_nothing_is_taken_back_and_nobody_elses(tmp_path, words):
    async with after(tmp_path, _TOGETHER["en"]) as (system, _):
        assert not (answer := await system.person("ben").say(words)).HasField("pending_approval")
        assert "undo" not in answer.reply.text.split("“")[0]
        assert (system.sandbox / "a.txt").exists()


@each_case("words", [
    "don't undo everything", "never undo the reminder", "no deshagas todo", "delete everything", "borra todo",
    "undo the world", "she said: undo everything", "> undo the reminder", "what does undo everything do?",
    "borra el recordatorio", "undo the reminder to call the bank", "undo everything tomorrow",
])  # fmt: skip
def test_other_words_are_no_such_undo(words):
    assert read_undo(words) is None


_WROTE, _SET, _CANCELLED, _KEPT = WRITE_FILE.name, CREATE_REMINDER.name, CANCEL_REMINDER.name, REMEMBER.name


@each_case(
    ("done", "texts"),
    [
        # two of three, and two where there was one
        ((_SET, _SET, _SET), ("undo both", "undo both reminders", "undo the two reminders", "deshaz los dos avisos")),
        ((_WROTE, _SET, _WROTE), ("undo both of them", "deshaz las dos cosas", "deshaz ambos", "take both back")),
        ((_WROTE,), ("undo both", "deshaz los dos archivos", "undo both the files")),
        # what was cancelled is not set again by words that take something away
        (
            (_CANCELLED,),
            (
                "anula el recordatorio",
                "anular el aviso",
                "undo the reminder you just set",
                "undo the reminder you created",
                "deshaz el recordatorio que acabas de poner",
                "remove what you just created",
                "delete what you added",
                "borra lo que has creado",
                "quita lo que acabas de poner",
            ),
        ),
        ((_CANCELLED, _CANCELLED), ("anula mis recordatorios", "anula todos los recordatorios")),
        # what was done in another way
        ((_SET,), ("delete what you wrote", "borra lo que escribiste", "undo what you have written")),
        ((_WROTE,), ("undo what you set", "remove what you set up", "borra lo que has programado")),
        ((_KEPT,), ("undo what you wrote", "undo what you set")),
        # the order of a list
        ((_WROTE,), ("reverse the list", "reverse that text", "reverse my file", "reverse everything")),
    ],
)
def test_words_that_mean_something_else_than_what_was_done_take_nothing_back(done, texts):
    read = {text: read_undo(text) for text in texts}
    assert not [text for text, words in read.items() if words is not None and words.fits(done)]


@pytest.mark.parametrize(
    ("done", "texts"),
    [
        ((_SET, _SET), ("undo both", "undo both reminders", "deshaz los dos recordatorios", "undo my reminders")),
        ((_SET,), ("anula el recordatorio", "undo what you set up", "undo the reminder you just set")),
        ((_CANCELLED,), ("undo what you changed", "undo the change", "undo everything", "deshaz todo")),
        ((_WROTE,), ("delete what you wrote", "reverse what you did", "borra lo que escribiste", "undo the list")),
    ],
)
def test_words_that_mean_what_was_done_take_it_back(done, texts):
    read = {text: read_undo(text) for text in texts}
    assert not [text for text, words in read.items() if words is None or not words.fits(done)]
