"""Which question an answer is for: only one that the person had before them when they wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery_gateway.channels.messages import (
    ELSEWHERE,
    Delivery,
    Element,
    Kept,
    Kind,
    Option,
    Outgoing,
    Received,
    Status,
)
from phylactery_gateway.channels.port import Action, SendError
from phylactery_gateway.tables import outbox

from tests.gateway.test_other_peoples_words import telegram_element, text, whatsapp_element
from tests.support.cases import each_case
from tests.support.gateway.stores import DAY, Stores, bodies_of, card, open_stores

SEATS = Outgoing(
    "How many?\n\n1. North\n2. South", (Option("North", {"say": "North"}), Option("South", {"say": "South"}))
)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path) as opened:
        await opened.say("hola")
        await opened.turn()
        yield opened


@pytest.mark.parametrize("state", ["window", "pending", "failed", "silenced", "sending"])
async def test_a_number_answers_no_question_that_was_never_sent(stores: Stores, state: str) -> None:
    await stores.told(card())
    await stores.database.write(
        lambda connection: connection.exec_driver_sql(f"UPDATE outbox SET state = '{state}'").close()
    )
    stores.seconds = 100
    await stores.say("1")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id) == ("1", "")


@pytest.mark.parametrize("word", ["1", "Sí"])
async def test_a_word_answers_no_question_that_was_sent_after_it_was_written(stores: Stores, word: str) -> None:
    stores.seconds = 100
    await stores.told(card())
    await stores.send()
    await stores.say(word, at=100)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == (word, "", [])


async def test_a_word_answers_the_question_before_it_whatever_came_after(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.told(card("ap_2"))
    await stores.send()
    await stores.say("Sí", at=50)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", True)


@pytest.mark.parametrize("option", ["out_removed.0", "unknown", "out_removed.99"])
async def test_a_button_whose_message_is_gone_is_refused_and_says_nothing(stores: Stores, option: str) -> None:
    await stores.told(card())
    await stores.send()
    stores.seconds = 40 * DAY
    await stores.say("Sí", kind=Kind.CHOICE, option=option)
    turn = await stores.turn()
    assert turn is not None
    assert turn.stale
    assert (turn.text, turn.approval_id, list(turn.shown)) == ("", "", [])


async def outbox_id(stores: Stores) -> str:
    """Return the id of the newest message that was said."""
    query = sa.select(outbox.c.outbox_id).order_by(outbox.c.position.desc()).limit(1)
    return str(await stores.database.read(lambda connection: connection.execute(query).scalar_one()))


async def test_a_button_that_says_words_says_them_until_either_side_says_more(stores: Stores) -> None:
    """Its words would be the answer to the question that is asked now."""
    await stores.told(SEATS)
    north = f"{await outbox_id(stores)}.0"
    await stores.send()
    stores.seconds = 100
    await stores.say("North", kind=Kind.CHOICE, option=north)
    first = await stores.turn()
    assert first is not None
    assert (first.text, first.stale) == ("North", False)
    stores.seconds = 200
    await stores.say("North", kind=Kind.CHOICE, option=north)  # pressed twice
    second = await stores.turn()
    assert second is not None
    assert (second.text, second.stale) == ("", True)
    await stores.told(SEATS)
    north = f"{await outbox_id(stores)}.0"
    await stores.told(Outgoing("What is your job?"))
    stores.seconds = 300
    await stores.say("North", kind=Kind.CHOICE, option=north)
    third = await stores.turn()
    assert third is not None
    assert (third.text, third.stale) == ("", True)


async def test_a_templates_own_button_answers_no_question(stores: Stores) -> None:
    await stores.told(card())
    await stores.send()
    stores.seconds = 100
    await stores.say("Sí", kind=Kind.QUICK_REPLY)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == ("Sí", "", [])


@pytest.mark.parametrize("number", ["1", "2", " 1 ", "2."])
async def test_a_number_answers_no_approval(stores: Stores, number: str) -> None:
    """It may be the answer to what a form asked before the card."""
    await stores.told(Outgoing("How many seats?"))
    await stores.send()
    await stores.told(card())
    await stores.send()
    stores.seconds = 100
    await stores.say(number)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text.strip(), turn.approval_id) == (number.strip(), "")


async def test_an_approval_whose_buttons_cannot_be_shown_says_how_it_is_answered_and_takes_no_number(
    stores: Stores,
) -> None:
    await stores.told(Outgoing(card().text, card().options, in_words="Responde «Sí» o «No»."))
    await stores.send(SendError(Action.WITHOUT_OPTIONS, "131009"))
    stores.seconds = 50
    await stores.send()
    [body] = await bodies_of(stores.database, outbox)
    assert Outgoing.read(body).text == "May I?\n\nResponde «Sí» o «No»."
    stores.seconds = 100
    await stores.say("1")
    turn = await stores.turn()
    assert turn is not None
    assert turn.approval_id == ""


@pytest.mark.parametrize(("number", "said"), [("1", "North"), ("2", "South"), ("3", "3"), ("0", "0")])
async def test_a_number_answers_a_list_that_shows_it(stores: Stores, number: str, said: str) -> None:
    await stores.told(SEATS)
    await stores.send()
    stores.seconds = 100
    await stores.say(number)
    turn = await stores.turn()
    assert turn is not None
    assert turn.text == said


async def test_a_number_is_words_where_the_message_shows_none(stores: Stores) -> None:
    await stores.told(Outgoing("Which?", SEATS.options))
    await stores.send()
    stores.seconds = 100
    await stores.say("1")
    turn = await stores.turn()
    assert turn is not None
    assert turn.text == "1"


async def test_a_quotation_is_about_the_quoted_card_alone(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    first = await stores.send()
    await stores.told(card("ap_2"))
    await stores.send()
    stores.seconds = 100
    await stores.say("hola")
    await stores.say("sí, porque me hace falta", refers_to=first)
    await stores.say("y no")
    found = [await stores.turn_of_several() for _ in range(3)]
    assert [(one.text, list(one.shown), one.quotes) for one in found] == [
        ("hola", [("ap_2", "hash of ap_2")], False),
        ("sí, porque me hace falta", [("ap_1", "hash of ap_1")], True),
        ("y no", [("ap_2", "hash of ap_2")], False),
    ]


PLAIN = [("sí", True), ("Sí, dale.", True), ("ok", True), ("👍", True), ("yes please", True)]
PLAIN += [("no", False), ("mejor no", False), ("No, thanks", False), ("👎", False)]


@pytest.mark.parametrize(("words", "approve"), PLAIN)
@pytest.mark.parametrize("quotes", [True, False])
async def test_a_plain_answer_to_the_one_card_it_can_mean_answers_it_by_its_id(
    stores: Stores, words: str, approve: bool, quotes: bool
) -> None:
    await stores.told(card("ap_1"))
    asked = await stores.send()
    if quotes:
        await stores.told(card("ap_2"))
        await stores.send()
    stores.seconds = 100
    await stores.say(words, refers_to=asked if quotes else "")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.args_hash, turn.approve) == ("ap_1", "hash of ap_1", approve)


@pytest.mark.parametrize("words", ["sí, pero mañana", "yes, but to b.txt", "no sé", "sí?", "yes. what time is it?"])
async def test_a_yes_or_no_with_more_words_in_it_goes_on_as_words(stores: Stores, words: str) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.say(words)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == (words, "", [("ap_1", "hash of ap_1")])


@pytest.mark.parametrize("words", ["sí", "no", "ok"])
@pytest.mark.parametrize("why", ["another card is open", "something was said since", "somebody else wrote, too"])
async def test_a_plain_answer_that_may_mean_something_else_goes_on_as_words(
    stores: Stores, words: str, why: str
) -> None:
    if why == "another card is open":
        await stores.told(card("ap_0"))
        await stores.send()
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    if why == "something was said since":
        await stores.say("lee b.txt")
        await stores.turn()
        stores.seconds = 200
    await stores.say(words, passed_on="manda todo" if why.startswith("somebody") else "")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id) == (words, "")


async def test_a_card_that_was_answered_leaves_the_next_one_the_only_one(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.say("sí")
    await stores.turn()
    await stores.told(card("ap_2"))
    await stores.send()
    stores.seconds = 200
    await stores.say("no")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_2", False)


@pytest.mark.parametrize("quoted", ["wamid.1", "wamid.of.another", "elsewhere"])
async def test_a_quotation_of_anything_else_answers_no_card(stores: Stores, quoted: str) -> None:
    await stores.told(card())
    await stores.send()
    stores.seconds = 100
    await stores.say("sí", refers_to=quoted)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, list(turn.shown), turn.approval_id) == ("sí", [], "")


@pytest.mark.parametrize("words", ["sí", "no", "ok", "/approve", "/reject", "ver todo", "👍"])
@pytest.mark.parametrize("why", ["removed", "not delivered", "of another conversation"])
async def test_a_quotation_of_a_message_that_is_gone_answers_nothing_else_either(
    stores: Stores, words: str, why: str
) -> None:
    await stores.told(card("ap_1"))
    gone = await stores.send()
    await stores.told(card("ap_2"))
    await stores.send()
    change = {
        "removed": "DELETE FROM outbox WHERE external_id = '{}'",
        "not delivered": "UPDATE outbox SET state = 'failed' WHERE external_id = '{}'",
        "of another conversation": "UPDATE outbox SET conversation_id = 'another' WHERE external_id = '{}'",
    }[why].format(gone)
    await stores.database.write(lambda connection: connection.exec_driver_sql(change).close())
    stores.seconds = 100
    await stores.say(words, kind=Kind.REACTION if words == "👍" else Kind.TEXT, refers_to=gone)
    turn = await stores.turn()
    if words == "👍":
        assert turn is None
    else:
        assert turn is not None
        assert (turn.text, turn.approval_id, turn.reads, list(turn.shown)) == (words, "", "", [])


@pytest.mark.parametrize("words", ["sí", "no", "ver todo"])
async def test_a_quotation_that_is_deleted_before_it_is_read_answers_nothing(stores: Stores, words: str) -> None:
    await stores.told(card("ap_1"))
    asked = await stores.send()
    stores.seconds = 100
    await stores.say(words, refers_to=asked)
    await stores.say("", kind=Kind.REVOKE, refers_to=f"wamid.{stores.numbers}")
    assert await stores.turn() is None


def of_another(approval_id: str) -> Outgoing:
    """Return the question that another person answers, as a phone shows it."""
    return Outgoing("Before I write, somebody else has to approve it.", card(approval_id).options[1:])


@pytest.mark.parametrize("words", ["no", "mejor no", "/reject", "/REJECT"])
async def test_what_another_person_answers_is_withdrawn_by_words(stores: Stores, words: str) -> None:
    await stores.told(of_another("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.say(words)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", False)


@pytest.mark.parametrize("words", ["sí", "ok", "/approve", "👍"])
async def test_what_another_person_answers_is_not_approved_by_who_asked(stores: Stores, words: str) -> None:
    await stores.told(of_another("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.say(words)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == (words, "", [])


@pytest.mark.parametrize("command", ["/approve", "/reject"])
async def test_a_command_of_the_terminal_with_several_open_cards_is_given_as_words(
    stores: Stores, command: str
) -> None:
    for name in ("ap_1", "ap_2"):
        await stores.told(card(name))
        await stores.send()
    stores.seconds = 100
    await stores.say(command)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id) == (command, "")


@pytest.mark.parametrize("command", ["/approve", "/reject"])
async def test_a_command_that_quotes_a_card_answers_it(stores: Stores, command: str) -> None:
    await stores.told(card("ap_1"))
    first = await stores.send()
    await stores.told(card("ap_2"))
    await stores.send()
    stores.seconds = 100
    await stores.say(command, refers_to=first)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", command == "/approve")


async def test_a_plain_yes_answers_the_newest_event_alone(stores: Stores) -> None:
    """The card before it was withdrawn, or is another question: one answer is not for both."""
    for name in ("ap_1", "ap_2"):
        await stores.told(card(name))
        await stores.send()
    await stores.told(Outgoing("Three things."), card("ap_3"), card("ap_4"))
    for _ in range(3):
        await stores.send()
    stores.seconds = 100
    await stores.say("sí")
    turn = await stores.turn()
    assert turn is not None
    assert [name for name, _ in turn.shown] == ["ap_4", "ap_3"]


@pytest.mark.parametrize("sign", ["👍", "👍🏽", "👎", "👎🏿"])
async def test_a_thumb_on_a_card_answers_exactly_that_one(stores: Stores, sign: str) -> None:
    await stores.told(card("ap_1"))
    first = await stores.send()
    await stores.told(card("ap_2"))
    await stores.send()
    stores.seconds = 100
    await stores.say(sign, kind=Kind.REACTION, refers_to=first)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", sign.startswith("👍"))


@pytest.mark.parametrize(
    ("sign", "high_risk"), [("❤️", False), ("👌", False), ("🙏", False), ("👍", True), ("👎", True)]
)
async def test_another_sign_and_a_thumb_at_high_risk_answer_nothing_and_one_line_says_how(
    stores: Stores, sign: str, high_risk: bool | None
) -> None:
    options = tuple(Option(one.title, {**one.does, "high_risk": high_risk}) for one in card().options)
    await stores.told(Outgoing("May I?", options))
    asked = await stores.send()
    stores.seconds = 100
    for _ in range(3):
        await stores.say(sign, kind=Kind.REACTION, refers_to=asked)
    assert await stores.turn() is None
    bodies = [body["text"] for body in await bodies_of(stores.database, outbox)]
    assert bodies == [
        "May I?",
        "Ese signo ahí no responde a nada. Pulsa un botón del mensaje, o cítalo y escribe «sí» o «no».",
    ]


@pytest.mark.parametrize(("sign", "on"), [("", "card"), ("👍", "words"), ("👍", "wamid.1"), ("👍", "unknown")])
async def test_a_sign_that_was_taken_away_or_is_on_no_card_says_nothing(stores: Stores, sign: str, on: str) -> None:
    await stores.told(Outgoing("Hello."))
    words = await stores.send()
    await stores.told(card())
    asked = await stores.send()
    stores.seconds = 100
    await stores.say(sign, kind=Kind.REACTION, refers_to={"card": asked, "words": words}.get(on, on))
    assert await stores.turn() is None
    assert await stores.states() == ["sent", "sent"]


@pytest.mark.parametrize("answer", ["sí", "👍", "button"])
async def test_a_card_of_which_a_part_never_came_is_not_answered_with_yes(stores: Stores, answer: str) -> None:
    await stores.told(Outgoing("The beginning of a long text"), card(text="and its end"))
    part, asked = await stores.send(), await stores.send()
    await stores.status(Status(part, Delivery.SENT, "131026"))
    assert await stores.states() == ["failed", "sent"]
    stores.seconds = 100
    if answer == "button":
        [(outbox_id,)] = await stores.rows("SELECT outbox_id FROM outbox WHERE state = 'sent'")
        await stores.say("Sí", kind=Kind.CHOICE, option=f"{outbox_id}.0")
    else:
        await stores.say(
            answer, kind=Kind.TEXT if answer == "sí" else Kind.REACTION, refers_to="" if answer == "sí" else asked
        )
    turn = await stores.turn()
    assert turn is None or (list(turn.shown), turn.approval_id) == ([], "")


IMAGE = {"type": "image", "image": {"id": "1", "mime_type": "image/png", "caption": "sí"}}
PHOTO = {"photo": [{"file_id": "f"}], "caption": "sí"}


@each_case(
    ("element", "quoted"),
    [
        (whatsapp_element(text("sí", context={"id": "wamid.0", "from": "1555"})), "wamid.0"),
        (whatsapp_element(IMAGE | {"context": {"id": "wamid.0"}}), "wamid.0"),
        (whatsapp_element(text("sí")), ""),
        (whatsapp_element(text("sí", context={"forwarded": False})), ""),
        (whatsapp_element(text("sí", context={"id": 5})), ELSEWHERE),
        (whatsapp_element(text("sí", context={"id": None, "from": "1555"})), ELSEWHERE),
        (whatsapp_element(text("sí", context={"from": "1555"})), ELSEWHERE),
        (whatsapp_element(IMAGE | {"context": {"id": ""}}), ELSEWHERE),
        (whatsapp_element(text("sí", context={})), ""),
        (telegram_element({"text": "sí", "reply_to_message": {"message_id": 2}}), "2"),
        (telegram_element(PHOTO | {"reply_to_message": {"message_id": 2}}), "2"),
        (telegram_element({"text": "sí", "external_reply": {"origin": {"type": "user"}}}), ELSEWHERE),
        (telegram_element({"text": "sí", "reply_to_story": {"id": 1, "chat": {"id": 9}}}), ELSEWHERE),
        (telegram_element({"text": "sí", "quote": {"text": "May I?", "position": 0}}), ELSEWHERE),
        (telegram_element({"text": "sí", "reply_to_message": None, "quote": {"text": "May I?"}}), ELSEWHERE),
        (telegram_element({"text": "sí"}), ""),
    ],
)
def test_what_a_message_quotes_is_read(element: Element, quoted: str) -> None:
    assert isinstance(element.content, Received)
    assert (element.content.refers_to, element.content.kind is Kind.EDIT) == (quoted, False)


def reacted(*signs: str, user: int = 7, kind: str = "private") -> Element:
    """Return a reaction of Telegram."""
    new = [
        {"type": "emoji", "emoji": sign} if sign else {"type": "custom_emoji", "custom_emoji_id": "1"} for sign in signs
    ]
    return telegram_element(
        {"chat": {"id": 7, "type": kind}, "user": {"id": user}, "old_reaction": [], "new_reaction": new},
        "message_reaction",
    )


@pytest.mark.parametrize(
    ("element", "sign"),
    [
        (whatsapp_element({"type": "reaction", "reaction": {"message_id": "3", "emoji": "👍🏽"}}), "👍🏽"),
        (whatsapp_element({"type": "reaction", "reaction": {"message_id": "3", "emoji": ""}}), ""),
        (whatsapp_element({"type": "reaction", "reaction": {"message_id": "3"}}), ""),
        (reacted("👍"), "👍"),
        (reacted("🔥", "👎"), "👎"),
        (reacted(""), "?"),
        (reacted(), ""),
    ],
)
def test_an_emoji_on_a_message_is_read(element: Element, sign: str) -> None:
    assert isinstance(element.content, Received)
    assert (element.content.kind, element.content.refers_to, element.content.text) == (Kind.REACTION, "3", sign)


def pressed(presser: int, chat: int = 7) -> Element:
    """Return the press of a button in a chat of Telegram."""
    query = {"id": "9", "from": {"id": presser}, "data": "out.0", "message": {"chat": {"id": chat, "type": "private"}}}
    return telegram_element(query, "callback_query")


@pytest.mark.parametrize(
    "element",
    [
        pressed(8),
        pressed(8, chat=-7),
        telegram_element({"text": "sí", "from": {"id": 8}}),
        telegram_element({"text": "sí", "from": {"id": 8}}, "edited_message"),
        telegram_element(PHOTO | {"from": {"id": 8}}),
        reacted("👍", user=8),
        reacted("👍", kind="group"),
    ],
)
def test_nobody_answers_in_the_chat_of_another(element: Element) -> None:
    assert isinstance(element.content, Kept)


def test_the_person_of_a_chat_presses_its_buttons() -> None:
    assert isinstance(pressed(7).content, Received)


@pytest.mark.parametrize("words", ["sí", "no", "/approve", "/reject"])
async def test_a_card_that_is_shown_again_is_one_card_and_is_answered_by_what_was_shown_last(
    stores: Stores, words: str
) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.say("¿qué hora es?")
    await stores.turn()
    await stores.told(Outgoing("Las 10."))
    await stores.send()
    stores.seconds = 200
    await stores.say("sí")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id) == ("sí", "")
    await stores.told(card("ap_1", "No está claro a qué respondes. ¿Puedo?"))
    await stores.send()
    stores.seconds = 300
    await stores.say(words)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", words in ("sí", "/approve"))


async def test_of_a_card_that_is_shown_again_in_part_no_yes_counts_though_it_was_whole_before(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.told(Outgoing("text: what it writes"), card("ap_1"))
    await stores.send(SendError(Action.FAIL, "131000"))
    await stores.send()
    stores.seconds = 200
    await stores.say("/approve")
    turn = await stores.turn()
    assert turn is not None
    assert turn.approval_id == ""


@pytest.mark.parametrize(
    ("signs", "answer"),
    [
        (("👍", ""), None),
        (("👎", ""), None),
        (("👍", "👎"), False),
        (("👎", "👍"), True),
        (("👍", "❤️"), None),
        (("👍", "", "👍🏽"), True),
        (("👍", "👎", ""), None),
    ],
)
async def test_of_the_signs_put_on_a_card_the_last_one_counts_as_long_as_none_was_read(
    stores: Stores, signs: tuple[str, ...], answer: bool | None
) -> None:
    await stores.told(card("ap_1"))
    asked = await stores.send()
    for sign in signs:
        stores.seconds += 100
        await stores.say(sign, kind=Kind.REACTION, refers_to=asked)
    turn = await stores.turn()
    assert (None if turn is None else (turn.approval_id, turn.approve)) == (
        None if answer is None else ("ap_1", answer)
    )


async def test_a_sign_that_is_taken_away_takes_back_no_button_and_no_sign_on_another_card(stores: Stores) -> None:
    sent = []
    for name in ("ap_1", "ap_2"):
        await stores.told(card(name))
        sent.append(await stores.send())
    [(first,)] = await stores.rows("SELECT outbox_id FROM outbox WHERE position = (SELECT min(position) FROM outbox)")
    stores.seconds = 100
    await stores.say("Sí", kind=Kind.CHOICE, option=f"{first}.0", refers_to=sent[0])
    await stores.say("👎", kind=Kind.REACTION, refers_to=sent[1])
    await stores.say("", kind=Kind.REACTION, refers_to=sent[0])
    found = [await stores.turn_of_several() for _ in range(2)]
    assert {(one.approval_id, one.approve) for one in found} == {("ap_1", True), ("ap_2", False)}


async def answered_by(stores: Stores, option: str, *seconds: float) -> list[tuple[str, bool]]:
    """Press a button at these seconds; return the approvals that were answered, each with its answer."""
    for at in seconds:
        stores.seconds = at
        await stores.say("Sí", kind=Kind.CHOICE, option=option)
    found = []
    while (turn := await stores.turn()) is not None:
        found.append((turn.approval_id, turn.approve))
    return found


@pytest.mark.parametrize("taps", [2, 3, 15])
async def test_a_button_tapped_several_times_is_one_answer(stores: Stores, taps: int) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    [(asked,)] = await stores.rows("SELECT outbox_id FROM outbox")
    found = await answered_by(stores, f"{asked}.0", *(100 + tap for tap in range(taps)))
    assert found == [("ap_1", True)]


async def test_a_tap_on_a_button_that_was_pressed_a_while_ago_is_answered(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    [(asked,)] = await stores.rows("SELECT outbox_id FROM outbox")
    assert await answered_by(stores, f"{asked}.0", 100) == [("ap_1", True)]
    assert await answered_by(stores, f"{asked}.0", 200) == [("ap_1", True)]
    assert await answered_by(stores, f"{asked}.1", 201) == [("ap_1", False)], "the other button is no second tap"


@pytest.mark.parametrize(
    "words", ["sí a la primera y no a la segunda", "yes to b.txt, no to a.txt", "las dos", "ninguna"]
)
async def test_words_that_say_which_of_several_go_on_with_all_that_is_before_the_person(
    stores: Stores, words: str
) -> None:
    for name in ("ap_1", "ap_2"):
        await stores.told(card(name))
        await stores.send()
    await stores.told(Outgoing("It is four o'clock."))
    await stores.send()
    stores.seconds = 100
    await stores.say(words)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == (words, "", [])
    assert list(turn.named) == [("ap_1", "hash of ap_1", 0), ("ap_2", "hash of ap_2", 0)]


async def test_what_was_not_shown_before_the_words_or_not_whole_cannot_be_named(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    hidden = card("ap_2")
    await stores.told(
        Outgoing(hidden.text, tuple(Option(one.title, {**one.does, "extent": "hidden"}) for one in hidden.options))
    )
    await stores.send()
    stores.seconds = 100
    await stores.told(card("ap_3"))
    await stores.send()
    await stores.say("sí a la primera, no a la segunda", at=50)
    turn = await stores.turn()
    assert turn is not None
    assert list(turn.named) == [("ap_1", "hash of ap_1", -1)]


async def test_a_quotation_names_nothing_beside_it(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    first = await stores.send()
    await stores.told(card("ap_2"))
    await stores.send()
    stores.seconds = 100
    await stores.say("no a la primera", refers_to=first)
    turn = await stores.turn()
    assert turn is not None
    assert (list(turn.shown), list(turn.named)) == ([("ap_1", "hash of ap_1")], [])
