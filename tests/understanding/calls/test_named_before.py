"""Requests of several parts: a later part may refer to what an earlier one named, and to nothing more."""

from __future__ import annotations

import pytest
from phylactery_understanding.calls.content.model import Source
from phylactery_understanding.calls.proposal import Argument, Call, Item, Level
from phylactery_understanding.calls.understanding import hears, understand
from phylactery_understanding.requests.parser import parse

from tests.support.effort import assert_within
from tests.support.listed import Listed, found

NOUNS = frozenset({"file", "docu", "list"})


def _file(path: str, *, made: bool = False) -> Item:
    words = frozenset({path, *path.split(".")})
    return Listed(words, frozenset(), holds=lambda value: value in {path, "7"}, made=made)


def _append(content: str, item: Item, *others: Item) -> Call:
    arguments = (
        Argument("file_id", "7", "object", control=True, items=found("7", item, *others)),
        Argument("content", content, "content"),
    )
    return Call("append_to_file", frozenset({"append"}), (), NOUNS, arguments)


def _share(access: str, item: Item | None = None) -> Call:
    arguments = (
        Argument("file_id", "a.txt", "object", control=True)
        if item is None
        else Argument("file_id", "7", "object", control=True, items=found("7", item)),
        Argument("email", "bob@acme.es", "principal", control=True),
        Argument("permission", access, "content", choices=("r", "rw")),
    )
    return Call("share_file", frozenset({"share"}), (), NOUNS, arguments)


def _delete(item: Item, *others: Item) -> Call:
    arguments = (Argument("file_id", "7", "object", control=True, items=found("7", item, *others)),)
    return Call("delete_file", frozenset({"delete"}), (), NOUNS, arguments)


def _level(text: str, call: Call) -> Level:
    return understand([parse(text)], call).level


PLAN, OTHER = _file("plan.docx"), _file("plan-old.docx")


def test_the_file_is_the_one_that_was_named_before() -> None:
    words = "Please take a look at the file 'plan.docx', suggest two more activities, and add them to the file."
    assert _level(words, _append("Two more activities", PLAN)) is Level.CLEAR
    assert _level(words, _append("Two more activities", OTHER)) < Level.CLEAR


@pytest.mark.parametrize("words", [
    "Look at plan.docx and at plan-old.docx, suggest two more activities, and add them to the file.",
    "Don't look at plan.docx, suggest two more activities, and add them to the file.",
    "Look at plan.docx, suggest two more activities, and add them to the other file.",
    "Look at plan.docx, suggest two more activities, and add them to a file.",
])  # fmt: skip
def test_the_file_is_none_of_two_none_that_was_refused_and_no_other_file(words: str) -> None:
    assert _level(words, _append("Two more activities", PLAN)) < Level.CLEAR


def test_what_a_call_of_the_task_made_is_known_by_its_name_alone() -> None:
    words = "Create a file named 'plan.docx' with a list of ideas. Then, share the document with bob@acme.es"
    words += " with read permissions"
    assert _level(words, _share("r", _file("plan.docx", made=True))) is Level.CLEAR
    assert _level(words, _share("rw", _file("plan.docx", made=True))) < Level.CLEAR
    assert _level("Delete the old plan document", _delete(_file("plan.docx", made=True))) < Level.CLEAR


@pytest.mark.parametrize(("said", "right"), [
    ("read permissions", "r"), ("read access", "r"), ("editing permissions", "rw"), ("edit rights", "rw"),
])  # fmt: skip
def test_a_letter_is_the_access_that_is_spoken_of(said: str, right: str) -> None:
    wrong = "rw" if right == "r" else "r"
    assert _level(f"Share a.txt with bob@acme.es with {said}", _share(right)) is Level.CLEAR
    assert _level(f"Share a.txt with bob@acme.es with {said}", _share(wrong)) < Level.CLEAR


@pytest.mark.parametrize("said", ["", "with restricted permissions", "to read", "with no write access", "with rights"])
def test_access_that_is_not_spoken_of_is_given_by_nobody(said: str) -> None:
    for access in ("r", "rw"):
        assert _level(f"Share a.txt with bob@acme.es {said}", _share(access)) < Level.CLEAR


def test_tasks_in_one_line_are_told_by_their_numbers() -> None:
    words = "Perform the following tasks: 1. Please show me the names of the files. 2. Delete plan.docx."
    call = _delete(PLAN)
    assert _level(words, call) is Level.CLEAR
    assert _level(words.replace("2.", "7."), call) < Level.CLEAR
    assert _level("Delete plan.docx. 2.", call) < Level.CLEAR
    assert _level("Show me plan.docx. Delete plan.docx.", call) < Level.CLEAR  # it may be shown first
    assert _level(words.replace("Delete", "Don't delete"), call) < Level.CLEAR


@pytest.mark.timing
def test_numbers_without_end_are_read_in_time() -> None:
    for text in ("5. " * 3_000, f"1. {'9' * 5_000}. ². Delete plan.docx"):
        assert_within(3, lambda text=text: parse(text))


def test_who_takes_a_look_takes_nothing_away() -> None:
    words = "Take a look at plan.docx"
    assert _level(words, _delete(PLAN)) is Level.NONE
    assert _level("Échale un vistazo a plan.docx", _delete(PLAN)) is Level.NONE
    assert _level("Take a look, plan.docx goes", _delete(PLAN)) < Level.CLEAR
    assert _level("Take plan.docx away", _delete(PLAN)) > Level.NONE


def test_an_update_sends_no_money() -> None:
    money = (Argument("to", "ES91", "principal", control=True), Argument("amount", 5, "amount", control=True))
    pay = Call("send_money", frozenset({"send"}), (), frozenset({"acco", "mone"}), money)
    mail = Call("send_email", frozenset({"send"}), (), frozenset({"acco", "emai"}), money[:1])
    assert not hears(parse("Update my account information"), pay)
    assert hears(parse("Update Ana on my account"), mail)
    assert hears(parse("Send 5 to the account"), pay)


def test_what_is_to_be_done_accordingly_is_taken_from_what_was_to_be_read() -> None:
    text = "We moved to Elm Street 12 in Vigo".lower().split()
    texts = Source(holds=text.__contains__, named="move.txt".__eq__, some=True)

    def call(street: str) -> Call:
        said = (Argument("street", street, "content"),)
        return Call("update_address", frozenset({"update"}), (), frozenset({"addr"}), said, texts=texts)

    words = "Read 'move.txt' and update my address accordingly."
    assert _level(words, call("Elm Street 12")) is Level.CLEAR
    assert _level(words, call("Oak Street 99")) < Level.CLEAR
    assert _level(words.replace("move.txt", "other.txt"), call("Elm Street 12")) < Level.CLEAR
    assert _level(words.replace(" accordingly", ""), call("Elm Street 12")) < Level.CLEAR


def test_a_list_one_already_has_is_no_past() -> None:
    item = Listed(frozenset({"groceries", "list"}), frozenset(), holds="7".__eq__)
    assert _level("Add milk to the groceries list I already have in the file", _append("milk", item)) is Level.CLEAR
    assert _level("Add milk to the groceries list, I already have", _append("milk", item)) < Level.CLEAR
    assert _level("Add milk to the groceries list I already added it to", _append("milk", item)) < Level.CLEAR
