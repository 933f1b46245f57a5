"""What the rules know exactly is done as it was said, whatever a model makes of it; chatter is no answer to it."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system
from tests.support.servers.model_server import ModelServer, calls, model_server, says

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = itertools.count(1)
CHATTER = "That is a great idea! I love lists. I love lists. I love lists."
CLAIMS = "Done! I have written the file and set your reminder."
EVIL = json.dumps({"steps": [{"tool": "write_file", "args": {"path": "evil.txt", "content": "x"}, "goal": "go"}]})
LIES = {"chatter": says(CHATTER), "claims": says(CLAIMS), "nothing": says(""), "another plan": says(EVIL),
        "another call": calls(("write_file", {"path": "evil.txt", "content": "x"}))}  # fmt: skip
GRAPHS = ["secured", "react"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[System, ModelServer]]:
    with model_server() as server:
        options: dict[str, Any] = {"model_base_url": server.url, "model": "test-model", "model_attempts": 1}
        async with open_system(tmp_path_factory.mktemp("first"), model_breaker_failures=1_000, **options) as opened:
            yield opened, server


@pytest.fixture
def system(running: tuple[System, ModelServer]) -> System:
    return running[0]


@pytest.fixture
def server(running: tuple[System, ModelServer]) -> ModelServer:
    running[1].asked.clear()
    return running[1]


@pytest.fixture
def ana(system: System) -> Person:
    return system.person(f"ana{next(_numbers)}", "local")


def files(system: System, person: Person) -> dict[str, str]:
    subject, tenant = (value for _, value in person.metadata)
    folder = system.sandbox_of(subject, tenant)
    return {one.name: one.read_text() for one in folder.iterdir() if one.is_file()} if folder.exists() else {}


def note(system: System, person: Person) -> None:
    subject, tenant = (value for _, value in person.metadata)
    folder = system.sandbox_of(subject, tenant)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "note.txt").write_text("buy milk")


# (what is said, the tools that are called, the files there are then)
EXACT = [
    ("remind me tomorrow at 9 am to call the bank", ["create_reminder"], {}),
    ("recuérdame mañana a las 9 de la mañana llamar al banco", ["create_reminder"], {}),
    ('write "milk, eggs" to list.txt', ["write_file"], {"list.txt": "milk, eggs"}),
    ('escribe "leche y pan" en compra.txt', ["write_file"], {"compra.txt": "leche y pan"}),
    ('write "a" to a.txt and write "b" to b.txt', ["write_file", "write_file"], {"a.txt": "a", "b.txt": "b"}),
    ("remember that my sister is called Laura", ["remember"], {}),
]


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize(("words", "tools", "there"), EXACT)
async def test_what_the_rules_know_exactly_is_done_as_it_was_said(
    system: System, server: ModelServer, ana: Person, *, words: str, tools: list[str], there: dict[str, str], lie: str
) -> None:
    server.otherwise = lambda _asked: LIES[lie]
    answer = await ana.say(words, graph="secured")
    assert (answer.run.status, [one.tool for one in answer.run.tool_calls]) == (DONE, tools)
    assert files(system, ana) == there
    assert CHATTER not in answer.reply.text
    assert CLAIMS not in answer.reply.text


@pytest.mark.parametrize("words", [words for words, _, _ in EXACT[:4]])
async def test_the_react_graph_does_it_too(system: System, server: ModelServer, ana: Person, words: str) -> None:
    server.otherwise = lambda _asked: says(CHATTER)
    answer = await ana.say(words, graph="react")
    assert "evil.txt" not in files(system, ana)
    assert [one.tool for one in answer.run.tool_calls if one.tool != "echo"], "it was done, not chatted about"


# (what is said, the tool that reads, what the answer has)
LOOKED_AT = [
    ("read note.txt", "read_file", "buy milk"),
    ("lee note.txt, por favor", "read_file", "buy milk"),
    ("what files are there?", "list_dir", "note.txt"),
    ("qué archivos hay", "list_dir", "note.txt"),
    ("show my reminders", "list_reminders", ""),
    ("search for milk in my files", "search_files", "buy milk"),
]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_what_is_only_read_needs_no_model(
    system: System, server: ModelServer, ana: Person, subtests: pytest.Subtests, *, graph: str
) -> None:
    note(system, ana)
    for lie in LIES:
        server.otherwise = lambda _asked, said=lie: LIES[said]  # type: ignore[misc]
        for words, tool, there in LOOKED_AT:
            with subtests.test(f"{lie}: {words}"):
                answer = await ana.say(words, f"t{next(_numbers)}", graph=graph)
                called = [one.tool for one in answer.run.tool_calls if one.tool != "echo"]
                assert (answer.run.status, called) == (DONE, [tool])
                assert there in answer.reply.text
    assert server.asked == []


@pytest.mark.parametrize("graph", GRAPHS)
async def test_where_a_request_only_reads_a_model_is_offered_nothing_that_changes(
    system: System, server: ModelServer, ana: Person, subtests: pytest.Subtests, *, graph: str
) -> None:
    note(system, ana)
    for words in ("explain note.txt", "resume note.txt", "where do I live?", "search for milk"):
        for lie in (EVIL, ""):
            with subtests.test(f"{words}, {lie}"):
                server.otherwise = lambda _asked, plan=lie: says(plan) if plan else LIES["another call"]  # type: ignore[misc]
                answer = await ana.say(words, f"t{next(_numbers)}", graph=graph)
                assert answer.run.status == DONE
                assert not {one.tool for one in answer.run.tool_calls} & {"write_file", "send_email"}
    assert server.asked
    assert not {"write_file", "send_email", "remember"} & {tool for asked in server.asked for tool in asked.tools}
    assert files(system, ana) == {"note.txt": "buy milk"}


# What the rules read, though a model may know better what is meant.
READ = [
    ("write milk and eggs to list.txt", "write_file"),
    ("escribe leche y pan en compra.txt", "write_file"),
    ("review note.txt", "read_file"),
    ("where do I live?", "recall"),
]


@pytest.mark.parametrize(("words", "tool"), READ)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("said", [CHATTER, CLAIMS, "I am only a language model, I cannot do that."])
async def test_chatter_is_no_answer_to_what_the_rules_read(
    system: System, server: ModelServer, ana: Person, *, words: str, tool: str, said: str, graph: str
) -> None:
    note(system, ana)
    server.otherwise = lambda _asked: says(said)
    answer = await ana.say(words, graph=graph)
    assert answer.run.status in {DONE, SUSPENDED}
    assert tool in [one.tool for one in answer.run.tool_calls] or answer.pending_approval.tool == tool
    assert said not in answer.reply.text


@pytest.mark.parametrize("words", ["write something nice to list.txt", "tell me a story", "is it going to rain?"])
async def test_what_only_a_model_can_do_is_left_to_it(server: ModelServer, ana: Person, words: str) -> None:
    server.otherwise = lambda _asked: says("What would you like it to say?")
    answer = await ana.say(words, graph="secured")
    assert server.asked
    assert "What would you like it to say?" in answer.reply.text


async def test_a_question_of_the_model_waits_for_its_reply(system: System, server: ModelServer, ana: Person) -> None:
    server.otherwise = lambda _asked: says("Shall I write the list with one item a line?")
    answer = await ana.say("write milk and eggs to list.txt", graph="secured")
    assert "one item a line?" in answer.reply.text
    assert files(system, ana) == {}


async def test_a_model_s_plan_for_words_it_is_free_to_understand_goes_first(
    system: System, server: ModelServer, ana: Person
) -> None:
    server.script(calls(("write_file", {"path": "list.txt", "content": "- milk\n- eggs\n"})), says("Done."))
    await ana.say("write milk and eggs to list.txt", graph="secured")
    assert files(system, ana) in ({"list.txt": "- milk\n- eggs\n"}, {})
    assert server.asked


BETTER = [
    ("write an apology to my boss in mail.txt", "Dear boss, I am sorry that I was late. I can save this if you like."),
    ("escribe una disculpa a mi jefe en carta.txt", "Querido jefe: lamento el retraso de ayer."),
    ("write a short invitation to party.txt", "Come to our party on Friday."),
    ("escribe un brindis para la boda en boda.txt", "Por los novios."),
    ("search for cats", "I cannot look that up. Cats are small hunters that live with people."),
    ("busca gatos", "No puedo buscar en internet. Los gatos son felinos."),
    ("search for the meaning of serendipity", "It is a lucky find."),
]


@pytest.mark.parametrize(("words", "said"), BETTER)
@pytest.mark.parametrize("graph", GRAPHS)
async def test_where_the_model_may_know_better_its_words_are_the_answer(
    system: System, server: ModelServer, ana: Person, *, words: str, said: str, graph: str
) -> None:
    server.otherwise = lambda _asked: says(said)
    answer = await ana.say(words, graph=graph)
    assert (answer.run.status, answer.pending_approval.approval_id) == (DONE, "")
    assert said in answer.reply.text
    assert not answer.run.tool_calls
    assert files(system, ana) == {}


@pytest.mark.parametrize("words", ["search for cats in my files", "busca gatos en mis archivos"])
async def test_a_search_of_files_is_one_whatever_the_model_says(server: ModelServer, ana: Person, words: str) -> None:
    server.otherwise = lambda _asked: says(CHATTER)
    answer = await ana.say(words, graph="secured")
    assert [one.tool for one in answer.run.tool_calls] == ["search_files"]
    assert CHATTER not in answer.reply.text
