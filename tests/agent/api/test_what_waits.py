"""What a person is told of what waits: what it is, once, in one statement, and how it is answered where they are."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from importlib.resources import files

import pytest
import pytest_asyncio
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery.riskgate.v1 import approval_pb2

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = itertools.count(1)
WAITS = ("still need", "waiting for your yes", "Aún espero", "esperan tu sí")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with open_system(tmp_path_factory.mktemp("waits"), asks=True) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    return system.person(f"ana{next(_numbers)}", "local")


@pytest.fixture
def guest(system: System) -> Person:
    return system.person(f"wa:usr_{next(_numbers)}", "local")


def waits(text: str) -> bool:
    return any(one in text for one in WAITS)


@pytest.mark.parametrize(
    ("asked", "other", "on_request"),
    [
        ('write "hello" to plan-b.txt', "what time is it?", "what is waiting?"),
        ('escribe "hola" en plan-b.txt', "¿qué hora es?", "¿qué está esperando?"),
        ('append "milk" to plan-b.txt', "what reminders do I have?", "what is waiting?"),
    ],
)
async def test_what_waits_is_named_once_and_then_on_request(
    ana: Person, asked: str, other: str, on_request: str
) -> None:
    await ana.say(asked)
    first, second, third = [(await ana.say(other)).reply.text for _ in range(3)]
    assert waits(first)
    assert "plan-b.txt" in first
    assert not waits(second)
    assert not waits(third)
    again = (await ana.say(on_request)).reply.text
    assert waits(again)
    assert "plan-b.txt" in again
    assert len((await ana.thread()).pending_approvals) == 1


async def test_what_waits_for_a_guest_is_named_once(guest: Person) -> None:
    await guest.say("remind me tomorrow at 9 am to call Marta")
    first, second = [(await guest.say("thanks")).reply.text for _ in range(2)]
    assert waits(first)
    assert "Marta" in first
    assert not waits(second)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ('write "a" to a.txt', 'write "b" to b.txt', "This was cancelled"),
        ('escribe "a" en a.txt', 'escribe "b" en b.txt', "Esto se ha cancelado"),
    ],
)
async def test_a_reply_that_says_that_something_waits_no_more_says_nothing_of_what_does(
    system: System, ana: Person, one: str, other: str, told: str
) -> None:
    card = (await ana.say(one)).pending_approval
    await ana.say(other)
    request = approval_pb2.CancelRequest(approval_id=card.approval_id, thread_id="t1")
    await ana.approvals.Cancel(request, metadata=ana.metadata)
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    said = (await ana.transcript())[-1][1]
    assert told in said
    assert "a.txt" in said
    assert not waits(said)


@pytest.mark.parametrize("command", ["/approve", "/reject", "/approve 2", "/reject ap_whatever"])
async def test_a_command_of_the_terminal_is_one_question_where_something_waits(
    system: System, ana: Person, command: str
) -> None:
    await ana.say('write "a" to a.txt')
    told = (await ana.say(command)).reply.text
    assert told.startswith("It is not clear what you are answering")
    assert "Nothing is waiting" not in told
    assert told.count("a.txt") == 1
    assert len((await ana.thread()).pending_approvals) == 1


@pytest.mark.parametrize(("command", "status"), [("/approve", True), ("/reject", False)])
async def test_a_command_of_the_terminal_answers_exactly_what_was_shown(
    system: System, ana: Person, command: str, status: bool
) -> None:
    card = (await ana.say('write "a" to a.txt')).pending_approval
    shown = [{"approval_id": card.approval_id, "args_hash": card.args_hash}]
    assert (await ana.say(command, shown_approvals=shown)).run.status == DONE
    subject = dict(ana.metadata)["x-phylactery-subject"]
    assert (system.sandbox_of(subject, "local") / "a.txt").exists() is status


@pytest.mark.parametrize("language", ["en", "es"])
def test_no_text_of_the_agent_names_a_command_of_the_terminal(language: str) -> None:
    texts = (files("phylactery_agent.i18n") / f"{language}.ftl").read_text(encoding="utf-8")
    assert "/approve" not in texts
    assert "/reject" not in texts


EXPIRING = [
    ('write "hello" to late.txt', "again", "Nobody answered in time"),
    ('write "hello" to late.txt', "do it again please", "Nobody answered in time"),
    ('escribe "hola" en late.txt', "otra vez", "Nadie respondió a tiempo"),
    ('añade "hola" a late.txt', "hazlo de nuevo", "Nadie respondió a tiempo"),
]


async def expires(system: System, person: Person, thread_id: str = "t1") -> str:
    """Let what waits expire, and return what the person is told."""
    system.clock.advance(601)
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    return (await person.transcript(thread_id))[-1][1]


@pytest.mark.parametrize(("asked", "again", "told"), EXPIRING)
async def test_what_expired_is_named_and_asked_again_as_a_new_question(
    system: System, ana: Person, asked: str, again: str, told: str
) -> None:
    first = await ana.say(asked)
    said = await expires(system, ana)
    assert told in said
    assert "late.txt" in said
    second = await ana.say(again)
    old, new = first.pending_approval, second.pending_approval
    assert (second.run.status, new.tool) == (SUSPENDED, old.tool)
    assert new.approval_id != old.approval_id
    assert second.run.id != first.run.id
    subject = dict(ana.metadata)["x-phylactery-subject"]
    assert not (system.sandbox_of(subject, "local") / "late.txt").exists(), "the old question decides nothing"
    done = await ana.say(f"APPROVE {new.approval_id} {new.code}")
    assert done.run.status == DONE
    assert (system.sandbox_of(subject, "local") / "late.txt").exists()


@pytest.mark.parametrize(
    ("asked", "again"),
    [
        ("remind me tomorrow at 9 am to call Marta", "again"),
        ("recuérdame mañana a las 9 de la mañana llamar a Marta", "otra vez"),
    ],
)
async def test_a_guest_is_told_what_expired_and_asks_again(
    system: System, guest: Person, asked: str, again: str
) -> None:
    first = await guest.say(asked)
    assert "Marta" in await expires(system, guest)
    second = await guest.say(again)
    assert second.pending_approval.approval_id not in {"", first.pending_approval.approval_id}


@pytest.mark.parametrize(
    ("asked", "answers", "again"),
    [
        ('write "hello" to late.txt', ("yes",), "again"),
        ('write "hello" to late.txt', ("yes please", "go ahead", "👍"), "do it again please"),
        ('escribe "hola" en late.txt', ("sí", "sí, hazlo"), "otra vez"),
        ('añade "hola" a late.txt', ("no",), "hazlo de nuevo"),
    ],
)
async def test_what_expired_is_asked_again_after_an_answer_that_came_too_late(
    ana: Person, system: System, asked: str, answers: Sequence[str], again: str
) -> None:
    first = await ana.say(asked)
    await expires(system, ana)
    for answer in answers:
        assert not (await ana.say(answer)).HasField("pending_approval")
    second = await ana.say(again)
    assert second.pending_approval.approval_id not in {"", first.pending_approval.approval_id}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ('escribe "x" en a.txt', "sí si es gratis"),
        ('escribe "x" en a.txt', "sí (creo)"),
        ('escribe "x" en a.txt', "supongo"),
        ('escribe "x" en a.txt', "n"),
        ('escribe "x" en a.txt', "negativo"),
        ('write "x" to a.txt', "yes, I think"),
        ('write "x" to a.txt', "yes if it is safe"),
    ],
)
async def test_half_an_answer_is_told_in_one_statement_what_still_waits(ana: Person, asked: str, words: str) -> None:
    await ana.say(asked)
    told = (await ana.say(words)).reply.text
    assert told in (f"Aún espero tu sí o tu no: «{asked}».", f"I still need your yes or no: “{asked}”.")
    assert len((await ana.thread()).pending_approvals) == 1


@pytest.mark.parametrize(
    ("asked", "words", "dropped"),
    [
        ('escribe "x" en a.txt', "para todo, por favor", "De acuerdo, lo dejo así."),
        ('escribe "x" en a.txt', "sí pero no", "De acuerdo, lo dejo así."),
        ('write "x" to a.txt', "yes but not today", "All right, I leave it at that."),
        ('write "x" to a.txt', "the first one yes, the second no", "All right, I leave it at that."),
    ],
)
async def test_what_is_taken_back_in_more_words_than_are_understood_is_told_to_be_left(
    ana: Person, system: System, asked: str, words: str, dropped: str
) -> None:
    await ana.say(asked)
    assert (await ana.say(words)).reply.text == dropped
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    told = (await ana.transcript())[-1][1]
    assert "a.txt" in told, "which one is told in a message of its own"
    assert not (await ana.thread()).pending_approvals


@pytest.mark.parametrize("words", ["supongo", "sí (creo)", "yes if it is safe"])
async def test_where_only_what_was_not_understood_waits_nothing_is_pending(ana: Person, words: str) -> None:
    assert (await ana.say("zas zas")).run.reason == "AWAITING_USER_INPUT"
    assert (await ana.say(words)).reply.text in (
        "Aquí no hay nada pendiente de tu respuesta.",
        "Nothing is waiting for your answer here.",
    )


async def test_what_expired_long_ago_is_not_asked_again(system: System, ana: Person) -> None:
    await ana.say('write "hello" to late.txt')
    await expires(system, ana)
    system.clock.advance(3_601)
    assert not (await ana.say("again")).HasField("pending_approval")


def shown_in(events: Sequence[event_pb2.Event]) -> list[dict[str, str]]:
    """Return the approvals of each card among the events, with the hashes that were shown."""
    cards = [one.approval_required for one in events if one.WhichOneof("kind") == "approval_required"]
    return [{one.approval_id: one.args_hash for one in (card, *card.also)} for card in cards]


def answers(shown: dict[str, str]) -> list[chat_pb2.ShownApproval]:
    return [chat_pb2.ShownApproval(approval_id=name, args_hash=args_hash) for name, args_hash in shown.items()]


@pytest.mark.parametrize("graph", ["secured", "react"])
@pytest.mark.parametrize(
    ("said", "done"),
    [
        (('write "hello" to again.txt', "what time is it?", "yes"), True),
        (('write "hello" to again.txt', "thanks", "no"), False),
        (('escribe "hola" en again.txt', "¿qué hora es?", "dale"), True),
        (('escribe "hola" en again.txt', "hola", "mejor no"), False),
        (('append "one" to again.txt', "", "yes"), True),
        (('write "hello" to again.txt', "read nothing-there.txt", "yes"), True),
        (('escribe "hola" en again.txt', "lee no-existe.txt", "mejor no"), False),
    ],
)
async def test_after_an_answer_that_is_not_clear_the_one_card_is_shown_again_and_then_answered(
    system: System, ana: Person, graph: str, said: tuple[str, str, str], done: bool
) -> None:
    asked, between, word = said
    first = (await ana.say(asked, graph=graph)).pending_approval
    if between:
        await ana.say(between)
    [card] = shown_in(await ana.stream(word))
    assert card == {first.approval_id: first.args_hash}
    there = system.sandbox_of(dict(ana.metadata)["x-phylactery-subject"], "local") / "again.txt"
    assert not there.exists()
    assert (await ana.say(word, shown_approvals=answers(card))).run.status == DONE
    assert there.exists() is done
    assert not (await ana.thread()).pending_approvals


async def test_of_a_card_shown_again_only_what_is_not_answered_is_on_it(ana: Person) -> None:
    card = (await ana.say('append "1" to a.txt and append "2" to b.txt and append "3" to c.txt')).pending_approval
    await ana.say(f"APPROVE {card.also[0].approval_id} {card.also[0].code}")
    [again] = shown_in(await ana.stream("yes"))
    assert list(again) == [card.approval_id, card.also[1].approval_id]


async def test_where_several_wait_no_card_is_shown_again_as_if_it_were_the_one_that_is_meant(ana: Person) -> None:
    await ana.say('write "a" to a.txt')
    await ana.say('write "b" to b.txt')
    assert shown_in(await ana.stream("yes")) == []


@pytest.mark.parametrize(
    ("asked", "stop", "again"),
    [
        ('write "hello" to stopped.txt', "cancel", "again"),
        ('write "hello" to stopped.txt', "STOP!!!", "do it again please"),
        ('write "hello" to stopped.txt', "never mind", "again"),
        ('escribe "hola" en stopped.txt', "para", "otra vez"),
        ('escribe "hola" en stopped.txt', "cancela todo", "hazlo de nuevo"),
    ],
)
async def test_what_was_stopped_is_asked_again_as_a_new_question(
    system: System, ana: Person, asked: str, stop: str, again: str
) -> None:
    first = (await ana.say(asked)).pending_approval
    assert "stopped.txt" in (await ana.say(stop)).reply.text
    second = await ana.say(again)
    assert second.pending_approval.approval_id not in {"", first.approval_id}, second.reply.text
    subject = dict(ana.metadata)["x-phylactery-subject"]
    assert not (system.sandbox_of(subject, "local") / "stopped.txt").exists()


async def test_after_a_stop_only_words_that_ask_again_bring_back_what_was_stopped(ana: Person) -> None:
    await ana.say('write "hello" to stopped.txt')
    await ana.say("cancel")
    for words in ("to other.txt", "in other.txt instead", "the other one", "cancel", "yes"):
        assert not (await ana.say(words)).HasField("pending_approval"), words


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ('write "hello" to back.txt', "yes and no"),
        ('write "hello" to back.txt', "no, yes"),
        ('write "hello" to back.txt', "yes, don't"),
        ('escribe "hola" en back.txt', "ni de coña"),
        ('escribe "hola" en back.txt', "sí no sé"),
    ],
)
async def test_what_was_taken_back_is_not_said_to_wait_beside_it(
    system: System, ana: Person, asked: str, words: str
) -> None:
    await ana.say(asked)
    assert not waits((await ana.say(words)).reply.text)
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    said = (await ana.transcript())[-1][1]
    assert "back.txt" in said
    assert not waits(said)
    assert not (await ana.thread()).pending_approvals


@pytest.mark.parametrize(("ask", "verbs"), [('write "a" to a.txt', "en"), ('escribe "a" en a.txt', "es")])
@pytest.mark.parametrize("graph", ["", "react"])
async def test_no_sentence_about_an_approval_has_an_id_in_it(ana: Person, ask: str, verbs: str, graph: str) -> None:
    """Whatever an answer names: one that was answered or withdrawn, another's, one of nobody, beside one that waits."""
    yes, no = ("APPROVE", "REJECT") if verbs == "en" else ("APROBAR", "RECHAZAR")
    card = (await ana.say(ask, graph=graph)).pending_approval
    rejected = (await ana.say(f"{no} {card.approval_id}")).reply.text
    answers = [f"{yes} {card.approval_id} {card.code}", f"{no} {card.approval_id}", f"{yes} ap_nobody_has code_12345"]
    told = [rejected, *[(await ana.say(one)).reply.text for one in answers]]
    await ana.say(ask.replace("a.txt", "b.txt"))
    told += [(await ana.say(one)).reply.text for one in answers]
    assert not [one for one in told if "ap_" in one or not one]
    here = "waiting for your answer" if verbs == "en" else "tu respuesta"
    assert all(here in one for one in told[1:]), told


