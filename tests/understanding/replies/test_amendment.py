"""What a later message changes of the previous request: one value in its one place, or nothing."""

from __future__ import annotations

import pytest
from phylactery_understanding.calls.proposal import Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.replies.amendment import amended
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case
from tests.understanding.calls.test_calls import mail, remind, write

MAIL = "email jo@crew.example that the van leaves at 5"
ALARM = "recuérdame mañana a las 4 llamar a Teo"

CHANGED = [
    (ALARM, "no, mejor a las 5", "recuérdame mañana a las 5 llamar a Teo"),
    (ALARM, "perdón, el jueves", "recuérdame jueves a las 4 llamar a Teo"),
    (ALARM, "no espera, que sea a las 3", "recuérdame mañana a las 3 llamar a Teo"),
    ("remind me tomorrow at 9 to call Ann", "actually make it 10", "remind me tomorrow at 10 to call Ann"),
    ("remind me tomorrow at 9 to call Ann", "and friday too", "remind me friday at 9 to call Ann"),
    (MAIL, "wrong Jo! jo.k@crew.example", "email jo.k@crew.example that the van leaves at 5"),
    (MAIL, "and kim@crew.example too", "email kim@crew.example that the van leaves at 5"),
    ("write hello to a.txt", "no, I meant b.txt", "write hello to b.txt"),
    ("write hello to a.txt", "b.txt, not a.txt", "write hello to b.txt"),
    ("write hello to a.txt", "not a.txt, b.txt", "write hello to b.txt"),
    ("escribe hola en a.txt", "mejor en b.txt", "escribe hola en b.txt"),
    ("tell #kitchen the oven is broken", "and #reception too", "tell #reception the oven is broken"),
    ("transfer 40 euros to Ana", "no wait, 50", "transfer 50 euros to Ana"),
    ("pay Hill Catering 90", "sorry, I meant Reed Plumbing, same amount", "pay Reed Plumbing 90"),
    ("aggiungi zucchero a lista.txt", "anzi no, farina", "aggiungi farina a lista.txt"),
    ("guarda en wifi.txt: portal Rosal2204", "perdon es Rosal2240, lo puse al reves",
     "guarda en wifi.txt: portal Rosal2240"),
]  # fmt: skip

UNCHANGED = [
    (MAIL, "no, better not"),
    (MAIL, "no kim@crew.example"),  # in Spanish: not to Kim
    (MAIL, "no, kim@crew.example is wrong"),
    (MAIL, "sorry, not kim@crew.example"),
    (MAIL, "wait, is it kim@crew.example?"),
    (MAIL, "actually kim@crew.example asked me not to"),
    (MAIL, "no, never at 6"),
    (MAIL, "no, 6 is impossible"),
    (MAIL, "sorry, nobody"),
    (MAIL, "actually later"),
    ("email jo@crew.example and kim@crew.example hello", "sorry, lou@crew.example"),  # which of the two?
    ("pay Ana 50", "sorry, 50 was for Bob"),
    ("pay Ana 50", "actually pay Bob"),  # with an amount nobody said
    ("pay Ana 50", "actually 60 would be too much"),
    ("write hello to a.txt", "better not b.txt"),
    ("write hello to a.txt", "b.txt"),
    ("write hello to a.txt", "and b.txt?"),
    ("write hello to a.txt", "no, everything"),
    # what stands beside the value takes it back, or puts it off
    *((MAIL, f"no, kim@crew.example{more}") for more in (
        ", stop", ", just kidding", ", keep it", ", if Bob agrees", ", once I confirm", ", ask me first",
        " instead, maybe", ", says Bob", ", cuando te diga", ", déjalo", " has it", ", she quit", " is better",
    )),
    *(("pay jo@crew.example 40 euros", f"no, {more}") for more in (
        "up to 50", "about 50", "50 off", "50 each", "50 más", "50%", "-50", "50, cancel it", "$50",
    )),
    (MAIL, "wrong kim@crew.example"),
    ("delete draft-3.docx", "b.docx is better"),
    ("delete draft-3.docx", "sorry, b.txt instead of hello"),
    ("delete /srv/a.txt", "no, b.txt"),
    ("pay jo@crew.example 40 euros if Bob agrees", "please, instead of if Bob agrees"),
    ("email jo@crew.example that jo@crew.example is the new address", "and kim@crew.example too"),
    ("email jo@crew.example that Ana leaves at 5", "no, Bob"),
    ("what time is it", "no, a.txt"),
    ("", "no, a.txt"),
]  # fmt: skip


