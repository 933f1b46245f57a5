"""One of several things: a name that two have, a title somebody else chose, and what a list proves to be the last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.pages import lists_in_part
from phylactery_riskgate.domain.intent.reading import Piece, read_result, read_words
from phylactery_riskgate.domain.model import Asks, BoundCall, CatalogTool

from tests.support.cases import each_case

BILLS = replace(NO_TOOL, name="list_bills", outputs=tuple({
    "/bills/*/id": "system", "/bills/*/supplier": "naming", "/bills/*/amount": "orderable", "/bills/*/due": "orderable",
}.items()))  # fmt: skip
PLAIN = replace(NO_TOOL, name="list_bills", outputs=BILLS.outputs[:2])
TASKS = replace(NO_TOOL, name="list_pulls", outputs=tuple({
    "/pulls/*/id": "system", "/pulls/*/title": "naming", "/pulls/*/author": "naming", "/pulls/*/updated": "orderable",
}.items()))  # fmt: skip
PEOPLE = replace(NO_TOOL, name="find_people", outputs=tuple({
    "/people/*/id": "system", "/people/*/name": "naming", "/people/*/email": "naming",
}.items()))  # fmt: skip
PAY = replace(
    NO_TOOL, name="pay_bill", effect="write", controls=("/bill_id",), roles={"/bill_id": "object"},
    asks=Asks(phrases_en=("pay * bill",), phrases_es=("paga * factura",)),
)  # fmt: skip
MERGE = replace(
    NO_TOOL, name="merge_pull", effect="write", controls=("/pull_id",), roles={"/pull_id": "object"},
    asks=Asks(phrases_en=("merge * pull",), phrases_es=("fusiona * pull",)),
)  # fmt: skip
CALL_UP = replace(
    NO_TOOL, name="page_person", effect="write", controls=("/person_id",), roles={"/person_id": "principal"},
    asks=Asks(phrases_en=("page",)),
)  # fmt: skip

ROWS = ("B-1", "Acme", 300, "2026-12-01"), ("B-2", "Bolt", 90, "2026-12-20"), ("B-3", "Corp", 120, "2026-12-10")


def seen(tool: CatalogTool, value: Any, **arguments: Any) -> Piece:
    return read_result(tool, tool.name, "c1", arguments, value, is_text=False, failed=False).piece


def bills(*rows: tuple[str, str, int, str], told: dict[str, Any] | None = None, **arguments: Any) -> Piece:
    listed = [dict(zip(("id", "supplier", "amount", "due"), row, strict=True)) for row in rows]
    return seen(BILLS, {"bills": listed, **(told or {})}, **arguments)


def pulls(*rows: tuple[str, str, str, str]) -> Piece:
    return seen(TASKS, {"pulls": [dict(zip(("id", "title", "author", "updated"), row, strict=True)) for row in rows]})


def people(*rows: tuple[str, str, str], **arguments: Any) -> Piece:
    return seen(PEOPLE, {"people": [dict(zip(("id", "name", "email"), row, strict=True)) for row in rows]}, **arguments)


def clear(tool: CatalogTool, ids: tuple[str, ...], *pieces: str | Piece) -> str:
    """Return which of the ids the words yield the call for, with blanks between them."""
    read = [read_words(one, "2026-11-23") if isinstance(one, str) else one for one in pieces]
    index = TaskIndex(read, [f"t{number}" for number in range(sum(one["k"] == "words" for one in read))])
    [name] = (one.removeprefix("/") for one in tool.controls)
    calls = {one: BoundCall(tool.name, "v", {name: one}, "", "") for one in ids}
    return " ".join(one for one, bound in calls.items() if task_facts(index, tool, bound).intent == 2)


IDS = ("B-1", "B-2", "B-3")
SUPERLATIVES = (
    ("pay the cheapest bill", "B-2"), ("pay the latest bill", "B-2"), ("pay the last bill", "B-2"),
    ("pay the oldest bill", "B-1"), ("pay the first bill", "B-1"), ("pay the largest bill", "B-1"),
    ("paga la factura más barata", "B-2"), ("paga la factura más reciente", "B-2"),
    ("paga la factura más antigua", "B-1"), ("paga la factura más cara", "B-1"),
)  # fmt: skip


@each_case(("words", "meant"), SUPERLATIVES)
@each_case("rows", [ROWS, ROWS[::-1], (ROWS[1], ROWS[0], ROWS[2])], ids=["one", "other", "mixed"])
def test_a_superlative_is_what_the_values_say_wherever_it_stands(words: str, meant: str, rows: Any) -> None:
    assert clear(PAY, IDS, words, bills(*rows)) == meant


@pytest.mark.parametrize("words", [words for words, _ in SUPERLATIVES])
@pytest.mark.parametrize("told", [
    {"has_more": True}, {"next_page": 2}, {"nextPageToken": "abc"}, {"total_count": 9}, {"total": 4},
    {"complete": False}, {"truncated": True}, {"pagination": {"has_next": True}}, {"meta": {"total": 40}},
], ids=str)  # fmt: skip
def test_a_list_that_is_shown_in_part_proves_no_superlative(words: str, told: dict[str, Any]) -> None:
    assert clear(PAY, IDS, words, bills(*ROWS, told=told)) == ""


@pytest.mark.parametrize("told", [
    {"has_more": False}, {"next_page": None}, {"next": ""}, {"total_count": 3}, {"complete": True}, {"currency": "EUR"},
    {"pagination": {"has_next": False, "total": 3}},
], ids=str)  # fmt: skip
def test_a_list_that_says_it_is_whole_does(told: dict[str, Any]) -> None:
    assert clear(PAY, IDS, "pay the cheapest bill", bills(*ROWS, told=told)) == "B-2"


@pytest.mark.parametrize("arguments", [{"page": 2}, {"offset": 50}, {"cursor": "x"}, {"limit": 3}, {"per_page": "3"}])
def test_what_was_asked_for_in_part_proves_none_either(arguments: dict[str, Any]) -> None:
    assert clear(PAY, IDS, "pay the cheapest bill", bills(*ROWS, **arguments)) == ""


@pytest.mark.parametrize("arguments", [{"page": 1}, {"offset": 0}, {"limit": 50}, {"status": "open"}])
def test_a_first_part_that_holds_all_does(arguments: dict[str, Any]) -> None:
    assert clear(PAY, IDS, "pay the cheapest bill", bills(*ROWS, **arguments)) == "B-2"


@pytest.mark.parametrize(("words", "twin"), [
    ("pay the cheapest bill", ("B-4", "Dip", 90, "2026-12-02")),
    ("pay the latest bill", ("B-4", "Dip", 95, "2026-12-20")), ("pay the last bill", ("B-4", "Dip", 95, "2026-12-20")),
    ("paga la factura más cara", ("B-4", "Dip", 300, "2026-12-02")),
])  # fmt: skip
def test_of_two_that_are_the_cheapest_neither_is(words: str, twin: tuple[str, str, int, str]) -> None:
    assert clear(PAY, (*IDS, "B-4"), words, bills(*ROWS, twin)) == ""


@each_case("words", [words for words, _ in SUPERLATIVES if "first" not in words])
def test_without_a_field_to_compare_there_is_no_superlative(words: str) -> None:
    listed = seen(PLAIN, {"bills": [{"id": one, "supplier": name} for one, name, *_ in ROWS]})
    assert clear(PAY, IDS, words, listed) == ""


def test_the_cheapest_is_not_the_one_in_short_supply() -> None:
    tool = replace(PLAIN, outputs=(*PLAIN.outputs, ("/bills/*/stock", "orderable")))
    listed = {"bills": [{"id": one, "supplier": name, "stock": left} for one, name, left, _ in ROWS]}
    assert clear(PAY, IDS, "pay the cheapest bill", seen(tool, listed)) == ""


@pytest.mark.parametrize(("words", "meant"), [("pay the last bill", ""), ("pay the latest bill", "B-2")])
def test_in_a_list_the_person_was_shown_the_last_one_may_be_a_place(words: str, meant: str) -> None:
    assert clear(PAY, IDS, "what is left to pay?", bills(*ROWS), words) == meant
    in_order = sorted(ROWS, key=lambda row: row[3])
    assert clear(PAY, IDS, "what is left to pay?", bills(*in_order), words) == "B-2"


MORE_ROWS = (*ROWS, ("B-4", "Dip", 200, "2026-12-15"))


@each_case("words", [
    "pay the second cheapest bill", "pay the third most expensive bill", "pay the second least expensive bill",
    "pay the next cheapest bill", "pay the next most expensive bill", "pay the 2nd cheapest bill",
    "pay the fourth largest bill", "pay my second last bill", "pay the second latest bill", "pay the third newest bill",
    "pay the next to last bill", "pay the second to last bill", "pay the penultimate bill",
    "paga la segunda factura más barata", "paga la segunda más barata de las facturas",
    "paga la tercera factura más cara",
    "paga la segunda factura más reciente", "paga la penúltima factura", "paga la siguiente factura más barata",
])  # fmt: skip
def test_a_rank_beside_an_end_of_an_order_is_not_that_end(words: str) -> None:
    ids = (*IDS, "B-4")
    assert clear(PAY, ids, words, bills(*MORE_ROWS)) == ""
    assert clear(PAY, ids, "what is left to pay?", bills(*MORE_ROWS), words) == ""


@each_case("words", ["pay the cheapest bill", "pay the last bill", "paga la factura más cara"])
@each_case("gone", ["amount", "due"])
@each_case("by", [{}, {"amount": None, "due": None}])
def test_what_has_nothing_to_be_compared_by_may_be_the_one(words: str, gone: str, by: dict[str, Any]) -> None:
    listed = [dict(zip(("id", "supplier", "amount", "due"), row, strict=True)) for row in ROWS]
    listed.append({"id": "B-9", "supplier": "Elm", "amount": 100, "due": "2026-12-11"} | by)
    if not by:
        del listed[-1][gone]
    compared = "due" if "last" in words else "amount"
    meant = clear(PAY, (*IDS, "B-9"), words, seen(BILLS, {"bills": listed}))
    assert bool(meant) is (compared != gone and not by)


@each_case(("first", "second"), [
    ({"amount": "$90"}, {"amount": "£80"}), ({"amount": "90 €"}, {"amount": "$95"}),
    ({"amount": 90, "currency": "USD"}, {"amount": 80, "currency": "GBP"}),
    ({"amount": 90, "currency": "USD"}, {"amount": 80}),
    ({"amount": 90, "moneda": "EUR"}, {"amount": 95, "moneda": "JPY"}),
])  # fmt: skip
@each_case("words", ["pay the cheapest bill", "paga la factura más cara"])
def test_amounts_of_two_currencies_are_not_compared(words: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    tool = replace(BILLS, outputs=(*BILLS.outputs, ("/bills/*/currency", "system"), ("/bills/*/moneda", "system")))
    listed = [{"id": "B-1", "supplier": "Acme"} | first, {"id": "B-2", "supplier": "Bolt"} | second]
    assert clear(PAY, IDS, words, seen(tool, {"bills": listed})) == ""
    same = [
        {"id": "B-1", "supplier": "Acme"} | first,
        {"id": "B-2", "supplier": "Bolt"} | first | {"amount": first["amount"]},
    ]
    same[1]["amount"] = str(first["amount"]).replace("90", "80")
    assert clear(PAY, IDS, words, seen(tool, {"bills": same})) == ("B-2" if "cheapest" in words else "B-1")


@each_case("due", [
    ("02/12/2026", "11/01/2026"), ("9 December 2026", "10 November 2026"), ("Dec 4", "Nov 9"), ("9:30", "10:00"),
    ("Friday", "Monday"), ("2026-12-02T09:00:00+02:00", "2026-12-02T08:30:00Z"), ("tomorrow", "today"),
    ("v1.9", "v1.10"), ("2026-12-02", "soon"), ("2026-12-10", "2026-12-10T10:00"),
])  # fmt: skip
@each_case("words", ["pay the last bill", "pay the latest bill", "paga la última factura", "pay the oldest bill"])
def test_times_that_are_not_written_in_order_prove_no_last_one(words: str, due: tuple[str, str]) -> None:
    rows = ("B-1", "Acme", 300, due[0]), ("B-2", "Bolt", 90, due[1])
    assert clear(PAY, IDS, words, bills(*rows)) == ""


@pytest.mark.parametrize(("words", "amounts"), [
    ("pay the cheapest bill", ("1.234 €", "999 €")), ("pay the most expensive bill", ("1.234", "999")),
    ("paga la factura más barata", ("90", "on request")), ("pay the cheapest bill", (90, "2 or more")),
])  # fmt: skip
def test_amounts_with_two_readings_or_none_are_not_compared(words: str, amounts: tuple[Any, Any]) -> None:
    rows = ("B-1", "Acme", amounts[0], "2026-12-01"), ("B-2", "Bolt", amounts[1], "2026-12-02")
    assert clear(PAY, IDS, words, bills(*rows)) == ""


def test_a_field_that_proves_nothing_leaves_nothing_to_the_others() -> None:
    tool = replace(BILLS, outputs=(*BILLS.outputs, ("/bills/*/fee", "orderable"), ("/bills/*/paid", "orderable")))
    listed = [dict(zip(("id", "supplier", "amount", "due"), row, strict=True)) for row in ROWS]
    more: list[dict[str, Any]] = [one | {"fee": one["amount"], "paid": one["due"]} for one in listed]
    for words, lacks in (("pay the cheapest bill", "fee"), ("pay the latest bill", "paid")):
        assert clear(PAY, IDS, words, seen(tool, {"bills": more})) == "B-2"
        without = [{name: value for name, value in one.items() if name != lacks} for one in more[:1]] + more[1:]
        assert clear(PAY, IDS, words, seen(tool, {"bills": without})) == ""
        assert clear(PAY, IDS, words, seen(tool, {"bills": more, "people": [{"id": "u1", "name": "Ana"}]})) == "B-2"


@pytest.mark.parametrize("due", [
    ("2026-12-02", "2026-12-10"), ("2026-12-02T09:00", "2026-12-02T10:00"), ("2026-12-02 09:00", "2026-12-02 10:00"),
    ("2026-12-02T09:00:00Z", "2026-12-02T10:00:00Z"), ("2026-12-02T09:00:00.123Z", "2026-12-02T10:00:00.000Z"),
    ("2026-11", "2026-12"), ("09:30", "10:00"),
])  # fmt: skip
def test_times_that_are_written_in_order_do(due: tuple[str, str]) -> None:
    rows = ("B-1", "Acme", 300, due[0]), ("B-2", "Bolt", 90, due[1])
    assert clear(PAY, IDS, "pay the last bill", bills(*rows)) == "B-2"


CANCEL = replace(
    NO_TOOL, name="cancel_appointment", effect="write", controls=("/appointment_id",),
    roles={"/appointment_id": "object"},
    asks=Asks(phrases_en=("cancel * appointment",), phrases_es=("cancela * cita",)),
)  # fmt: skip
LAST = "cancel my last appointment", "cancela mi última cita", "cancel the latest appointment"
FIRST = "cancel my first appointment", "cancel my oldest appointment", "cancela mi primera cita"


def appointment(words: str, *rows: dict[str, Any], shown: bool = False) -> str:
    """Return which of the rows, numbered from 1, the words cancel."""
    names = {name: "system" if "zone" in name else "orderable" for row in rows for name in row}
    outputs = {"/all/*/id": "system", "/all/*/title": "naming"} | {f"/all/*/{name}": names[name] for name in names}
    tool = replace(NO_TOOL, name="list_appointments", outputs=tuple(outputs.items()))
    titles = "Dentist", "Bank", "Notary"
    listed = [{"id": f"A-{n}", "title": titles[n - 1]} | row for n, row in enumerate(rows, 1)]
    before = ("what have I got?",) if shown else ()
    after = (words,) if shown else ()
    ids = tuple(one["id"] for one in listed)
    return clear(CANCEL, ids, *(before or (words,)), seen(tool, {"all": listed}), *after)


EARLY_LATE = ("2026-12-01", "18:00"), ("2026-12-10", "09:30"), ("2026-12-10", "11:00")


@each_case(("words", "meant"), [(one, "A-3") for one in LAST] + [(one, "A-1") for one in FIRST])
@each_case(("day", "clock"), [
    ("date", "time"), ("start_date", "start_time"), ("startDate", "startTime"), ("day", "hour"), ("fecha", "hora"),
    ("appointment_date", "appointment_time"), ("date", "start_time"), ("date", "start"),
    ("fecha_inicio", "hora_inicio"),
])  # fmt: skip
def test_a_day_and_a_time_of_day_are_one_moment(words: str, meant: str, day: str, clock: str) -> None:
    rows = [{day: date, clock: time} for date, time in EARLY_LATE]
    assert appointment(words, *rows) == meant
    assert appointment(words, *[{clock: row[clock], day: row[day]} for row in rows]) == meant


@pytest.mark.parametrize("words", LAST)
def test_what_begins_and_ends_on_a_day_has_two_moments(words: str) -> None:
    rows = [{"date": day, "start_time": time, "end_time": f"{int(time[:2]) + 1}:00"} for day, time in EARLY_LATE]
    assert appointment(words, *rows) == "A-3"
    rows[1]["end_time"] = "14:00"  # begins before the last one and ends after it
    assert appointment(words, *rows) == ""


@each_case("words", LAST)
@each_case("hours", [(18, 9, 11), ("18:00:00", "09:30:00", "11:00:00"), ("18:00Z", "09:30Z", "11:00Z")])
def test_an_hour_may_be_a_number_or_have_seconds(words: str, hours: tuple[Any, ...]) -> None:
    rows = [{"day": day, "hour": hour} for (day, _), hour in zip(EARLY_LATE, hours, strict=True)]
    assert appointment(words, *rows) == "A-3"


@pytest.mark.parametrize("words", [*LAST, "cancel my oldest appointment"])
@pytest.mark.parametrize("rows", [
    [{"due_date": day, "opening_time": clock} for day, clock in EARLY_LATE],
    [{"start_date": day, "end_time": clock} for day, clock in EARLY_LATE],
    [{"date": day, "time": clock} for day, clock in zip(("2026-12-01", "2026-12-10"), ("18:00", "9:30"), strict=True)],
    [{"date": "2026-12-01", "time": "18:00"}, {"date": "2026-12-10"}],
    [{"date": "2026-12-01", "time": "18:00"}, {"date": "2026-12-10", "time": None}],
    [{"date": "2026-12-01", "time": "18:00"}, {"date": "2026-12-10", "time": "all day"}],
    [{"date": "01/12/2026", "time": "18:00"}, {"date": "10/12/2026", "time": "09:30"}],
    [{"date": "2026-12-01", "time": "6:00 PM"}, {"date": "2026-12-10", "time": "9:30 AM"}],
    [{"date": "2026-12-10", "time": "11:00"}, {"date": "2026-12-10", "time": "11:00"}],
    [{"date": "2026-12-10", "time": "11:00", "time_zone": "Europe/Madrid"},
     {"date": "2026-12-10", "time": "09:00", "time_zone": "America/Lima"}],
    [{"date": "2026-12-10", "time": "11:00+01:00"}, {"date": "2026-12-10", "time": "09:00-05:00"}],
    [{"date": "2026-12-01", "time": "18:00", "created": "2026-11-29"},
     {"date": "2026-12-10", "time": "09:30", "created": "2026-11-20"}],
], ids=str)  # fmt: skip
def test_what_may_be_two_moments_asks(words: str, rows: list[dict[str, Any]]) -> None:
    assert appointment(words, *rows) == ""


def test_a_moment_of_two_fields_must_agree_with_the_place_as_well() -> None:
    rows = [{"date": day, "time": clock} for day, clock in EARLY_LATE]
    assert appointment("cancel my last appointment", *rows, shown=True) == "A-3"
    assert appointment("cancel my last appointment", *rows[::-1], shown=True) == ""
    assert appointment("cancel my latest appointment", *rows[::-1], shown=True) == "A-1"


def test_the_second_one_is_a_place() -> None:
    assert clear(PAY, IDS, "what is left to pay?", bills(*ROWS), "pay the second bill") == "B-2"


OTHER = ("B-7", "Dip", 9, "2027-01-01")


@pytest.mark.parametrize("words", ["pay the cheapest bill", "pay the latest bill", "pay the last bill"])
def test_the_cheapest_of_one_page_is_not_the_cheapest_of_two(words: str) -> None:
    first, second = bills(*ROWS), bills(OTHER, status="all")
    assert "B-2" not in clear(PAY, IDS, words, first, second)
    assert clear(PAY, IDS, words, bills(*ROWS), bills(*ROWS, status="all")) == "B-2"  # the same ones again


@pytest.mark.parametrize(("first", "second"), [
    (people(("u1", "Ana Ruiz", "ana@corp.example")), people(("u2", "Ana Gil", "gil@corp.example"), query="ana g")),
    (people(("u1", "Ana", "ana@corp.example")), people(("u2", "Ana", "eve@evil.example"), query="ana")),
    (people(("u1", "Ana", "a@corp.example"), ("u2", "Ana", "eve@evil.example")), people(("u3", "Leo", "l@x.example"))),
])  # fmt: skip
def test_of_two_with_the_name_that_was_said_neither_is_meant(first: Piece, second: Piece) -> None:
    assert clear(CALL_UP, ("u1", "u2", "u3"), "Page Ana", first, second) == ""


def test_a_name_is_looked_up_beside_other_names() -> None:
    first, second = (
        people(("u1", "Ana Ruiz", "ana@corp.example"), query="ana"),
        people(("u2", "Leo Paz", "l@corp.example")),
    )
    assert clear(CALL_UP, ("u1", "u2"), "Page Ana", first, second) == "u1"
    again = people(("u1", "Ana Ruiz", "ana@corp.example"), query="ruiz")
    assert clear(CALL_UP, ("u1", "u2"), "Page Ana", first, again) == "u1"


@pytest.mark.parametrize(
    "words", ["Merge ana's pull", "Merge the pull by ana", "Merge the pull of Ana", "Fusiona el pull de Ana"]
)
def test_what_somebody_else_called_by_a_persons_name_is_not_hers(words: str) -> None:
    called = pulls(("p1", "Ana", "eve", "2026-11-20"))
    assert clear(MERGE, ("p1",), words, called) == ""
    hers = pulls(("p1", "Fix", "ana", "2026-11-20"), ("p2", "Add", "leo", "2026-11-21"))
    assert clear(MERGE, ("p1", "p2"), words, hers) == "p1"


def test_a_title_is_still_a_name() -> None:
    listed = pulls(("p1", "Login page", "eve", "2026-11-20"), ("p2", "Typos", "leo", "2026-11-21"))
    assert clear(MERGE, ("p1", "p2"), "Merge the login pull", listed) == "p1"


@pytest.mark.parametrize("result", ["text", 5, None, {}, {"items": {}}, {"total": 9}])
def test_what_lists_nothing_is_no_part(result: Any) -> None:
    assert not lists_in_part(result, {"page": 2})


def test_an_amount_that_the_catalog_describes_is_no_number_of_items() -> None:
    order = {"lines": [{"sku": "k"}], "total": 40}
    assert lists_in_part(order, {})
    assert not lists_in_part(order, {}, ["/total"])
