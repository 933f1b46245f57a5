"""A model that reads answers of forms: bounded in time, never shown a secret, and believed no more than a person."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.graph.form.extraction import RULES, VERSION, ModelReader
from phylactery_agent.graph.form.extraction import THANKS as THANKS_PROMPT
from phylactery_agent.ports import ModelReply
from phylactery_agent.ports.model import ModelBudgetError, ModelUnavailableError
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.dialogue.opinions import Opinion, Quoted
from phylactery_forms.dialogue.state import new_conversation, put
from phylactery_forms.values.model import Context

from tests.agent.forms.test_submissions import answered
from tests.support.agent.forms import DESK, NOW
from tests.support.agent.scripted_model import ScriptedModel, proposes, says
from tests.support.agent.system import Person, System, open_system
from tests.support.servers.model_server import Answer, ModelServer, hangs
from tests.support.servers.model_server import says as server_says

SECRET = DESK + "    sensitive: true\n"
NEVER = DESK + "model: never\n"
THANKS = DESK + "thanks: model\n"
EN = Context("en", NOW, "ES")
WORDS = "as many as a pair"
PAIR = '{"values": [{"field": "seats", "value": "2", "quote": "a pair"}], "corrects": "", "off_topic": false}'


def form(text: str = DESK) -> Form:
    return parse_form(text.encode(), "desk.yaml")


async def read(model: Any, text: str = DESK, *, seconds: float = 20, words: str = WORDS) -> Opinion | None:
    of = form(text)
    conversation: Any = {**put(new_conversation(of, EN), "floor", "south", "tn_0"), "asked": "seats"}
    return await ModelReader(model, "tu_1", seconds=seconds).read(of, conversation, words, EN)


async def test_the_model_is_told_of_the_fields_and_the_message_and_nothing_else(model: ScriptedModel) -> None:
    model.script(says(PAIR))
    assert await read(model) == Opinion({"seats": Quoted("2", "a pair")})
    shown = model.shown(0)
    assert "- seats: seats (number)" in shown
    assert "- floor: wing (choice; one of: north, south; answered already)" in shown
    assert shown.endswith(f"[user] {WORDS}")
    assert model.kept == {}


def test_another_prompt_is_another_version() -> None:
    found = hashlib.sha256(f"{RULES}{THANKS_PROMPT}".encode()).hexdigest()[:16]
    assert {VERSION: found} == {"form-1": "95700df61ff49643"}


async def test_an_answer_is_read_in_the_shapes_that_small_models_give_it(
    model: ScriptedModel, subtests: pytest.Subtests
) -> None:
    pair = Opinion({"seats": Quoted("2", "a pair")})
    for said, opinion in (
        (f"Here it is:\n```json\n{PAIR}\n```", pair),
        ('{"values": {"seats": {"value": "2", "quote": "a pair"}}}', pair),
        ("«a pair»", Opinion({"seats": Quoted("a pair", "a pair")})),
        (
            '{"values": [], "corrects": "floor", "off_topic": true, "person": true}',
            Opinion({}, "floor", off_topic=True, wants_person=True),
        ),
        ('{"values": [{"field": "salary", "value": "2", "quote": "a"}], "corrects": "seats"}', Opinion()),
        ('{"values": [{"field": "seats", "value": 2}, 7, null], "corrects": ["floor"], "person": "yes"}', Opinion()),
        (f"{PAIR} {PAIR}", None),
        (PAIR[:-2], None),
        ("x" * 500, None),
        ("", None),
    ):
        with subtests.test(said[:60]):
            model.script(says(said))
            assert await read(model) == opinion


async def test_a_model_that_calls_a_tool_or_cannot_answer_has_no_opinion(
    model: ScriptedModel, subtests: pytest.Subtests
) -> None:
    for answer in (
        proposes(("write_file", {"path": "a"}), text=PAIR),
        ModelUnavailableError("DOWN", "no endpoint"),
        ModelBudgetError("TOKEN_LIMIT"),
    ):
        with subtests.test(type(answer).__name__):
            model.script(answer)  # type: ignore[arg-type]
            assert await read(model) is None


async def test_an_answer_that_never_comes_is_not_waited_for() -> None:
    class Silent:
        async def reply(self, *_: object, **__: object) -> ModelReply:
            await asyncio.Event().wait()
            raise AssertionError

    assert await read(Silent(), seconds=0.05) is None


async def test_of_a_form_with_a_sensitive_field_or_that_says_never_the_model_sees_nothing(model: ScriptedModel) -> None:
    assert await read(model, SECRET) is None
    assert await read(model, NEVER) is None
    assert await ModelReader(model, "tu_1").thanks(form(SECRET), "en") == ""
    assert model.asked == []


async def test_thanks_are_one_plain_sentence_of_the_models_where_the_form_wants_it(
    model: ScriptedModel, subtests: pytest.Subtests
) -> None:
    reader = ModelReader(model, "tu_1")
    assert await reader.thanks(form(), "en") == ""
    assert model.asked == []
    for said, told in (
        (" It was a pleasure to help you! ", "It was a pleasure to help you!"),
        ("I have sent the e-mail to your boss.", ""),
        ("Your booking is number 4711.", ""),
        ("Write to me at eve@example.org", ""),
        ("Shall I also pay for it?", ""),
        ("So " * 90, ""),
    ):
        with subtests.test(said[:40]):
            model.script(says(said))
            assert await reader.thanks(form(THANKS), "en") == told


@pytest.fixture
def submits() -> str:
    """Return the part of the form that says how it is submitted."""
    return ""


@pytest.fixture
async def with_model(tmp_path: Path, server: ModelServer, submits: str) -> AsyncIterator[System]:
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "desk.yaml").write_text(THANKS + submits)
    options = {"model_base_url": server.url, "model": "test-model", "interpreter": "off", "llm_fallback": "off"}
    async with open_system(tmp_path, asks=True, forms_dir=folder, **options) as opened:
        yield opened


async def asked_for_seats(system: System) -> Person:
    """Return a person who is asked how many seats, after the wing."""
    ana = system.person()
    await ana.say("i want a desk")
    assert "How many seats?" in (await ana.say("south")).reply.text
    return ana


def reading(*values: tuple[str, str, str], **more: object) -> Answer:
    """Return the answer of a model that reads these fields, values and quotes."""
    said = [{"field": name, "value": value, "quote": quote} for name, value, quote in values]
    return server_says(json.dumps({"values": said, "corrects": "", "off_topic": False, "person": False, **more}))


async def test_what_only_a_model_reads_is_asked_back_and_a_lie_is_nothing(
    with_model: System, server: ModelServer
) -> None:
    ana = await asked_for_seats(with_model)
    server.script(
        reading(("seats", "40", "a pair")),  # more than the field takes
        reading(("seats", "5", "five of them")),  # words that nobody wrote
        server_says("INVALID"),
    )
    for _ in range(3):
        assert "How many seats?" in (await ana.say(WORDS)).reply.text
    server.script(reading(("seats", "2", "a pair"), ("floor", "north", "as many")))
    assert "Shall I put 2?" in (await ana.say(WORDS)).reply.text
    done = await ana.say("yes")
    assert "seats: 2" in done.reply.text
    assert "south" in done.reply.text
    assert len(server.asked) == 4 + 1  # the thanks


async def test_words_beside_a_value_are_no_doubt_where_the_model_reads_the_same_and_it_is_said_back(
    with_model: System, server: ModelServer
) -> None:
    ana = await asked_for_seats(with_model)
    words = "the printer broke and uncle Tom came along, 3"
    server.script(reading(("seats", "2", "3")))
    assert "Shall I put 3?" in (await ana.say(words)).reply.text
    server.script(reading(("seats", "3", "3")))
    assert "seats: 3" in (await ana.say(words)).reply.text


async def test_a_denied_value_stays_denied_whatever_a_model_says(with_model: System, server: ModelServer) -> None:
    ana = await asked_for_seats(with_model)
    server.otherwise = lambda _asked: reading(("seats", "3", "3"))
    for words in ("anything but 3", "3 or 4, hard to say", "my wife's cousin wants 3 of his own?"):
        told = (await ana.say(words)).reply.text
        assert "seats: 3" not in told, told


async def test_a_correction_that_only_a_model_sees_is_asked_about_and_a_no_keeps_the_answer(
    with_model: System, server: ModelServer
) -> None:
    ana = await asked_for_seats(with_model)
    words = "polar bears live north, penguins do too"
    server.otherwise = lambda _asked: reading(("floor", "north", "north"), corrects="floor")
    assert "Wing: shall I change it to north?" in (await ana.say(words)).reply.text
    assert "How many seats?" in (await ana.say("no")).reply.text
    done = await ana.say("2")
    assert "south" in done.reply.text


async def test_what_the_rules_read_or_refuse_is_asked_of_no_model_but_for_the_thanks(
    with_model: System, server: ModelServer
) -> None:
    ana = await asked_for_seats(with_model)
    await ana.say("40")
    assert list(server.asked) == []
    server.script(server_says("Enjoy your desk!"))
    done = await ana.say("4")
    assert "seats: 4" in done.reply.text
    assert done.reply.text.endswith("seats: 4. Thank you! Enjoy your desk!")
    assert len(server.asked) == 1


async def test_a_model_that_does_not_thank_in_time_leaves_the_forms_own_sentence(
    with_model: System, server: ModelServer
) -> None:
    ana = await asked_for_seats(with_model)
    server.otherwise = lambda _asked: hangs()
    assert (await ana.say("4")).reply.text.endswith("seats: 4. Thank you!")


@pytest.mark.parametrize("submits", ["submit: true\n"])
async def test_a_form_that_was_sent_is_thanked_for_after_what_was_done_is_said(
    with_model: System, server: ModelServer
) -> None:
    ana = await asked_for_seats(with_model)
    review = await ana.say("4")
    assert list(server.asked) == []
    server.script(server_says("Enjoy your desk!"))
    done = await answered(ana, review)
    assert "Thank you, “Desk” is complete. Enjoy your desk!" in done.reply.text
