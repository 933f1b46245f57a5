"""Operators of the grammar where a model read the words: some belong to a text, to a question or to a phrase."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from phylactery_understanding.calls.proposal import Argument, Call, Item, Level
from phylactery_understanding.interpretation.check import check, joined, within
from phylactery_understanding.interpretation.matching import understand_interpreted
from phylactery_understanding.interpretation.model import Interpretation, InterpretedAsk, Mode, Slot, Span
from phylactery_understanding.requests.parser import parse

from tests.support.listed import Listed, found

TODAY = date(2026, 11, 23)
CRASH = "raise ticket in mobile repo, app crashes when i rotate the phone"


def span(words: str, text: str) -> Span:
    return Span(text, words.index(text))


def level(messages: str | list[str], ask: InterpretedAsk, call: Call) -> Level:
    """Return how far an ask yields a call; each span is looked for in the newest message that has it."""
    said = [messages] if isinstance(messages, str) else messages
    text, starts = joined(said, len(said) - 1)
    request = parse(text)
    asks = check(Interpretation("v", "m", (within(ask, starts),)), request, newest=starts[0])
    return understand_interpreted(asks, request, replace(call, day=TODAY)).level


def issue(title: str, body: str = "") -> Call:
    arguments = (
        Argument("repo", "mobile", "object", control=True),
        Argument("title", title, "content"),
        Argument("body", body, "content"),
    )
    return Call("create_issue", frozenset({"create"}), (), frozenset({"issu", "tick"}), arguments)


def write(path: str, content: str) -> Call:
    arguments = (Argument("path", path, "path", control=True), Argument("content", content, "content"))
    return Call("write_file", frozenset({"write", "append"}), (), frozenset({"file"}), arguments)


def mail(to: str, body: str) -> Call:
    arguments = (Argument("to", to, "principal", control=True), Argument("body", body, "content"))
    return Call("send_email", frozenset({"send"}), (), frozenset({"emai"}), arguments)


def remind(text: str, when: str) -> Call:
    arguments = (Argument("text", text, "content"), Argument("when", when, "date"))
    return Call("create_reminder", frozenset({"remind"}), (), frozenset({"remi"}), arguments)


def cancel(*others: Item) -> Call:
    rent = Listed(frozenset({"rent"}), frozenset(), holds=lambda value: value == "rem_8")
    arguments = (Argument("reminder", "rem_8", "object", control=True, items=found("rem_8", rent, *others)),)
    return Call("cancel_reminder", frozenset({"cancel"}), (), frozenset({"remi"}), arguments)


def composed(words: str, tool: str, **slots: str) -> InterpretedAsk:
    named = tuple(Slot(name, span(words, value)) for name, value in slots.items())
    return InterpretedAsk(tool, named, Mode.CREATE if "path" in slots else Mode.NONE, composed=True)


# ---- what a text repeats is the text's ------------------------------------------


def test_an_operator_that_a_text_repeats_is_the_texts() -> None:
    ask = composed(CRASH, "create_issue", repo="mobile")
    assert level(CRASH, ask, issue("App crashes when I rotate the phone")) is Level.CLEAR


@pytest.mark.parametrize("title", ["App crashes", "App crashes when it rotates", "Rotate the phone", "When"])
def test_an_operator_that_the_text_leaves_out_is_the_persons(title: str) -> None:
    assert level(CRASH, composed(CRASH, "create_issue", repo="mobile"), issue(title)) is not Level.CLEAR


@pytest.mark.parametrize(
    ("words", "to", "body"),
    [
        ("dile a web@hosting.example que se cayó ayer", "web@hosting.example", "Se cayó ayer, un saludo."),
        ("tell bo@van.example we pick it up at 8 instead of 9", "bo@van.example", "We pick it up at 8 instead of 9."),
    ],
)
def test_a_message_tells_of_another_time(words: str, to: str, body: str) -> None:
    assert level(words, composed(words, "send_email", to=to), mail(to, body)) is Level.CLEAR


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("if it rains write hello in a.txt", "hello if it rains"),
        ("write hello in a.txt, if Ana agrees", "hello, if Ana agrees"),
        ("write hello in a.txt when Ana agrees", "hello when Ana agrees"),
        ("never write hello in a.txt", "never write hello"),
        ("don't put the report in a.txt", "don't put the report"),
        ("yesterday I put hello in a.txt", "yesterday I put hello"),
    ],
)
def test_who_lies_gets_no_condition_and_no_refusal_into_a_text(words: str, content: str) -> None:
    assert level(words, composed(words, "write_file", path="a.txt"), write("a.txt", content)) is not Level.CLEAR


def test_what_is_told_before_the_request_is_no_part_of_it() -> None:
    words = "yesterday they said the board has to go, about 900 dollars. put that in works.md"
    ask = InterpretedAsk("write_file", (Slot("path", span(words, "works.md")),), Mode.CREATE)
    ask = replace(ask, content=span(words, "the board has to go, about 900 dollars"))
    assert level(words, ask, write("works.md", "The board has to go, about 900 dollars.")) is Level.CLEAR


def test_what_others_say_qualifies_only_the_request_it_is_one_sentence_with() -> None:
    told = "this week three customers tell us and say the page stays blank. file it in mobile as a ticket"
    call = issue("Page blank", "The page stays blank.")
    assert level(told, composed(told, "create_issue", repo="mobile"), call) is Level.CLEAR
    asked = "Bob says to file that the page stays blank in mobile as a ticket"
    assert level(asked, composed(asked, "create_issue", repo="mobile"), call) is not Level.CLEAR


# ---- words that are no operators where they stand --------------------------------


@pytest.mark.parametrize("words", ["robots.txt should say hello", "hello it is now, robots.txt needs to say that"])
def test_a_modal_verb_and_a_conjunction_without_a_clause_are_none(words: str) -> None:
    ask = composed(words, "write_file", path="robots.txt")
    assert level(words, ask, write("robots.txt", "hello")) is Level.CLEAR


@pytest.mark.parametrize("words", ["should it rain robots.txt is to say hello", "say that robots.txt says hello"])
def test_an_inverted_verb_and_a_conjunction_with_a_clause_are_some(words: str) -> None:
    ask = composed(words, "write_file", path="robots.txt")
    assert level(words, ask, write("robots.txt", "hello")) is not Level.CLEAR


def test_who_needs_a_thing_no_more_wants_its_end() -> None:
    words = "ya no me hace falta el recordatorio rent, fuera con eso"
    assert level(words, InterpretedAsk("cancel_reminder", (Slot("reminder", span(words, "rent")),)), cancel()) is not (
        Level.NONE
    )
    words = "ya no me hace falta el recordatorio rent, bórralo"
    assert level(words, InterpretedAsk("cancel_reminder", (Slot("reminder", span(words, "rent")),)), cancel()) is (
        Level.CLEAR
    )


def counted(words: str) -> bool:
    return bool(check(Interpretation("v", "m", (composed(words, "create_issue", repo="mobile"),)), parse(words)))


def test_a_field_of_a_form_has_no_speaker_and_a_line_of_a_chat_has() -> None:
    form = "Repo: mobile, please file a ticket, the app hangs"
    assert counted(form)
    chat = "Bob: mobile, please file a ticket, the app hangs"
    assert not counted(chat)


# ---- a question, and who says to do it ------------------------------------------


QUESTION = "should I remove the rent reminder? I moved out"


def asked(messages: list[str]) -> Level:
    slot = Slot("reminder", Span("rent", messages[0].index("rent"), len(messages) - 1))
    return level(messages, InterpretedAsk("cancel_reminder", (slot,)), cancel())


@pytest.mark.parametrize("answer", ["yep do it", "go ahead", "ok, go on then, do it", "sí, hazlo"])
def test_who_says_to_do_it_asks_for_what_was_a_question(answer: str) -> None:
    assert asked([QUESTION, answer]) is Level.CLEAR


@pytest.mark.parametrize(
    "answer", ["yes", "ok", "thanks", "do it tomorrow", "no", "don't do it", "do it if she agrees"]
)
def test_a_yes_alone_or_more_than_one_does_not(answer: str) -> None:
    assert asked([QUESTION, answer]) is not Level.CLEAR


def test_a_choice_is_not_made_by_who_says_to_do_it() -> None:
    assert asked(["should I remove the gym reminder or the rent one?", "do it"]) is not Level.CLEAR


# ---- days -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [
        ("Dentist tomorrow at 17:15", True),
        ("Dentist on 3 december at 17:15", True),
        ("Dentist today at 17:15", False),
        ("Dentist tomorrow at 18:15", False),
    ],
)
def test_a_reminder_may_call_the_day_as_it_is_then(text: str, is_clear: bool) -> None:
    words = "dentist on 3 december at 17:15; ping me the day before at 18:00"
    ask = InterpretedAsk("create_reminder", content=span(words, "dentist on 3 december at 17:15"))
    ask = replace(ask, time=span(words, "the day before at 18:00"))
    assert (level(words, ask, remind(text, "2 december at 18:00")) is Level.CLEAR) is is_clear


@pytest.mark.parametrize(
    ("when", "is_clear"),
    [
        ("14 February 2027 at 9:00", True),
        ("14 February 2027 at 23:00", False),
        ("13 February 2027 at 9:00", False),
        ("14 March 2027 at 9:00", False),
    ],
)
def test_a_month_before_a_day_is_a_day_and_its_hour_is_in_the_morning(when: str, is_clear: bool) -> None:
    words = "my passport runs out 14 march, give me a heads up a month before"
    ask = InterpretedAsk("create_reminder", content=span(words, "passport runs out 14 march"))
    ask = replace(ask, time=span(words, "a month before"))
    assert (level(words, ask, remind("Passport runs out 14 March", when)) is Level.CLEAR) is is_clear


def test_the_last_of_a_month_stays_the_last() -> None:
    words = "rent is due 31 march, ping me a month before"
    ask = InterpretedAsk("create_reminder", content=span(words, "rent is due 31 march"))
    ask = replace(ask, time=span(words, "a month before"))
    assert level(words, ask, remind("Rent is due 31 March", "28 February 2027 at 9:00")) is Level.CLEAR


# ---- the grammar as a witness -----------------------------------------------------


def test_what_a_text_is_about_is_said_where_it_is_asked_for() -> None:
    words = "could you draft a packing list for a weekend in the snow and save it as snow.md?"
    ask = composed(words, "write_file", path="snow.md")
    assert level(words, ask, write("snow.md", "- Boots\n- Gloves")) is Level.CLEAR
    assert level(words, ask, write("weekend.md", "- Boots\n- Gloves")) is not Level.CLEAR


def test_a_number_that_was_corrected_is_in_the_text() -> None:
    messages = ["note 6 eggs in list.txt", "put 12 rather"]
    slot = Slot("path", Span("list.txt", messages[0].index("list.txt"), 1))
    ask = InterpretedAsk("write_file", (slot,), Mode.ADD, composed=True)
    assert level(messages, ask, write("list.txt", "6 eggs")) is not Level.CLEAR
