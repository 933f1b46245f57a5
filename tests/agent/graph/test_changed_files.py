"""A file that others change after a run has read it is not replaced by what the run makes of the earlier version."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from phylactery.agent.v1 import chat_pb2
from phylactery_chassis.util.ids import new_id

from tests.support.agent.graph import Chat, Died, dies_at
from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system
from tests.support.servers.model_server import Answer, Exchange, ModelServer, calls, model_server, says

pytestmark = pytest.mark.asyncio(loop_scope="module")
BEFORE, OTHERS, OURS = "lista:\n- pan\n", "lista:\n- pan\n- leche (Luz)\n", "lista:\n- pan\n- queso\n"
ASKED = "pon queso en la lista de compra.txt"
READ = json.dumps({"steps": [{"tool": "read_file", "args": {"path": "compra.txt"}}, {"tool": "", "args": None}]})
_numbers = itertools.count(1)
Change = Callable[[Path], Any]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thinking(tmp_path_factory: pytest.TempPathFactory, endpoint: ModelServer) -> AsyncIterator[System]:
    options: dict[str, Any] = {"model_base_url": endpoint.url, "model": "test-model", "model_attempts": 1}
    async with open_system(tmp_path_factory.mktemp("changed"), **options) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with open_system(tmp_path_factory.mktemp("asking"), asks=True) as opened:
        yield opened


def somebody(system: System) -> tuple[Person, Path]:
    name = f"ana{next(_numbers)}"
    return system.person(name), system.sandbox_of(name) / "compra.txt"


def writes(content: str = OURS, **more: Any) -> Answer:
    return calls(("write_file", {"path": "compra.txt", "content": content, **more}))


def once(change: Callable[[], Any], answer: Answer) -> Answer:
    """Return a model's answer before which somebody changes something."""

    def given(exchange: Exchange) -> None:
        change()
        answer(exchange)

    return given


def recreate(path: Path) -> None:
    path.unlink()
    path.write_text(OTHERS)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_link(path: Path) -> None:
    path.rename(path.with_name("other.txt"))
    path.symlink_to("other.txt")


@pytest.mark.parametrize(
    "change",
    [lambda path: path.write_text(OTHERS), lambda path: path.write_text(""), recreate, Path.unlink, to_folder, to_link],
    ids=["changed", "emptied", "made anew", "removed", "a folder", "a link"],
)
async def test_what_others_did_between_read_and_write_stays(
    thinking: System, endpoint: ModelServer, change: Change
) -> None:
    ana, path = somebody(thinking)
    path.write_text(BEFORE)
    endpoint.script(says(READ), once(lambda: change(path), writes()), says("No he podido."))
    await ana.say(ASKED)
    assert not path.is_file() or path.read_text() in {OTHERS, "", BEFORE}
    assert path.exists() or change is Path.unlink
    assert path.is_symlink() is (change is to_link)


async def test_the_model_reads_again_and_writes_what_keeps_both(thinking: System, endpoint: ModelServer) -> None:
    ana, path = somebody(thinking)
    path.write_text(BEFORE)
    both = OTHERS + "- queso\n"
    endpoint.script(
        says(READ),
        once(lambda: path.write_text(OTHERS), writes()),
        calls(("read_file", {"path": "compra.txt"}), ("write_file", {"path": "compra.txt", "content": both})),
        says("Hecho."),
    )
    await yes(ana, await ana.say(ASKED))
    assert path.read_text() == both
    assert any("CHANGED_SINCE" in str(one["content"]) for request in endpoint.asked for one in request.messages)


async def test_the_same_bytes_again_or_an_addition_are_no_loss(thinking: System, endpoint: ModelServer) -> None:
    ana, path = somebody(thinking)
    path.write_text(BEFORE)
    endpoint.script(says(READ), once(lambda: recreate(path) or path.write_text(BEFORE), writes()), says("Hecho."))
    assert (await ana.say(ASKED)).run.status == DONE
    assert path.read_text() == OURS
    endpoint.script(says(READ), once(lambda: path.write_text(OTHERS), writes("- queso", append=True)), says("Hecho."))
    assert (await ana.say(ASKED, "t2")).run.status == DONE
    assert path.read_text() == OTHERS + "- queso\n"


async def test_what_the_run_itself_wrote_is_known_to_it(thinking: System, endpoint: ModelServer) -> None:
    ana, path = somebody(thinking)
    path.write_text(BEFORE)
    several = [("write_file", {"path": "compra.txt", "content": f"{OURS}{number}"}) for number in range(3)]
    endpoint.script(says(READ), calls(*several), says("Hecho."))
    await yes(ana, await ana.say(ASKED))
    assert path.read_text() == f"{OURS}2"
    added = ("write_file", {"path": "compra.txt", "content": "- más", "append": True})
    endpoint.script(says(READ), calls(added, several[0]), says("Hecho."))
    await yes(ana, await ana.say("añade más a compra.txt", "t2"))
    assert path.read_text() == f"{OURS}0"


