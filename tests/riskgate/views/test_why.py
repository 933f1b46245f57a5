"""Why a person is asked and what a yes does: sentences without anything internal, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from phylactery_chassis.util.messages import read_messages
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle, single_user_bundle_folder
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import UNSHOWN, Evidence, TaskFacts
from phylactery_riskgate.domain.intent.words import read_words
from phylactery_riskgate.domain.model import BoundCall, CatalogTool
from phylactery_riskgate.domain.views.why import PACKAGED, Line, why_asked

from tests.support.cases import each_case
from tests.support.packages.messages import words_in
from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, tool

BUNDLES = (default_bundle_folder(), single_user_bundle_folder())
TOOLS = default_bundle().tools
INTERNAL = re.compile(
    r"irony|ironía|lexicon|polic|polít|\bclass\b|\bclase\b|\brisk|\briesgo|origin|origen|intent|signal|señal|registry"
    r"|registro|stakes|\bself\b|\bpeer\b|\bdual\b|requester|principal|_|\{|/|write\.[a-z]|catalog",
    re.IGNORECASE,
)
TO = "eve@acme.es"


def call(name: str, **arguments: Any) -> BoundCall:
    return BoundCall(name, "", arguments, "", "")


def facts(text: str, known: CatalogTool, bound: BoundCall) -> TaskFacts:
    return task_facts(TaskIndex([read_words(text, own=((0, len(text)),), starts=())]), known, bound)


def why(
    text: str, name: str, *, known: CatalogTool | None = None, own_words: bool = True, **arguments: Any
) -> list[Line]:
    known, bound = known or TOOLS[name], call(name, **arguments)
    return list(why_asked(known, bound, facts(text, known, bound), (), own_words=own_words))


def english(lines: list[Line]) -> list[str]:
    return [one.message for one in lines]


def spanish(lines: list[Line]) -> list[str]:
    return [one.message_es for one in lines]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (f"send an email to {TO} saying hello, you must be kidding", "kidding"),
        ('write "x" to a.txt, as if', "as if"),
        ("write hello to a.txt tomorrow", "tomorrow"),
        (f"send an email to {TO} saying hello if it rains", "rains"),
        (f"Send an email to {TO} saying hello, AS IF", "AS IF"),
    ],
)
def test_the_words_that_are_not_clear_are_quoted_as_they_were_written(text: str, quoted: str) -> None:
    writes = {"path": "a.txt", "content": text.split(" to ", maxsplit=1)[0].split()[1].strip('"')}
    lines = why(text, *(("write_file",) if "a.txt" in text else ("send_email",)), **(
        writes if "a.txt" in text else {"to": TO, "subject": "", "body": "hello"}
    ))  # fmt: skip
    assert lines[0].code == "UNCLEAR"
    assert quoted in lines[0].message
    assert quoted in lines[0].message_es
    for one in lines:
        assert not re.search("joke|broma", one.message + one.message_es)


def test_the_words_are_quoted_to_nobody_but_who_wrote_them() -> None:
    text = f"send an email to {TO} saying hello, you must be kidding"
    lines = why(text, "send_email", own_words=False, to=TO, subject="", body="hello")
    assert not any("kidding" in one.message + one.message_es for one in lines)


def test_whom_it_goes_to_is_said_where_the_person_did_not_say_it() -> None:
    lines = why("send an email saying hello", "send_email", to=TO, subject="", body="hello")
    assert english(lines)[0] == f"You did not say to whom; it would go to {TO}."
    assert spanish(lines)[0] == f"No dijiste a quién; iría a {TO}."
    named = why("send an email to eve saying hello", "send_email", to=TO, subject="", body="hello")
    assert english(named)[0] == f"Your request does not say {TO}."
    assert "Something in this is not what you said." not in english(lines)


def test_what_was_not_asked_for_is_said_to_be_so() -> None:
    assert (
        english(why("what is the weather", "write_file", path="a.txt", content="x"))[0] == "You did not ask for this."
    )


@pytest.mark.parametrize("place", ["body", "subject"])
def test_a_card_number_and_a_key_are_named_and_never_shown(place: str) -> None:
    texts = {"subject": "", "body": "hello"} | {place: "paid with 4111 1111 1111 1111"}
    lines = why(f"send an email to {TO} saying hello", "send_email", to=TO, **texts)
    assert "There is a card number in it." in english(lines)
    assert "Contiene un número de tarjeta." in spanish(lines)
    assert not any("4111" in one for one in (*english(lines), *spanish(lines)))
    key = {"subject": "", "body": "hello"} | {place: "key AKIAIOSFODNN7EXAMPLE"}
    assert "There is a password or a key in it." in english(why("hello", "send_email", to=TO, **key))


# ---- what a yes does ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> CatalogTool:
    properties = {"to": {"type": "string"}, "cents": {"type": "integer"}, "pin": {"type": "string"}}
    entry = tool(
        "pay",
        properties,
        effect="irreversible",
        amount={"pointer": "/cents", "unit": "cents", "currency": "EUR"},
        recipients=["/to"],
        roles={"/to": "principal", "/cents": "amount", "/pin": "secret"},
        sensitive=["/pin"],
        reach="people",
        undo="none",
        spends=True,
    )
    return bundle_of(tmp_path_factory.mktemp("pay"), [entry], ALLOW_ALL).tools["pay"]


def effects(known: CatalogTool, **arguments: Any) -> list[Line]:
    return list(why_asked(known, call(known.name, **arguments), UNSHOWN, (), own_words=True))


@pytest.mark.parametrize(
    ("cents", "told", "told_es"),
    [
        (2000, "20 EUR", "20 EUR"),
        (1999, "19.99 EUR", "19,99 EUR"),
        (5, "0.05 EUR", "0,05 EUR"),
        (100_000, "1000 EUR", "1000 EUR"),
        (2050, "20.5 EUR", "20,5 EUR"),
    ],
)
def test_what_it_spends_is_said_in_whole_units_with_the_currency(
    pay: CatalogTool, cents: int, told: str, told_es: str
) -> None:
    lines = effects(pay, to=TO, cents=cents)
    assert english(lines) == [f"This spends {told}.", f"It would arrive at {TO}.", "It cannot be taken back."]
    assert spanish(lines) == [f"Esto gasta {told_es}.", f"Le llegaría a {TO}.", "No se puede deshacer."]


@pytest.mark.parametrize("cents", [None, -5, 0.5, "20"])
def test_an_amount_that_is_none_is_not_guessed(pay: CatalogTool, cents: Any) -> None:
    assert english(effects(pay, to=TO, cents=cents))[0] == "This spends something, and I cannot tell how much."
    unknown = replace(pay, amount_unit="unknown")
    assert english(effects(unknown, to=TO, cents=2000))[0] == "This spends something, and I cannot tell how much."


def test_what_is_sensitive_is_said_nowhere(pay: CatalogTool) -> None:
    hidden = replace(pay, sensitive=("/cents", "/to", "/pin"))
    bound = call("pay", to=TO, cents=2000, pin="9876")
    told = facts("hello", hidden, bound)
    for lines in (why_asked(hidden, bound, told, (), own_words=True), effects(hidden, to=TO, cents=2000, pin="9876")):
        assert not re.search(r"20|eve|9876", " ".join((*english(list(lines)), *spanish(list(lines)))))


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        *(({"destroys": True}, "DESTROYS"), ({"guards": True}, "GUARDS"), ({"reach": "public"}, "PUBLIC")),
        *(({"undo": "none"}, "FINAL"), ({"effect": "irreversible"}, "FINAL"), ({"spends": True}, "SPENDS_UNKNOWN")),
    ],
)
def test_each_consequence_has_its_sentence(tmp_path: Path, entry: dict[str, Any], code: str) -> None:
    known = bundle_of(
        tmp_path, [tool("act", {"x": {"type": "string"}}, **{"effect": "write", **entry})], ALLOW_ALL
    ).tools["act"]
    assert code in {one.code for one in effects(known, x="y")}


def test_a_file_that_other_programs_obey_is_said_to_be_one() -> None:
    lines = effects(TOOLS["write_file"], path="Makefile", content="all:")
    assert "Other programs run or obey a file of this name." in english(lines)


@pytest.mark.parametrize(
    "hostile", ["a”. Yes is safe. “@b.es", "x\ny@b.es", "\u202eb@c.es", "b" * 500 + "@c.es", "«a»@b.es"]
)
def test_a_value_ends_no_quotation_and_begins_no_line(pay: CatalogTool, hostile: str) -> None:
    for text in (*english(effects(pay, to=hostile, cents=1)), *spanish(effects(pay, to=hostile, cents=1))):
        assert text.isprintable()
        assert len(text) < 300
        assert not set(text) & set("“”«»\u202e")


def test_many_receivers_are_counted() -> None:
    lines = effects(replace(TOOLS["send_email"], reach="people"), to=[f"u{at}@b.es" for at in range(9)])
    assert any("(+6)" in one for one in english(lines))


# ---- every reason ---------------------------------------------------------------------------------------------------


@cache
def asking(folder: Path) -> dict[str, tuple[str, str]]:
    """The policies of a bundle that can make a call be asked about, with their titles."""
    found = load_bundle(folder).policies
    return {one.id: (one.title, one.title_es) for one in found if "approved" in repr(one.tree)}


def ids() -> Iterator[str]:
    return (one for folder in BUNDLES for one in asking(folder))


@each_case("name", sorted(set(ids())))
def test_every_policy_that_can_ask_has_sentences_without_anything_internal(name: str) -> None:
    titles = next(asking(folder)[name] for folder in BUNDLES if name in asking(folder))
    bound = call("send_email", to=TO, subject="", body="hello")
    for told in (UNSHOWN, facts("what is the weather", TOOLS["send_email"], bound)):
        lines = why_asked(TOOLS["send_email"], bound, told, ((name, *titles),), own_words=True)
        assert lines
        for one in lines:
            assert one.message
            assert one.message_es
            assert one.message != one.message_es
            assert not INTERNAL.search(one.message.replace(TO, "")), one
            assert not INTERNAL.search(one.message_es.replace(TO, "")), one


def test_every_doubt_has_a_sentence_with_and_without_the_words(subtests: pytest.Subtests) -> None:
    # read here: it takes a good part of a second, which every worker would spend on its collection
    words = words_in("phylactery_understanding") | words_in("phylactery_riskgate")
    messages = read_messages("phylactery_riskgate.i18n", "en")
    bound = call("send_email", to=TO, subject="", body="hello")
    base = facts(f"send an email to {TO} saying hello, you must be kidding", TOOLS["send_email"], bound)
    doubts = {one for one in words if f"doubt_{one}" in messages}
    for missing in sorted(doubts | {"elsewhere", "source", "effect", "new"}):
        with subtests.test(missing=missing):
            for quoted, own in product(("kidding", "to", ""), (True, False)):
                told = replace(base, missing=(missing, quoted))
                lines = why_asked(TOOLS["send_email"], bound, told, (), own_words=own)
                assert lines[0].code == "UNCLEAR"
                assert ("kidding" in lines[0].message) == (own and quoted == "kidding")
                both = lines[0].message + lines[0].message_es
                assert not re.search("joke|figure of speech|broma|forma de hablar", both)
                assert not INTERNAL.search(lines[0].message)
                assert not INTERNAL.search(lines[0].message_es)


@each_case("place", ["nowhere", "text of mail", "other text of mail", "a field of crm", "a choice", "spelled"])
@each_case("origin", [1, 2, 3])
@each_case("role", ["principal", "object", "amount", "url"])
def test_every_origin_of_a_value_has_a_sentence_that_names_it(place: str, origin: int, role: Any) -> None:
    known = replace(TOOLS["send_email"], roles={"/to": role}, controls=("/to",))
    bound = call("send_email", to=TO, subject="", body="hello")
    told = replace(facts("hello", known, bound), arguments=(Evidence("/to", origin, place),))
    lines = why_asked(known, bound, told, (), own_words=True)
    assert TO in lines[1].message
    assert TO in lines[1].message_es
    assert place not in lines[1].message


def test_an_operators_own_title_is_said_in_both_languages() -> None:
    lines = effects(TOOLS["write_file"], path="a.txt", content="x")
    own = (("mine.big", "Payments above 100 need your word", "Los pagos de más de 100 piden tu sí"),)
    more = why_asked(TOOLS["write_file"], call("write_file", path="a.txt", content="x"), UNSHOWN, own, own_words=True)
    assert (more[0].message, more[0].message_es) == (f"{own[0][1]}.", f"{own[0][2]}.")
    assert list(more[1:]) == lines or lines[0].code == "ALWAYS"


def test_what_nothing_else_explains_is_asked_before_it_is_done() -> None:
    known = replace(TOOLS["write_file"], undo="ours", reach="own")
    assert english(effects(known, path="a.txt", content="x")) == ["I ask before I do this."]


def test_the_packaged_policies_that_are_named_exist() -> None:
    assert set(PACKAGED) <= set(ids()) | {"critical.dual"}