@pytest.mark.parametrize(
    ("ask", "no", "retries", "again"),
    [
        (
            'write "a" to a.txt',
            "no",
            ("try again", "please try again", "Retry!", "ask me again"),
            ("again", "do it again"),
        ),
        (
            'escribe "a" en a.txt',
            "mejor no",
            ("inténtalo otra vez", "prueba de nuevo", "vuelve a intentarlo", "pregúntamelo otra vez"),
            ("otra vez", "hazlo de nuevo"),
        ),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
async def test_what_was_refused_is_not_tried_again_and_the_person_is_told_what_to_say(
    system: System, ana: Person, *, ask: str, no: str, retries: Sequence[str], again: Sequence[str], strict: bool
) -> None:
    card = (await ana.say(ask)).pending_approval
    shown = [{"approval_id": card.approval_id, "args_hash": card.args_hash}]
    await (ana.say(f"REJECT {card.approval_id}") if strict else ana.say(no, shown_approvals=shown))
    for words in retries:
        told = (await ana.say(words)).reply.text
        assert again[0] in told
        assert "I said" not in told
        assert "He dicho" not in told
    for words in again:
        told = (await ana.say(words)).reply.text
        assert "a few minutes" in told or "unos minutos" in told
    subject = dict(ana.metadata)["x-phylactery-subject"]
    assert not (system.sandbox_of(subject, "local") / "a.txt").exists()
    assert not (await ana.thread()).pending_approvals


@pytest.mark.parametrize(
    ("ask", "again", "retry"),
    [('append "a" to a.txt', "again", "try again"), ('añade "a" a a.txt', "otra vez", "inténtalo de nuevo")],
)
async def test_what_was_done_runs_again_only_with_a_card_of_its_own(
    system: System, ana: Person, ask: str, again: str, retry: str
) -> None:
    card = (await ana.say(ask)).pending_approval
    await ana.say(f"APPROVE {card.approval_id} {card.code}")
    await ana.say(retry)
    anew = await ana.say(again)
    assert anew.pending_approval.approval_id not in ("", card.approval_id)
    subject = dict(ana.metadata)["x-phylactery-subject"]
    assert (system.sandbox_of(subject, "local") / "a.txt").read_text().count("a") == 1


@pytest.mark.parametrize("words", ["one more time", "repeat please", "una vez más", "repite por favor"])
async def test_what_was_said_is_not_said_to_have_been_said_to_have_been_said(ana: Person, words: str) -> None:
    await ana.say("what time is it?")
    first, second = [(await ana.say(words)).reply.text for _ in range(2)]
    assert second.count("I said") + second.count("He dicho") <= 1, (first, second)


@pytest.mark.parametrize("graph", ["secured", "react"])
@pytest.mark.parametrize(
    ("ask", "about", "yes", "told"),
    [
        ('write "x" to why{}.txt', "why do you ask?", "yes", "After a yes I do exactly what it shows"),
        ('write "x" to why{}.txt', "what happens if I say yes?", "yes", "After a yes I do exactly what it shows"),
        ('write "x" to why{}.txt', "why?", "yes please", "After a yes I do exactly what it shows"),
        ('write "x" to why{}.txt', "but why do I have to confirm that?", "ok, go ahead", "exactly what it shows"),
        ('write "x" to why{}.txt', "what am I approving?", "yes", "exactly what it shows"),
        ('escribe "x" en why{}.txt', "¿por qué preguntas?", "sí", "hago exactamente lo que muestra"),
        ('escribe "x" en why{}.txt', "¿qué pasa si digo que no?", "sí", "hago exactamente lo que muestra"),
        ('escribe "x" en why{}.txt', "¿por qué tengo que confirmarlo?", "vale, hazlo", "exactamente lo que muestra"),
    ],
)
async def test_a_question_about_the_card_shows_it_again_with_why_and_the_next_yes_is_for_it(
    system: System, ana: Person, *, ask: str, about: str, yes: str, told: str, graph: str
) -> None:
    name = f"why{next(_numbers)}.txt"
    first = (await ana.say(ask.replace("why{}.txt", name), graph=graph)).pending_approval
    events = await ana.stream(about)
    shown = [one.approval_required for one in events if one.HasField("approval_required")]
    assert [(one.approval_id, bool(one.why)) for one in shown] == [(first.approval_id, True)]
    reply = next(one.message.text for one in events if one.HasField("message") and told in one.message.text)
    assert waits(reply)
    assert not system.written(name)
    seen = chat_pb2.ShownApproval(approval_id=first.approval_id, args_hash=first.args_hash)
    await ana.say(yes, shown_approvals=[seen])
    assert system.written(name)


@pytest.mark.parametrize("words", ["why is the sky blue?", "why do you ask Ana?", "¿por qué llueve?", "why not?"])
async def test_another_why_is_not_about_the_card(ana: Person, words: str) -> None:
    await ana.say('write "x" to why.txt')
    assert not [one for one in await ana.stream(words) if one.HasField("approval_required")]


async def test_a_bare_why_after_something_else_is_not_about_the_card(ana: Person) -> None:
    await ana.say('write "x" to why.txt')
    await ana.say("what time is it?")
    assert not [one for one in await ana.stream("why?") if one.HasField("approval_required")]


async def test_without_a_card_a_question_about_one_is_no_answer_to_it(ana: Person) -> None:
    assert not waits((await ana.say("why do you ask?")).reply.text)


@pytest.mark.parametrize(
    ("ask", "no"),
    [
        ('write "x" to p{0}.txt and write "y" to q{0}.txt', "neither"),
        ('write "x" to p{0}.txt, write "y" to q{0}.txt and write "z" to r{0}.txt', "no"),
        ('escribe "x" en p{0}.txt y escribe "y" en q{0}.txt', "no a todo"),
    ],
)
async def test_a_no_to_a_whole_plan_is_told_in_one_sentence(system: System, ana: Person, ask: str, no: str) -> None:
    number = next(_numbers)
    card = (await ana.say(ask.format(number))).pending_approval
    shown = [chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=one.args_hash) for one in (card, *card.also)]
    answer = await ana.say(no, shown_approvals=shown)
    text = answer.reply.text
    assert answer.run.status == DONE
    assert "Not done:" not in text
    assert "No hecho" not in text
    assert len(text.split("\n\n")) == 1
    assert all(f"{letter}{number}.txt" in text for letter in "pqr"[: len(shown)])
    assert not system.written(f"p{number}.txt")
