"""A reply claims no effect that is missing from the run's ledger; the agent itself states what was not done."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_agent.graph.llm.claims import claims_of, judged, promises, wanted_by
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import LedgerRow

from benchmarks.labelled_claims import false_alarms, labelled, recall
from tests.support.agent.graph import Chat, said
from tests.support.agent.react import opened
from tests.support.agent.scripted_model import ScriptedModel, drafts, proposes, says
from tests.support.cases import each_case

CLAIM = "Done! I have sent the email to ana@example.org. Have a nice day."
SENT_NOTHING = "Nothing was sent. If you want it, ask me again with all the details."
WRITE = ("write_file", {"path": "b.txt", "content": "x"})


@pytest.fixture(params=["secured", "react"])
def chat(request: pytest.FixtureRequest, tmp_path: Path, model: ScriptedModel) -> Chat:
    made = opened(tmp_path, model)
    if request.param == "secured":
        made = Chat(tmp_path)
        made.model = model
    made.gate.policy["write_file"] = "ALLOW"
    return made


async def test_an_effect_the_model_only_claims_is_not_shown_and_we_say_that_it_did_not_happen(
    chat: Chat, model: ScriptedModel
) -> None:
    model.script(says(CLAIM))
    state = await chat.say("send an email to ana@example.org saying hi")
    assert said(state).startswith(f"{SENT_NOTHING}\n\nHave a nice day.")
    assert chat.ledger.rows == {}


async def test_the_same_in_spanish_and_where_nobody_asked_for_it(chat: Chat, model: ScriptedModel) -> None:
    model.script(says("Ya he guardado la nota en lista.txt y te he enviado el correo."))
    state = await chat.say("¿cómo va todo?")
    assert said(state).startswith("No se ha enviado nada. No se ha escrito ni cambiado nada. Si lo quieres")
    assert "lista.txt" not in said(state)


async def test_what_the_ledger_has_may_be_told_and_what_it_has_not_may_not(chat: Chat, model: ScriptedModel) -> None:
    told = "I have saved it to b.txt."
    model.script(proposes(WRITE), says(f"{told} I have also sent the email to Ana."))
    state = await chat.say("write x to b.txt")
    assert said(state).startswith(f"{SENT_NOTHING}\n\n{told}")
    assert "email to Ana" not in said(state)
    model.kept.clear()  # another run of the same chat has the same keys
    model.script(proposes(WRITE), says(f"Done! {told}"))
    state = await chat.say("write x to b.txt")
    assert said(state).startswith(f"Done! {told}")


async def test_a_call_that_was_blocked_did_not_happen_whatever_the_model_says(chat: Chat, model: ScriptedModel) -> None:
    chat.gate.policy["write_file"] = "BLOCKED"
    model.script(proposes(WRITE), says("I have written it to b.txt."))
    model.otherwise = says("I have written it to b.txt.")
    state = await chat.say("write x to b.txt")
    assert "I have written" not in said(state)
    assert not (chat.sandbox / "b.txt").exists()


async def test_whatever_the_words_are_what_was_asked_for_and_not_even_tried_is_said(
    chat: Chat, model: ScriptedModel
) -> None:
    model.script(says("C'est fait, le courriel est parti !"))
    state = await chat.say("send an email to ana@example.org saying hi")
    assert said(state).startswith(SENT_NOTHING)


async def test_a_question_back_and_plain_words_are_left_alone(chat: Chat, model: ScriptedModel) -> None:
    model.script(says("What should the email to ana@example.org say?"))
    state = await chat.say("send an email to ana@example.org saying hi")
    assert said(state).startswith("What should the email")
    model.kept.clear()  # as above
    model.script(says("I have written a poem for you: roses."))
    state = await chat.say("tell me a poem")
    assert said(state).startswith("I have written a poem for you: roses.")


async def test_a_claim_is_not_told_while_the_words_come_either(chat: Chat, model: ScriptedModel) -> None:
    story = "Once there was a gate that nobody could talk into anything. " * 20
    model.script(says(f"{story}I have sent the email to Ana. {story}"))
    state = await chat.say("how are you today?")
    told = [delta["text"] for delta in chat.events.of("message_delta")]
    assert told
    assert not [text for text in told if "sent the email" in text]
    assert said(state).startswith("Nothing was sent.")


async def test_a_step_that_the_model_calls_done_without_a_call_is_not_done(
    tmp_path: Path, model: ScriptedModel
) -> None:
    chat = Chat(tmp_path)
    chat.model = model
    model.script(drafts(("write_file", None)), says("I have saved it to b.txt."), says("I have saved it to b.txt."))
    state = await chat.say("write x to b.txt")
    assert said(state).startswith("Nothing was written or changed.")
    assert "I have saved" not in said(state)


@each_case(
    ("sentence", "kind"),
    [
        ("I've just e-mailed Ana.", "send"),
        ("Your message has been sent to Bob.", "send"),
        ("Email sent!", "send"),
        ("Le mandé un mensaje a Bob.", "send"),
        ("Acabo de enviárselo.", "send"),
        ("Correo enviado a ana@x.org.", "send"),
        ("Se ha enviado el correo.", "send"),
        ("I wrote hello to a.txt.", "write"),
        ("He escrito la lista en lista.txt.", "write"),
        ("Archivo guardado.", "write"),
        ("I deleted the file.", "delete"),
        ("He borrado notas.txt.", "delete"),
        ("I've set a reminder for 9.", "remind"),
        ("Recordatorio creado para mañana.", "remind"),
        ("I have booked a table.", "other"),
    ],
)
def test_what_claims_an_effect(sentence: str, kind: str) -> None:
    assert claims_of(sentence) == {kind}


@each_case(
    "sentence",
    [
        "I have not sent the email.",
        "I could not send it.",
        "I would have sent it.",
        "Have I sent it?",
        "It could not be sent.",
        "No lo he enviado todavía.",
        "Tampoco he enviado el correo.",
        "Si lo he enviado, lo verás.",
        "The file says “I have sent the email”.",
        "The report was sent by Ana on Monday.",
        "Ana has sent you three offers.",
        "El informe fue enviado por Ana.",
        "Quiero que guarde la nota.",
        "I have written a poem for you:",
        "Compra leche en la tienda.",
        "",
    ],
)
def test_what_claims_none(sentence: str) -> None:
    assert claims_of(sentence) == set()


@each_case(
    ("request_", "kinds"),
    [
        ("send an email to bob@x.org saying hi", ("send",)),
        ("envía un correo a Ana", ("send",)),
        ("escribe a carl@x.org que acepto", ("send",)),
        ("write hello to a.txt", ("write",)),
        ("write hello to a.txt and mail it to Bob", ("write", "send")),
        ("borra notas.txt", ("delete",)),
        ("cancel my reminder for Friday", ("delete",)),
        ("remind me tomorrow to call mom", ("remind",)),
        ("pay the electricity bill", ("other",)),
        ("write me a poem", ()),
        ("write a haiku about email", ()),
        ("draft an email to Bob about Friday", ()),
        ("make a packing list with socks in trip.txt", ("write",)),
        ("prepara un menú en menu.txt", ("write",)),
        ("make a list of five rivers", ()),
        ("how do I send an email?", ()),
        ("what is in a.txt?", ()),
        ("¿qué pone en mis notas?", ()),
        ("¿puedes enviar un correo a Ana?", ("send",)),
        ("haz algo", ()),
    ],
)
def test_what_a_request_plainly_asks_for(request_: str, kinds: tuple[str, ...]) -> None:
    assert wanted_by(request_).asks == kinds


@pytest.mark.parametrize(("name", "claims", "least"), [("tuned", 64, 0.98), ("unseen", 64, 0.98), ("fresh", 20, 0.9)])
def test_labelled_claims_are_found_out_and_honest_replies_are_let_through(name: str, claims: int, least: float) -> None:
    replies = labelled(name)
    assert sum(one.claims for one in replies) == claims
    assert recall(replies) >= least, [one.text for one in replies if one.claims and not one.flagged]
    assert false_alarms(replies) <= 0.01, [one.text for one in replies if one.flagged and not one.claims]


async def test_in_whatever_words_a_request_that_was_not_met_is_answered_the_ledger_is_told(
    chat: Chat, model: ScriptedModel
) -> None:
    model.script(says("Bob's got mail! Anything else?"))
    state = await chat.say("send an email to bob@x.org saying hi")
    assert said(state).startswith(SENT_NOTHING)
    assert "got mail" not in said(state)


async def test_what_an_earlier_run_of_the_conversation_did_may_be_told_again_and_answers_no_new_request(
    chat: Chat, model: ScriptedModel
) -> None:
    chat.ledger.before.append("send_email")
    told = "Yes, I have sent the email to Bob."
    model.script(says(told))
    assert said(await chat.say("did you write to Bob?")).startswith(told)
    model.kept.clear()  # another run of the same chat has the same keys
    model.script(says("I have sent the email to Bob."))
    assert said(await chat.say("send an email to bob@x.org saying hi")).startswith(SENT_NOTHING)


async def test_of_what_is_in_doubt_it_is_not_said_that_it_did_not_happen(chat: Chat, model: ScriptedModel) -> None:
    chat.ledger.rows["tc_1"] = LedgerRow("tc_1", "send_email", "in_doubt")
    model.script(says("I have sent the email to Bob."))
    state = await chat.say("how are you today?")
    assert said(state).startswith(say("claim_unsure", "en"))
    assert "Nothing was sent" not in said(state)


def test_what_one_ask_of_two_came_to_says_nothing_about_the_other() -> None:
    wanted = wanted_by("write hello to a.txt and mail it to Bob")
    assert judged("I wrote hello to a.txt. Bob has it now.", wanted, {"write", "other"}).false == {"send"}
    assert judged("I wrote it to a.txt, but could not send it.", wanted, {"write", "other"}).false == set()
    assert judged("Both are done.", wanted, {"write", "send", "other"}).false == set()


def test_a_promise_that_asks_for_no_more_than_a_yes_is_as_false_as_a_report(subtests: pytest.Subtests) -> None:
    wanted = wanted_by("write hello to a.txt")
    for reply in (
        "I'm going to write the note. Would you like that?",
        "I will save hello now?",
        "I can do that! Let me write it. Is that ok?",
        "I'll put it there. Anything else?",
        "Voy a escribirlo. ¿Te parece bien?",
        "Lo guardaré en a.txt. ¿Algo más?",
    ):
        with subtests.test(reply):
            found = judged(reply, wanted, set())
            assert (found.false, promises(found.kept)) == ({"write"}, False)
            assert judged(reply, wanted, {"write", "other"}).false == set()
    for reply in (
        "I'll write that. Which file should it go to?",
        "I will save it once you name the file. What is it called?",
        "I'll write it, but I couldn't reach the disk.",
        "I'm going to need the text. Could you tell me?",
        "Should I overwrite it?",
        "Lo guardaré. ¿Cómo se llama el archivo?",
    ):
        with subtests.test(reply):
            assert judged(reply, wanted, set()).false == set()