@pytest.mark.parametrize("before", [BEFORE, None], ids=["there was one", "there was none"])
async def test_what_the_run_itself_took_back_is_known_to_it(
    thinking: System, endpoint: ModelServer, before: str | None
) -> None:
    ana, path = somebody(thinking)
    if before is not None:
        path.write_text(before)
    write = {"tool": "write_file", "args": {"path": "compra.txt", "content": "uno"}}
    endpoint.script(says(json.dumps({"steps": [write]})), says("Hecho."))
    await yes(ana, await ana.say("put something in compra.txt"))
    again = {"tool": "write_file", "args": {"path": "compra.txt", "content": "dos"}}
    steps = [{"tool": "undo_write", "args": {}}, again]
    endpoint.script(says(json.dumps({"steps": steps})), says("Hecho."))
    await yes(ana, await ana.say("undo that and put something else in compra.txt"))
    assert path.read_text() == "dos"


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("mete queso en compra.txt", "queso"),
        ("pon también queso en compra.txt", "queso"),
        ("put cheese in compra.txt too", "cheese"),
        ("change the first line of compra.txt to cheese", "cheese"),
    ],
)
async def test_a_list_that_is_added_to_is_not_replaced_unasked(
    thinking: System, endpoint: ModelServer, words: str, content: str
) -> None:
    ana, path = somebody(thinking)
    path.write_text(BEFORE)
    endpoint.script(
        says(json.dumps({"steps": [{"tool": "write_file", "args": {"path": "compra.txt", "content": content}}]}))
    )
    asked = await ana.say(words)
    assert asked.run.status == SUSPENDED
    assert "No se ha leído todo" in asked.reply.text or "Not all of what" in asked.reply.text
    assert path.read_text() == BEFORE


@pytest.mark.parametrize("reads", [False, True])
async def test_adding_to_a_long_file_loses_nothing_and_is_done(
    thinking: System, endpoint: ModelServer, reads: bool
) -> None:
    ana, path = somebody(thinking)
    book = "".join(f"line {number} of the book about lions\n" for number in range(6000))
    path.write_text(book)
    add = writes("finis", append=True)
    step = {"tool": "write_file", "args": {"path": "compra.txt", "content": "finis", "append": True}}
    if reads:
        endpoint.script(says(READ), add, says("Done."))
    else:
        endpoint.script(says(json.dumps({"steps": [step]})), says("Done."))
    assert (await ana.say("append finis to compra.txt")).run.status == DONE
    assert path.read_text() == f"{book}finis\n"


async def test_a_copy_of_the_part_that_was_shown_is_asked_about(thinking: System, endpoint: ModelServer) -> None:
    ana, path = somebody(thinking)
    book = "".join(f"line {number} of the book about lions\n" for number in range(6000))
    path.write_text(book)
    copied = calls(("write_file", {"path": "copia.txt", "content": book[:3000]}))
    endpoint.script(says(READ), copied)
    asked = await ana.say("copia compra.txt a copia.txt")
    assert asked.run.status == SUSPENDED
    assert "No se ha leído todo lo que esto reemplaza o copia" in asked.reply.text
    assert not path.with_name("copia.txt").exists()


async def test_another_conversation_of_the_same_person_counts_as_others(
    thinking: System, endpoint: ModelServer
) -> None:
    ana, path = somebody(thinking)
    path.write_text(BEFORE)
    masked = "API_KEY=«openai_key»\n"
    path.with_name("key.txt").write_text("API_KEY=sk-proj-Zt4Yq8Wn2Lk6Vb0Xc3Mf7Hj1\n")
    both = json.dumps(
        {"steps": [{"tool": "read_file", "args": {"path": name}} for name in ("compra.txt", "key.txt")]
         + [{"tool": "", "args": None}]}
    )  # fmt: skip
    endpoint.script(says(both), writes(OURS + masked))
    asked = await ana.say(ASKED)
    assert asked.run.status == SUSPENDED
    endpoint.script(says(READ), writes("- leche (Luz)", append=True), says("Hecho."))
    assert (await ana.say("añade leche (Luz) a compra.txt", "t2")).run.status == DONE
    endpoint.script(says("No he podido."))
    await answer(ana, asked.pending_approval)
    assert path.read_text() == OTHERS


async def yes(person: Person, said: Any) -> None:
    """Approve whatever is asked about until nothing is left."""
    while said.pending_approval.approval_id:
        said = await answer(person, said.pending_approval)
    assert said.run.status == DONE


