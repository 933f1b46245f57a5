"""A call that would write a mask, or over what was read only in part, is told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phylactery_chassis.inspection import hidden_kinds
from phylactery_riskgate.domain.intent.facts import IndexReader
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CUT_SHORT, MASKED, TaskFacts
from phylactery_riskgate.domain.intent.packing import packed, unpacked
from phylactery_riskgate.domain.intent.reading import Piece, read_result, read_words
from phylactery_riskgate.domain.model import BoundCall, Caller, CallSite, Decision, RawCall, Verdict

from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_engine

ENGINE = default_engine()
TOOLS = ENGINE.bundle.tools
KEY = "sk-proj-Zt4Yq8Wn2Lk6Vb0Xc3Mf7Hj1"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJlc2lnbmF0dXJl"
CONFIG = f"API_KEY={KEY}\ndebug=false\n"
ASKED = "In config.ini change debug to true"


def read(text: str, path: str = "config.ini", *, partial: bool = False, tool: str = "read_file") -> Piece:
    reading = read_result(
        TOOLS[tool], tool, "c1", {"path": path}, text, is_text=True, failed=False, partial=partial,
        hidden=hidden_kinds(text),
    )  # fmt: skip
    return unpacked(packed(reading.piece)[0])


def decided(tool: str, arguments: dict[str, Any], *pieces: Piece, words: str = ASKED) -> Verdict:
    index = TaskIndex([read_words(words), *pieces])
    return ENGINE.decide(
        RawCall(tool, "c2", arguments_struct=arguments), Caller("ana", "acme"),
        CallSite("t1", "r1"), task=IndexReader(index),
    )  # fmt: skip


def write(content: str, *pieces: Piece, path: str = "config.ini", words: str = ASKED, append: bool = False) -> Verdict:
    return decided("write_file", {"path": path, "content": content, "append": append}, *pieces, words=words)


def told(verdict: Verdict) -> TaskFacts:
    assert verdict.task is not None
    return verdict.task


def says(verdict: Verdict, policy_id: str) -> bool:
    return policy_id in {one.policy_id for one in verdict.reasons}


@each_case(
    ("secret", "mask"),
    [(KEY, "«openai_key»"), (KEY, "[REDACTED]"), (KEY, "« OpenAI_Key »"), (JWT, "«jwt»"), (JWT, "<jwt>")],
)
@each_case("append", [False, True])
def test_a_mask_of_a_value_that_was_masked_in_the_task_asks_with_that_reason(
    secret: str, mask: str, append: bool
) -> None:
    verdict = write(f"API_KEY={mask}\ndebug=true\n", read(f"API_KEY={secret}\ndebug=false\n"), append=append)
    assert verdict.decision is Decision.AUTH_REQUIRED
    assert says(verdict, "write.masked")
    assert told(verdict).masked


def test_a_file_that_held_the_mask_before_works_where_nothing_was_masked() -> None:
    before, text = read("use «openai_key» here\n", "doc.txt"), "«openai_key» stays"
    words = f'Append "{text}" to doc.txt'
    assert write(text, before, path="doc.txt", words=words, append=True).decision is Decision.ALLOW
    assert not told(write("use «openai_key» there", before, path="doc.txt")).masked
    assert write(text, path="doc.txt", words=f'Write "{text}" to doc.txt').decision is Decision.ALLOW


def test_a_mask_of_a_kind_that_was_not_masked_works() -> None:
    words = 'Write "the field is «iban»" to doc.txt'
    assert write("the field is «iban»", read(CONFIG), path="doc.txt", words=words).decision is Decision.ALLOW


def test_what_the_person_said_and_nothing_observed_masked_works() -> None:
    words = f'Write "API_KEY={KEY}" to config.ini'
    assert not told(write("API_KEY=«openai_key»", words=words)).masked, "that it was taken out is said by the agent"


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": ["«openai_key»@acme.example"], "subject": "s", "body": "b"},
        {"to": ["ana@acme.example"], "subject": "«openai_key»", "body": "b"},
        {"to": ["ana@acme.example"], "subject": "s", "body": f"x {'y ' * 5000} «openai_key»"},
    ],
)
def test_a_mask_counts_in_recipients_and_in_long_contents(arguments: dict[str, Any]) -> None:
    verdict = decided("send_email", arguments, read(CONFIG), words="Send the config to ana@acme.example")
    assert verdict.bound is None or told(verdict).masked
    assert verdict.decision is not Decision.ALLOW


def test_a_mask_counts_in_a_path() -> None:
    assert told(write("x", read(CONFIG), path="«openai_key».txt")).masked


def test_a_mask_counts_in_nested_arguments_and_names() -> None:
    tool = replace(TOOLS["write_file"], schema={"type": "object"}, paths=(), controls=())
    for arguments in (
        {"edits": [{"old": "a", "new": [{"text": "«openai_key»"}]}]},
        {"edits": [{"old": "«openai", "new": "_key»"}]},
        {"env": {"«openai_key»": "x"}},
        {"list": ["x"] * 600 + ["«openai_key»"]},
    ):
        bound = BoundCall("write_file", "v", arguments, "", "")
        assert IndexReader(TaskIndex([read_words(ASKED), read(CONFIG)]))(tool, bound).masked
        assert not IndexReader(TaskIndex([read_words(ASKED), read("debug=false")]))(tool, bound).masked


def test_reading_with_a_mask_is_free() -> None:
    verdict = decided("search_files", {"pattern": "«openai_key»"}, read(CONFIG), words="Where is «openai_key»?")
    assert verdict.decision is Decision.ALLOW


def test_a_model_that_remembers_a_mask_asks() -> None:
    verdict = decided("remember", {"text": "the key is «openai_key»"}, read(CONFIG), words="Remember the key")
    assert verdict.decision is Decision.AUTH_REQUIRED


def test_the_mark_of_a_stored_output_asks_before_it_is_written() -> None:
    for mark in (
        "[EVICTED size=120000] See out_abcdefghijklmnopqrstuvwxyz",
        "See out_abcdefghijklmnopqrstuvwxyz",
        "a\n[… 116000 characters are left out here …]\nb",
    ):
        verdict = write(
            f"{mark}\nThe end.", read("a " * 1000, "book.txt"), path="book.txt", words=f"Add 'The end.' to {mark[:1]}"
        )
        assert verdict.decision is not Decision.ALLOW
        assert told(verdict).cut_short


def test_a_mark_that_the_person_wrote_works() -> None:
    pointer = "out_abcdefghijklmnopqrstuvwxyz"
    words = f'Write "see {pointer}" to doc.txt'
    assert write(f"see {pointer}", path="doc.txt", words=words).decision is Decision.ALLOW


@pytest.mark.parametrize("path", ["book.txt", "BOOK.txt", "./book.txt", "boo\u0301k.txt"])
def test_replacing_what_was_read_in_part_asks_with_that_reason(path: str) -> None:
    words = f'Write "The end." to {path}'
    verdict = write("The end.", read("word " * 1000, "book.txt", partial=True), path=path, words=words)
    assert told(verdict).cut_short
    assert verdict.decision is Decision.AUTH_REQUIRED
    assert says(verdict, "write.cut-short")


def test_adding_to_it_or_replacing_another_file_works() -> None:
    part = read("word " * 1000, "book.txt", partial=True)
    assert write("The end.", part, path="book.txt", words='Append "The end." to book.txt', append=True).decision is (
        Decision.ALLOW
    )
    assert write("The end.", part, path="b.txt", words='Write "The end." to b.txt').decision is Decision.ALLOW


def test_a_path_of_any_length_is_the_one_that_was_read() -> None:
    path = "/".join(["folder" * 6] * 9) + "/book.txt"
    assert told(write("x", read("word", path, partial=True), path=path, words="Rewrite it")).cut_short


def test_facts_of_earlier_decisions_read_as_they_were() -> None:
    facts = told(write("x"))
    assert TaskFacts.from_json(facts.to_json()) == facts
    assert MASKED not in facts.signal_reasons
    assert CUT_SHORT not in facts.signal_reasons


def look(path: str, *, there: bool = True) -> Piece:
    told = {"path": path, "exists": there, "size": 40 if there else None, "modified": "2026-01-01T00:00:00Z"}
    reading = read_result(TOOLS["file_info"], "file_info", "c1.info", {"path": path}, told, is_text=False, failed=False)
    return unpacked(packed(reading.piece)[0])


ADDS = ("pon queso en la lista de compra.txt", "cambia pan por queso en compra.txt", "update compra.txt with cheese")


@pytest.mark.parametrize("words", ADDS)
def test_replacing_a_file_that_nobody_read_asks_with_that_reason(words: str) -> None:
    verdict = write("lista: queso y pan", look("compra.txt"), path="compra.txt", words=words)
    assert told(verdict).cut_short
    assert verdict.decision is not Decision.ALLOW
    for others in (
        (look("compra.txt"), read("lista: pan", "compra.txt")),
        (look("compra.txt"), read("compra.txt", "compra.txt", tool="write_file")),
        (look("otra.txt"),),
        (look("compra.txt", there=False),),
    ):
        assert not told(write("lista: queso y pan", *others, path="compra.txt", words=words)).cut_short
    assert not told(write("queso", look("compra.txt"), path="compra.txt", words=words, append=True)).cut_short, (
        "what is added loses nothing"
    )


@pytest.mark.parametrize("content", ["hola", "hola, ¿qué tal?"])
def test_what_the_person_spells_out_replaces_a_file_that_nobody_read(content: str) -> None:
    words = f'Reemplaza el contenido de compra.txt por "{content}"'
    assert not told(write(content, look("compra.txt"), path="compra.txt", words=words)).cut_short
    assert told(write(f"{content} y más", look("compra.txt"), path="compra.txt", words=words)).cut_short


# (words, what the model wants to be the whole file, whether they presuppose that there is one)
ADDED = [
    ("put eggs in shopping.txt too", "eggs", True),
    ("put eggs in shopping.txt as well", "eggs", True),
    ("write eggs in shopping.txt also", "eggs", True),
    ("save eggs in shopping.txt on top of that", "eggs", True),
    ("stick eggs in shopping.txt", "eggs", True),
    ("add eggs to shopping.txt", "eggs", True),
    ("append eggs to shopping.txt", "eggs", True),
    ("put one more line in shopping.txt: eggs", "eggs", True),
    ("mete pan en compra.txt", "pan", True),
    ("mete también pan en compra.txt", "pan", True),
    ("pon también pan en compra.txt", "pan", True),
    ("guarda pan en compra.txt también", "pan", True),
    ("escribe además pan en compra.txt", "pan", True),
    ("apunta pan en compra.txt", "pan", True),
    ("anota pan en compra.txt", "pan", True),
    ("agrega pan a compra.txt", "pan", True),
    ("añade pan a compra.txt", "pan", True),
    ("change the first line of shopping.txt to eggs", "eggs", True),
    ("overwrite the last line of shopping.txt with eggs", "eggs", True),
    ("replace eggs in shopping.txt", "eggs", True),
    ("update eggs in shopping.txt", "eggs", True),
    ("replace in shopping.txt eggs", "eggs", True),
    ("in shopping.txt change eggs", "eggs", True),
    ("replace some of shopping.txt with eggs", "eggs", True),
    ("replace the first word of shopping.txt with eggs", "eggs", True),
    ("en compra.txt reemplaza pan", "pan", True),
    ("cambia el título de compra.txt a pan", "pan", True),
    ("cambia la línea 2 de compra.txt por pan", "pan", True),
    ("update shopping.txt with eggs", "eggs", True),
    ("actualiza compra.txt con pan", "pan", True),
    ("edita compra.txt con pan", "pan", True),
    ("put eggs in shopping.txt", "eggs", False),
    ('put "eggs" in shopping.txt', "eggs", False),
    ("write eggs in shopping.txt", "eggs", False),
    ("note eggs in shopping.txt", "eggs", False),
    ("pon pan en compra.txt", "pan", False),
    ("deja pan en compra.txt", "pan", False),
    ("clear the first line of shopping.txt", "", False),
    ("wipe the second half of shopping.txt", "", False),
    ("vacía el último párrafo de compra.txt", "", False),
    ("borra la primera línea de compra.txt", "", False),
]  # fmt: skip


@each_case(("words", "content", "presupposes"), ADDED)
def test_words_that_add_replace_no_file_that_nobody_read(words: str, content: str, presupposes: bool) -> None:
    path = next(one.strip(":") for one in words.split() if ".txt" in one)
    verdict = write(content, look(path), path=path, words=words)
    assert verdict.decision is Decision.AUTH_REQUIRED
    assert says(verdict, "write.cut-short")
    if presupposes:
        assert write(content, path=path, words=words).decision is Decision.AUTH_REQUIRED, "whoever does not look"
    elif content:
        assert write(content, look(path, there=False), path=path, words=words).decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("replace the content of shopping.txt with eggs", "eggs"),
        ("replace everything in shopping.txt with eggs", "eggs"),
        ("overwrite shopping.txt with eggs", "eggs"),
        ("sobrescribe compra.txt con pan", "pan"),
        ("sustituye el contenido de compra.txt por pan", "pan"),
        ("vacía compra.txt", ""),
    ],
)
def test_words_that_say_what_a_whole_file_becomes_replace_it(words: str, content: str) -> None:
    path = next(one for one in words.split() if ".txt" in one)
    for pieces in ((look(path),), (), (look(path), read("milk", path))):
        assert write(content, *pieces, path=path, words=words).decision is Decision.ALLOW
    if content:
        assert write(f"{content} y más", look(path), path=path, words=words).decision is Decision.AUTH_REQUIRED


@pytest.mark.parametrize("words", ["pon pan en compra.txt", "pon también pan en compra.txt"])
def test_what_was_read_is_kept_where_words_add_to_it(words: str) -> None:
    seen = look("compra.txt"), read("leche\nhuevos\n", "compra.txt")
    for loses in ("pan", "leche\npan", "huevos\npan"):
        assert write(loses, *seen, path="compra.txt", words=words).decision is Decision.AUTH_REQUIRED
    first = look("compra.txt"), read("leche", "compra.txt")
    assert write("pan", *first, path="compra.txt", words=words).decision is Decision.AUTH_REQUIRED


@pytest.mark.parametrize(
    ("words", "content", "path"),
    [
        ("also write eggs in shopping.txt", "eggs", "shopping.txt"),
        ("write eggs in shopping.txt and in list.txt too", "eggs", "list.txt"),
        ("escribe pan en compra.txt y también en lista.txt", "pan", "compra.txt"),
        ('write "me too" in shopping.txt', "me too", "shopping.txt"),
        ('escribe "yo también" en compra.txt', "yo también", "compra.txt"),
    ],
)
def test_a_word_about_another_request_or_file_adds_nothing(words: str, content: str, path: str) -> None:
    assert write(content, path=path, words=words).decision is Decision.ALLOW


SECRET_MASKS = [
    "***", "**", "sk-***", "sk-proj-****", "xxx", "XXXXXX", "•••", "(hidden)", "(oculto)", "<your key>", "YOUR_API_KEY",
    "${API_KEY}", "{{secret}}", "tu_clave", "[hidden]", "…", "«openai_key»", "[REDACTED]",
]  # fmt: skip


@each_case("mask", SECRET_MASKS)
@each_case("path", ["copy.ini", "config.ini"])
def test_a_copy_with_anything_in_place_of_a_secret_asks_with_that_reason(mask: str, path: str) -> None:
    for line in (f"API_KEY={mask}", f'"API_KEY": "{mask}"', f"API_KEY: {mask}"):
        verdict = write(
            f"{line}\ndebug=false\n", read(CONFIG, partial=True), path=path, words=f"Copy config.ini to {path}"
        )
        assert verdict.decision is Decision.AUTH_REQUIRED
        assert says(verdict, "write.masked")


@pytest.mark.parametrize("text", ["API_KEY=\n", "", "API_KEY\n", "API_KEY=later\n"])
def test_a_copy_that_leaves_a_secret_out_asks_with_that_reason(text: str) -> None:
    config = f"host=db.example\n{CONFIG}level=info\n"
    copied = config.replace(f"API_KEY={KEY}\n", text)
    verdict = write(copied, read(config, partial=True), path="copy.ini", words="Copy config.ini to copy.ini")
    assert verdict.decision is Decision.AUTH_REQUIRED
    assert says(verdict, "write.cut-short")


BOOK = "\n".join(f"line {number} of the book about lions and {number * 7919 % 10007} tigers" for number in range(2000))
COPIES = (
    "copy book.txt to copy.txt", "save a copy of book.txt as copy.txt", "write the content of book.txt to copy.txt",
    "copia book.txt a copy.txt", "haz una copia de book.txt en copy.txt", "duplicate book.txt as copy.txt",
)  # fmt: skip


@pytest.mark.parametrize("words", COPIES)
@pytest.mark.parametrize("append", [False, True])
def test_a_copy_of_what_was_read_in_part_asks_with_that_reason(words: str, append: bool) -> None:
    shown = f"{BOOK[:2000]}\n{BOOK[-2000:]}"
    for part in (shown, BOOK[:4000], BOOK[-3000:], f"# A copy\n\n{BOOK[:3000].upper()}"):
        verdict = write(part, read(BOOK, "book.txt", partial=True), path="copy.txt", words=words, append=append)
        assert verdict.decision is Decision.AUTH_REQUIRED
        assert says(verdict, "write.cut-short")


def test_a_whole_copy_some_lines_or_what_is_made_of_a_part_are_no_copy_of_a_part() -> None:
    for content, piece in (
        (BOOK, read(BOOK, "book.txt", partial=True)),  # read page by page
        (BOOK[:4000], read(BOOK[:4000], "book.txt")),
        ("\n".join(BOOK.split("\n")[:3]), read(BOOK, "book.txt", partial=True)),
        ("A book about lions and tigers, of two thousand lines.", read(BOOK, "book.txt", partial=True)),
        ("debug=true", read(CONFIG, partial=True)),
    ):
        assert not told(write(content, piece, path="copy.txt", words="copy book.txt to copy.txt")).cut_short


TWINS = [("Notes.txt", "notes.txt"), ("caña.txt", "cana.txt"), ("m².txt", "m2.txt"), ("CAÑA.txt", "caña.txt")]


@each_case(("path", "other"), [pair for one in TWINS for pair in (one, one[::-1])])
def test_a_file_is_not_read_by_reading_one_of_nearly_its_name(path: str, other: str) -> None:
    for words, content in ((f"update {path} with eggs", "eggs"), (f"rewrite {path}", "milk, eggs and bread")):
        verdict = write(content, look(path), read("milk", other), path=path, words=words)
        assert verdict.decision is Decision.AUTH_REQUIRED
        assert says(verdict, "write.cut-short")
        assert not told(write(content, look(path), read("milk", path), path=path, words=words)).cut_short


GOODS = "milk", "bread", "cheese", "eggs", "rice", "beans", "salt", "oil", "sugar", "flour"
REPEATING = (
    "\n".join(" ".join(GOODS[row * (at + 3) % 7 + row * at % 4] for at in range(6)) for row in range(400)),
    "- buy milk and bread\n" * 800,
    "\n".join(" ".join(str(row * row * (at + 1) % 10) for at in range(20)) for row in range(300)),
    "ja " * 3000,
    "\n".join(f"日本語のテキスト{row % 10}行" for row in range(900)),
    "\n".join(f"{row * 7 % 24:02}:00 backup done, all is well" for row in range(600)),
)


@pytest.mark.parametrize("text", REPEATING, ids=range(len(REPEATING)))
@pytest.mark.parametrize("words", COPIES[:2])
def test_a_copy_of_a_part_of_what_repeats_its_words_asks_with_that_reason(text: str, words: str) -> None:
    piece = read(text, "book.txt", partial=True)
    for part in (text[:4000], f"{text[:2000]}\n{text[-2000:]}", text[: len(text) // 2], text[: len(text) * 9 // 10]):
        verdict = write(part, piece, path="copy.txt", words=words)
        assert verdict.decision is not Decision.ALLOW
        assert says(verdict, "write.cut-short")
    for other in (text, f"# A copy\n\n{text.replace(chr(10), chr(13) + chr(10))}", "milk, bread, cheese, rice"):
        assert not told(write(other, piece, path="copy.txt", words=words)).cut_short