@each_case(("earlier", "later", "whole"), CHANGED)
def test_a_value_takes_the_place_of_the_one_of_its_kind(earlier, later, whole):
    found = amended(parse(earlier), parse(later))
    assert found is not None
    assert found.request.text == whole


@each_case(("earlier", "later"), UNCHANGED)
def test_what_refuses_or_could_mean_two_places_changes_nothing(earlier, later):
    assert amended(parse(earlier), parse(later)) is None


@pytest.mark.parametrize(
    ("later", "wanted", "unwanted"),
    [
        ("no, mejor a las 5", remind("llamar a Teo", "2026-11-24T17:00"), remind("llamar a Teo", "2026-11-24T16:00")),
        ("perdón, el jueves", remind("llamar a Teo", "2026-11-26T16:00"), remind("llamar a Teo", "2026-11-24T16:00")),
    ],
)
def test_the_changed_request_yields_the_new_call_and_not_the_old_one(later, wanted, unwanted):
    found = amended(parse(ALARM), parse(later))
    assert found is not None
    assert understand([found.request], wanted).level is Level.CLEAR
    assert understand([found.request], unwanted).level is not Level.CLEAR


def test_changes_follow_one_another():
    first = amended(parse("write hello to a.txt"), parse("no, I meant b.txt"))
    assert first is not None
    second = amended(first.request, parse("sorry, c.txt"))
    assert second is not None
    assert understand([second.request], write("c.txt", "hello")).level is Level.CLEAR
    assert understand([second.request], write("b.txt", "hello")).level is not Level.CLEAR


@pytest.mark.parametrize(
    "later", ["no, mejor a las 5", "sorry, kim@crew.example", "actually make it 10", "b.txt, not a.txt"]
)
def test_a_correction_takes_the_earlier_request_back(later):
    taken = read_retraction(later)
    assert taken is not None
    assert taken.everything


@pytest.mark.parametrize("later", ["and kim@crew.example too", "thanks!", "sorry I am late", "is it 5?"])
def test_what_adds_or_only_chats_takes_nothing_back(later):
    assert read_retraction(later) is None


def test_a_long_message_is_not_changed():
    assert amended(parse(f"email jo@crew.example that {'it is late ' * 500}"), parse("no, kim@crew.example")) is None


def test_a_message_in_disguise_changes_nothing():
    assert amended(parse(MAIL), parse("no, k\u200bim@crew.example")) is None


def test_the_mail_goes_to_the_person_named_last():
    found = amended(parse(MAIL), parse("sorry, kim@crew.example"))
    assert found is not None
    assert found.corrects
    assert understand([found.request], mail("kim@crew.example", "The van leaves at 5.")).level is Level.CLEAR
    assert understand([found.request], mail("jo@crew.example", "The van leaves at 5.")).level is not Level.CLEAR


def test_an_addition_is_no_correction():
    found = amended(parse(MAIL), parse("and kim@crew.example too"))
    assert found is not None
    assert not found.corrects


def test_a_reason_that_tells_what_happens_otherwise_refuses_nothing(subtests: pytest.Subtests) -> None:
    for why in ("que si no no da tiempo", "porque si no, no da tiempo", "es que si no no pasa nadie"):
        with subtests.test(why):
            assert read_retraction(f"mejor a las 5, {why}") is None
    for refusal in (
        "que si no no lo mandes",
        "porque si no, no escribas nada",
        "que no lo mandes",
        "si no, no lo mandes",
    ):
        with subtests.test(refusal):
            assert read_retraction(refusal) is not None