async def answer(person: Person, card: Any) -> chat_pb2.AnswerApprovalResponse:
    values = {"approval_id": card.approval_id, "args_hash": card.args_hash, "approve": True}
    request = chat_pb2.AnswerApprovalRequest(request_id=new_id("request"), **values)
    return await person.chat.AnswerApproval(request, metadata=person.metadata, timeout=60)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('escribe "hola" en compra.txt', "el archivo ha cambiado desde la última vez que lo miré"),
        ('write "hola" to compra.txt', "the file has changed since I last looked at it"),
    ],
)
@pytest.mark.parametrize("before", [BEFORE, None], ids=["there was one", "there was none"])
async def test_a_yes_is_for_the_file_that_the_card_was_about(
    asking: System, words: str, told: str, before: str | None
) -> None:
    ana, path = somebody(asking)
    if before is not None:
        path.write_text(before)
    asked = await ana.say(words)
    assert asked.run.status == SUSPENDED
    path.write_text(OTHERS)
    await answer(ana, asked.pending_approval)
    assert path.read_text() == OTHERS
    assert told in (await ana.transcript())[-1][1]
    again = await ana.say(words, "t2")
    await answer(ana, again.pending_approval)
    assert path.read_text() == "hola"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('escribe "hola" en compra.txt', "esto se pidió antes de que me actualizaran"),
        ('write "hola" to compra.txt', "this was asked before I was updated"),
    ],
)
async def test_a_yes_to_what_was_asked_before_an_upgrade_replaces_nothing(
    asking: System, words: str, told: str
) -> None:
    ana, path = somebody(asking)
    path.write_text(BEFORE)
    asked = await ana.say(words)
    with closing(sqlite3.connect(asking.folder / "agent" / "agent.db")) as database, database:
        database.execute("UPDATE agent_tool_calls SET content_hash = ''")  # as a version before the column left it
    await answer(ana, asked.pending_approval)
    assert path.read_text() == BEFORE
    assert told in (await ana.transcript())[-1][1]
    await answer(ana, (await ana.say(words, "t2")).pending_approval)
    assert path.read_text() == "hola"


@pytest.mark.parametrize("words", ['escribe "hola" en compra.txt', 'añade "hola" a compra.txt'])
async def test_what_was_asked_before_an_upgrade_makes_a_file_or_adds_to_one(asking: System, words: str) -> None:
    ana, path = somebody(asking)
    if words.startswith("añade"):
        path.write_text(BEFORE)
    asked = await ana.say(words)
    with closing(sqlite3.connect(asking.folder / "agent" / "agent.db")) as database, database:
        database.execute("UPDATE agent_tool_calls SET content_hash = ''")
    await answer(ana, asked.pending_approval)
    assert path.read_text().rstrip("\n") == (f"{BEFORE}hola" if words.startswith("añade") else "hola")


async def test_two_writes_on_one_card_are_both_done(asking: System) -> None:
    ana, path = somebody(asking)
    path.write_text(BEFORE)
    await yes(ana, await ana.say('escribe "uno" en compra.txt y luego escribe "dos" en compra.txt'))
    assert path.read_text() == "dos"


@pytest.mark.parametrize("point", ["agent.6", "agent.7", "agent.8", "agent.write_file.noted", "agent.write_file.kept"])
async def test_what_others_write_while_the_process_is_down_stays(tmp_path: Path, point: str) -> None:
    chat = Chat(tmp_path)
    path = chat.sandbox / "compra.txt"
    path.write_text(BEFORE)
    await chat.say('escribe "hola" en compra.txt')
    with dies_at(point), pytest.raises(Died):
        await chat.say("APROBAR ap_waiting0 code-0-right")
    path.write_text(OTHERS)
    await chat.go_on()
    assert path.read_text() == OTHERS
    assert [row.error_code for row in chat.ledger.rows.values()] == ["CHANGED_SINCE"]
    assert sorted(one.name for one in chat.sandbox.iterdir()) == ["compra.txt"]


@pytest.mark.parametrize("point", ["agent.7", "agent.write_file.kept", "agent.write_file.renamed", "agent.9"])
async def test_a_death_without_others_replaces_once(tmp_path: Path, point: str) -> None:
    chat = Chat(tmp_path)
    path = chat.sandbox / "compra.txt"
    path.write_text(BEFORE)
    await chat.say('escribe "hola" en compra.txt')
    with dies_at(point), pytest.raises(Died):
        await chat.say("APROBAR ap_waiting0 code-0-right")
    await chat.go_on()
    assert path.read_text() == "hola"
    assert [(row.state, row.status) for row in chat.ledger.rows.values()] == [("finished", "success")]
