"""A model that reads answers of forms: bounded in time, never shown a secret, and believed no more than a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.graph.form.extraction import ModelExtractor
from phylactery_agent.ports import ModelReply
from phylactery_agent.ports.model import ModelBudgetError, ModelUnavailableError
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.values.model import Context

from tests.support.agent.forms import NOW
from tests.support.agent.scripted_model import ScriptedModel, proposes, says
from tests.support.agent.system import System, open_system
from tests.support.servers.model_server import ModelServer
from tests.support.servers.model_server import says as server_says

SEATS = """
id: desk
version: 1
title: {es: Puesto, en: Desk}
description: {es: Pide un puesto., en: Asks for a desk.}
triggers: {es: [quiero un puesto], en: [i want a desk]}
fields:
  - id: floor
    type: choice
    options: {choices: [north, south]}
    label: {es: ala, en: wing}
    ask: {es: "¿Qué ala?", en: "Which wing?"}
  - id: seats
    type: number
    options: {maximum: 9}
    label: {es: sitios, en: seats}
    ask: {es: "¿Cuántos sitios?", en: "How many seats?"}
"""
SECRET = SEATS + "    sensitive: true\n"
EN = Context("en", NOW, "ES")


def form(text: str = SEATS) -> Form:
    return parse_form(text.encode(), "desk.yaml")


async def read(model: Any, text: str = SEATS, *, name: str = "seats", seconds: float = 20) -> str | None:
    of = form(text)
    return await ModelExtractor(model, "tu_1", seconds=seconds).extract(of, of.by_id[name], "as many as a pair", EN)


async def test_the_model_is_asked_for_one_value_and_told_nothing_else(model: ScriptedModel) -> None:
    model.script(says(" «2» "))
    assert await read(model) == "2"
    shown = model.shown(0)
    assert "seats" in shown
    assert shown.endswith("[user] as many as a pair")
    assert model.kept == {}


async def test_the_options_of_a_choice_are_named(model: ScriptedModel) -> None:
    model.script(says("north"))
    assert await read(model, name="floor") == "north"
    assert "north, south" in model.shown(0)


async def test_a_value_is_asked_for_as_json_and_is_taken_from_what_is_written_around_it(
    model: ScriptedModel, subtests: pytest.Subtests
) -> None:
    for said in ('{"value": "north"}', 'Here it is:\n```json\n{"value": " north "}\n```', "«north»"):
        with subtests.test(said):
            model.script(says(said))
            assert await read(model, name="floor") == "north"
    for said in ('{"value": ["north"]}', '{"value": "north"', '{"floor": "north"}', '{"value": "a"} {"value": "b"}'):
        with subtests.test(said):
            model.script(says(said))
            assert await read(model, name="floor") is None


@pytest.mark.parametrize("answer", [says(""), says("x" * 500), proposes(("write_file", {"path": "a"}), text="2")])
async def test_an_answer_that_is_no_value_is_none(model: ScriptedModel, answer: ModelReply) -> None:
    model.script(answer)
    assert await read(model) is None


@pytest.mark.parametrize("error", [ModelUnavailableError("DOWN", "no endpoint"), ModelBudgetError("TOKEN_LIMIT")])
async def test_a_model_that_cannot_answer_leaves_the_rules_alone(model: ScriptedModel, error: Exception) -> None:
    model.script(error)  # type: ignore[arg-type]
    assert await read(model) is None


async def test_an_answer_that_never_comes_is_not_waited_for() -> None:
    class Silent:
        async def reply(self, *_: object, **__: object) -> ModelReply:
            await asyncio.Event().wait()
            raise AssertionError

    assert await read(Silent(), seconds=0.05) is None


@pytest.mark.parametrize("name", ["floor", "seats"])
async def test_of_a_form_with_a_sensitive_field_the_model_reads_nothing(model: ScriptedModel, name: str) -> None:
    assert await read(model, SECRET, name=name) is None
    assert model.asked == []


@pytest.fixture
async def with_model(tmp_path: Path, server: ModelServer) -> AsyncIterator[System]:
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "desk.yaml").write_text(SEATS)
    options = {"model_base_url": server.url, "model": "test-model", "interpreter": "off", "llm_fallback": "off"}
    async with open_system(tmp_path, asks=True, forms_dir=folder, **options) as opened:
        yield opened


async def test_what_the_model_reads_is_validated_as_any_answer(with_model: System, server: ModelServer) -> None:
    ana = with_model.person()
    await ana.say("i want a desk")
    await ana.say("south")
    server.script(server_says("40"), server_says("NOT_PROVIDED"), server_says("INVALID"), server_says("2"))
    for _ in range(3):
        assert "How many seats?" in (await ana.say("as many as a pair")).reply.text
    done = await ana.say("as many as a pair")
    assert "seats: 2" in done.reply.text
    assert len(server.asked) == 4


async def test_what_the_rules_read_or_refuse_is_asked_of_no_model(with_model: System, server: ModelServer) -> None:
    ana = with_model.person()
    await ana.say("i want a desk")
    await ana.say("south")
    await ana.say("40")
    done = await ana.say("4")
    assert "seats: 4" in done.reply.text
    assert list(server.asked) == []
