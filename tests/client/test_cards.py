"""The rules of what a person has before them, without a terminal and without a phone."""

from __future__ import annotations

import pytest
from phylactery_client.cards import NO_PLACE, Before, Extent, ShownCall, ShownCards, ShownMessage, shown_call
from phylactery_client.results import ApprovalArgument, PendingApproval

HASH = "sha256:" + "a" * 64


def call(name: str = "a", **more: object) -> ShownCall:
    return ShownCall(name, HASH, **more)  # type: ignore[arg-type]


def shown(*messages: ShownMessage, **more: object) -> Before:
    return Before(messages, **more)  # type: ignore[arg-type]


def message(key: str, *calls: ShownCall, since: float = 0.0, card: str = "", choices: int = 0) -> ShownMessage:
    return ShownMessage(key, since, card or key, calls, choices)


@pytest.mark.parametrize("extent", list(Extent))
@pytest.mark.parametrize("own", [True, False])
def test_a_yes_counts_on_what_was_shown_or_said_to_be_left_out_and_a_no_always(extent: Extent, own: bool) -> None:
    one = call(extent=extent, own=own)
    yes = own and extent is not Extent.HIDDEN
    before = shown(message("m", one))
    assert (one.takes(approve=True), one.takes(approve=False)) == (yes, True)
    assert bool(before.plainly()) is yes
    for approve, counts in ((True, yes), (False, True)):
        assert (before.only(approve=approve) is not None) is counts
        assert (before.meant(approve=approve, said_since=False) is not None) is counts
        assert (before.by_sign("👍" if approve else "👎") is approve) is counts


def test_a_card_of_which_one_call_hides_a_part_takes_no_yes_at_all() -> None:
    hidden = call("b", extent=Extent.HIDDEN)
    assert shown(message("m", call("a"), hidden)).plainly() == ()
    assert shown(message("1", hidden, card="c"), message("2", call("a"), card="c")).plainly() == ()
    assert shown(message("1", hidden), message("2", call("a"))).plainly() == [call("a")], "another card"


def test_a_card_that_was_shown_again_is_one_card_as_it_was_shown_last() -> None:
    before = shown(message("1", call("a", extent=Extent.PART)), message("2"), message("3", call("a")))
    assert {name: one[0].key for name, one in before.waiting().items()} == {"a": "3"}
    found = before.meant(approve=True, said_since=False)
    assert found is not None
    assert found[0].key == "3"
    assert before.meant(approve=True, said_since=True) is None


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_number_chooses_in_a_message_that_shows_numbers_and_never_answers_a_card(number: int) -> None:
    listed, asked = message("1", choices=2), message("2", call())
    found = shown(listed).choice(number)
    assert (found.key if found else "") == ("1" if number in (1, 2) else "")
    assert shown(listed, asked).choice(number) is None
    assert shown(asked).choice(number) is None


def test_nothing_answers_what_was_shown_after_it_was_written() -> None:
    before = shown(message("1", call("a"), since=10.0), message("2", call("b"), since=20.0))
    assert [one.key for one in before.at(15.0).messages] == ["1"]
    assert before.at(10.0).newest is None


def test_a_wish_to_read_is_for_what_leaves_a_part_out_and_not_for_what_is_long_gone() -> None:
    part, answered = message("1", call("a", extent=Extent.PART)), frozenset({"a"})
    others = [message(f"t{number}") for number in range(4)]
    assert shown(part, *others).to_read() == part.calls[0]
    assert shown(part, *others, answered=answered).to_read() == part.calls[0]
    assert shown(part, *others, message("t5"), answered=answered).to_read() is None
    assert shown(part, *others, message("t5")).to_read() == part.calls[0]
    assert shown(message("1", call("a")), others[0]).to_read() is None
    assert shown(message("1", call("a"))).to_read() == call("a")
    assert shown(message("1", call("a")), answered=answered, quoted=True).to_read() == call("a")


def pending(name: str, *arguments: ApprovalArgument, **more: object) -> PendingApproval:
    values = {"args_hash": HASH, "approval_class": "self", **more}
    return PendingApproval(name, "t", "low", arguments=arguments, expire_time=None, code="", **values)  # type: ignore[arg-type]


def test_how_much_was_shown_follows_from_the_arguments_of_a_card() -> None:
    whole, cut = ApprovalArgument("/a", '"x"', control=False), ApprovalArgument("/b", '"x…"', control=False, left_out=9)
    assert shown_call(pending("a", whole)).extent is Extent.WHOLE
    assert shown_call(pending("a", whole, cut)).extent is Extent.PART
    assert shown_call(pending("a", args_hash="")).extent is Extent.HIDDEN


def test_in_memory_a_number_is_never_given_again_while_a_card_waits() -> None:
    record = ShownCards()
    record.draw("run_1", pending("a", also=(pending("b"),)))
    record.draw("run_2", pending("c"))
    assert {number: one.approval_id for number, one in record.before().numbered().items()} == {1: "a", 2: "b", 3: "c"}
    record.remove("run_1")
    record.draw("run_3", pending("d"))
    assert {number: one.approval_id for number, one in record.before().numbered().items()} == {3: "c", 4: "d"}
    since = record.before().messages[0].since
    record.draw("run_2", pending("c"))
    assert {one.key: one.since for one in record.before().messages}["run_2"] == since, "seen since the first time"
    newest = record.newest()
    assert newest is not None
    assert newest.approval_id == "c"
    record.draw("run_2", pending("c", args_hash=""))
    assert record.newest() is None


def test_what_may_be_named_is_all_that_waits_in_the_order_in_which_it_was_shown():
    cards = [message("1", call("a")), message("2", call("b"), call("c"))]
    assert shown(*cards).named() == [call("a"), call("b"), call("c")]
    assert shown(*cards, message("3")).named() == [call("a"), call("b"), call("c")], "whatever is said since"
    assert shown(*cards[1:]).named() == [call("b"), call("c")]
    assert shown(message("1")).named() == ()


def test_a_place_that_is_not_clear_names_nothing():
    a, b, c = call("a"), call("b"), call("c")
    none = [one._replace(number=NO_PLACE) for one in (a, b, c)]
    again = shown(message("1", a), message("2", b), message("3", a))
    assert again.named() == [none[1], none[0]], "shown again behind another"
    answered = Before((message("1", a), message("2", b, c)), frozenset({"a"}))
    assert answered.named() == none[1:], "one that was answered stands before it"
    among = Before((message("1", a), message("2", b), message("3", c)), frozenset({"b"}))
    assert among.named() == [none[0], none[2]]
    apart = Before((message("1", a), message("2"), message("3", b, c)), frozenset({"a"}))
    assert apart.named() == [b, c]
    hidden = shown(message("1", a._replace(extent=Extent.HIDDEN)), message("2", b, c))
    assert hidden.named() == none[1:], "a part of it was not shown"
    drawn = Before((message("1", a), message("2", b._replace(number=2), c._replace(number=3))), frozenset({"a"}))
    assert [one.number for one in drawn.named()] == [2, 3]


def test_nothing_is_named_where_a_number_chooses_something_else_or_a_message_is_quoted():
    cards = (message("1", call("a")), message("2", call("b")))
    assert shown(*cards, message("3", choices=2)).named() == ()
    assert Before(cards[:1], quoted=True).named() == ()
