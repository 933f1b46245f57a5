"""A model that writes back a mask or a part of a file: the person is asked first, and told what would be lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent.system import DONE, SUSPENDED, System, open_system
from tests.support.servers.model_server import ModelServer, calls, model_server, says

KEY = "sk-proj-" + "Zt4Yq8Wn2Lk6Vb0Xc3Mf7Hj1"
CONFIG = f"API_KEY={KEY}\ndebug=false\n"
THEN = '{"steps": [{"tool": "read_file", "args": {"path": "%s"}}, {"tool": "", "args": null}]}'


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
async def thinking(tmp_path: Path, endpoint: ModelServer) -> AsyncIterator[System]:
    options: dict[str, Any] = {"model_base_url": endpoint.url, "model": "test-model", "model_attempts": 1}
    async with open_system(tmp_path, **options) as opened:
        yield opened


@pytest.mark.parametrize("mask", ["«openai_key»", "[REDACTED]"])
async def test_the_mask_over_a_key_is_asked_about(thinking: System, endpoint: ModelServer, mask: str) -> None:
    (thinking.sandbox / "config.ini").write_text(CONFIG)
    content = f"API_KEY={mask}\ndebug=true\n"
    endpoint.script(
        says(THEN % "config.ini"), calls(("write_file", {"path": "config.ini", "content": content})), says("Hecho.")
    )
    asked = await thinking.person("ana").say("en config.ini cambia debug a true")
    assert asked.run.status == SUSPENDED
    assert "el secreto mismo se perdería" in asked.reply.text
    assert (thinking.sandbox / "config.ini").read_text() == CONFIG


@pytest.mark.parametrize(
    "content",
    [
        "debug=true\n",
        "API_KEY=***\ndebug=true\n",
        "API_KEY=your-key-here\ndebug=true\n",
        "API_KEY=«openai_\ndebug=true\n",
    ],
    ids=["left out", "stars", "a name for it", "half a mask"],
)
async def test_whatever_replaces_a_file_with_a_masked_key_in_it_is_asked_about(
    thinking: System, endpoint: ModelServer, content: str
) -> None:
    (thinking.sandbox / "config.ini").write_text(CONFIG)
    endpoint.script(
        says(THEN % "config.ini"), calls(("write_file", {"path": "config.ini", "content": content})), says("Hecho.")
    )
    asked = await thinking.person("ana").say("en config.ini cambia debug a true")
    assert asked.run.status == SUSPENDED
    assert "se perdería" in asked.reply.text
    assert (thinking.sandbox / "config.ini").read_text() == CONFIG


async def test_adding_to_it_and_replacing_a_file_with_an_address_in_it_are_not(
    thinking: System, endpoint: ModelServer
) -> None:
    (thinking.sandbox / "config.ini").write_text(CONFIG)
    (thinking.sandbox / "people.txt").write_text("Luis 600 123 456, luis@example.org\nn=1\n")
    adds = {"path": "config.ini", "content": "debug=true", "append": True}
    endpoint.script(says(THEN % "config.ini"), calls(("write_file", adds)), says("Hecho."))
    assert (await thinking.person("ana").say("añade debug=true a config.ini")).run.status == DONE
    content = {"path": "people.txt", "content": "Luis 600 123 456, luis@example.org\nn=2\n"}
    endpoint.script(says(THEN % "people.txt"), calls(("write_file", content)), says("Hecho."))
    assert (await thinking.person("ana").say("en people.txt cambia n a 2", "t2")).run.status == DONE
    assert (thinking.sandbox / "people.txt").read_text() == content["content"]


async def test_the_mark_of_a_stored_output_over_a_file_is_asked_about(thinking: System, endpoint: ModelServer) -> None:
    book = "una línea del libro\n" * 6_000
    (thinking.sandbox / "libro.txt").write_text(book)
    content = "[EVICTED size=120000] See out_abcdefghijklmnopqrstuvwxyz\nFIN\n"
    endpoint.script(
        says(THEN % "libro.txt"), calls(("write_file", {"path": "libro.txt", "content": content})), says("Hecho.")
    )
    asked = await thinking.person("ana").say("en libro.txt cambia el final por FIN")
    assert asked.run.status == SUSPENDED
    assert "el resto se perdería" in asked.reply.text
    assert (thinking.sandbox / "libro.txt").read_text() == book


async def test_a_file_that_the_model_did_not_read_is_asked_about_before_it_is_replaced(
    thinking: System, endpoint: ModelServer
) -> None:
    (thinking.sandbox / "compra.txt").write_text("lista:\n- pan\n- leche\n")
    step = {"tool": "write_file", "args": {"path": "compra.txt", "content": "lista:\n- pan\n- queso\n"}}
    endpoint.script(says(json.dumps({"steps": [step]})), says("Hecho."))
    asked = await thinking.person("ana").say("pon queso en la lista de compra.txt")
    assert asked.run.status == SUSPENDED
    assert "No se ha leído todo lo que esto reemplaza" in asked.reply.text
    assert (thinking.sandbox / "compra.txt").read_text() == "lista:\n- pan\n- leche\n"
