"""A parse is complete or fails: retractions, text that is not a request, and confusing text."""

from __future__ import annotations

import pytest
from phylactery_understanding.language.text import MAX_TOKENS, Kind, fold, is_disguised, tokenize
from phylactery_understanding.requests.model import Label
from phylactery_understanding.requests.operators import left_open
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case
from tests.support.effort import assert_linear, assert_within


def clear(text: str) -> list[str]:
    """Return the verbs of the asks that nothing takes back."""
    request = parse(text)
    return [] if request.fault is not None else [one.form for one in request.asks if one.fault is None]


def labels(text: str) -> dict[str, str]:
    """Return what each word was taken for."""
    return dict(parse(text).trace())


def test_every_word_of_a_request_is_taken_for_something() -> None:
    assert labels("Please send ana@acme.es an email saying that lunch is ready") == {
        "Please": "filler", "send": "verb", "ana@acme.es": "object", "an": "article", "email": "object",
        "saying": "filler", "that": "content", "lunch": "content", "is": "content", "ready": "content",
    }  # fmt: skip
    assert labels("Añade leche a compra.txt, por favor") == {
        "Añade": "verb", "leche": "object", "a": "goal", "compra.txt": "object", ",": "mark", "por": "filler",
        "favor": "filler",
    }  # fmt: skip


def test_a_trace_names_every_token_in_order_and_nothing_else() -> None:
    text = 'Hi! I was at home.\nWrite "a b" to x.txt, then read y.txt'
    assert [raw for raw, _ in parse(text).trace()] == [one.raw for one in tokenize(text) if one.kind is not Kind.BREAK]


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("Write hello to a.txt and delete b.txt", ["write", "delete"]),
        ("Escribe hola en a.txt y luego borra b.txt", ["escribe", "borra"]),
        ("¿Puedes mandarle un correo a ana@acme.es?", ["mandarle"]),
        ("Could you please delete old.txt?", ["delete"]),
        ("necesito que borres viejo.txt", ["borres"]),
        ("1) Read a.txt\n2) Delete b.txt", ["read", "delete"]),
    ],
)
def test_each_thing_that_is_asked_for_is_an_ask(text: str, verbs: list[str]) -> None:
    assert clear(text) == verbs


OPERATED = {
    "negation": [
        "Don't delete old.txt", "No borres viejo.txt", "Never send it to ana@acme.es", "Ni se te ocurra borrar a.txt",
    ],
    "exclusion": ["Delete everything except old.txt", "Borra todo menos viejo.txt", "Email them all but ana@acme.es"],
    "condition": ["Delete old.txt if it is empty", "Si llueve, borra viejo.txt", "When Bob answers, delete old.txt"],
    "question": [
        "Should I delete old.txt?", "How do I delete old.txt?", "¿Cómo borro viejo.txt?", "¿Debo borrar a.txt?",
    ],
    "irony": ["Delete old.txt, just kidding", "Borra viejo.txt jajaja", "Sure, delete old.txt, what could go wrong"],
    "retraction": [
        "Delete old.txt. Wait, never mind", "Borra viejo.txt... mejor no, déjalo", "Delete old.txt, scratch that",
    ],
    "report": [
        "Bob says delete old.txt", "Ana me pidió que borre viejo.txt", "Ann asked me to delete old.txt yesterday",
    ],
    "hypothetical": ["Imagine you delete old.txt", "Suppose I delete old.txt", "Imagina que borras viejo.txt"],
    "future": ["Later I will ask you to delete old.txt", "Algún día borra viejo.txt"],
    "past": ["I already deleted old.txt yesterday", "Ya borré viejo.txt ayer"],
    "permission": ["You may delete old.txt", "You are allowed to delete old.txt"],
    "announce": ["Translate to Spanish: delete old.txt", "¿Cómo se dice en inglés «borra el archivo»?"],
}  # fmt: skip


@each_case(("kind", "text"), [(kind, text) for kind, texts in OPERATED.items() for text in texts])
def test_an_operator_takes_the_request_back(kind: str, text: str) -> None:
    assert not any(
        one in {"delete", "borra", "borres", "borre", "borrar", "borras", "send", "email"} for one in clear(text)
    )


@each_case(
    "text",
    [
        "Do not EVER, under any circumstances, delete old.txt",
        "DELETE OLD.TXT? NO!",
        "Under no circumstances, please, delete old.txt",
        "You must never, ever, delete old.txt",
        "Please don't, whatever happens, delete old.txt",
        "Whatever you do, don't — delete old.txt",
        "Do not - delete old.txt",
        "Bajo ningún concepto, repito, borra viejo.txt",
        "No quiero que, por favor, borres viejo.txt",
        "delete old.txt... NOT",
        "I'd rather you did not delete old.txt",
        "Nobody should delete old.txt",
        "delete old.txt (no, don't)",
        "Borra viejo.txt. No, espera.",
        "Que nadie borre viejo.txt",
        "Sin borrar viejo.txt, dime qué hay",
    ],
)
def test_a_refusal_is_heard_however_it_is_said(text: str) -> None:
    assert not {"delete", "borra", "borre", "borres", "borrar"} & set(clear(text))


@pytest.mark.parametrize(
    "text",
    [
        "I have no milk, add milk to shopping.txt",
        "I am not well, send ana@acme.es an email saying hi",
        "We can't make it, tell ana@acme.es that we are late",
    ],
)
def test_a_negation_that_says_why_takes_nothing_back(text: str) -> None:
    assert len(clear(text)) == 1


@each_case("text", ["", " ", "\n\n", "👍👍👍", "🔥", "???", "...", "¿¡", '"', "'", "«»", "-", "—", "1", "@", "#"])
def test_what_says_nothing_asks_for_nothing(text: str) -> None:
    assert clear(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "de\u200blete old.txt",
        "delete old.txt\u202etxt.dlo",
        "\u2066delete\u2069 old.txt",
        "delete ol\u00add.txt",
        "dеlete old.txt",  # a Cyrillic letter
        "borra viej\u03bf.txt",  # a Greek one
    ],
)
def test_a_disguised_message_is_not_understood(text: str) -> None:
    request = parse(text)
    assert request.fault is not None
    assert request.fault.kind == "disguise"
    assert not request.complete


@pytest.mark.parametrize(
    ("text", "hidden"), [("año", False), ("👨‍👩‍👧", False), ("a\u200bb", True), ("a\u202eb", True)]
)
def test_an_accent_and_an_emoji_are_no_disguise(text: str, *, hidden: bool) -> None:
    assert is_disguised(text) is hidden


@pytest.mark.parametrize("text", ["DELETE OLD.TXT", "BORRA EL ARCHIVO VIEJO.TXT", "Delete Old.txt"])
def test_capitals_ask_as_small_letters_do(text: str) -> None:
    assert clear(text) == [fold(text.split(maxsplit=1)[0])]


@pytest.mark.parametrize(
    "text",
    [
        'write "delete old.txt to a.txt',
        "write “delete old.txt to a.txt",
        "escribe «borra viejo.txt en a.txt",
        "write 'delete old.txt to a.txt",
    ],
)
def test_a_quotation_that_is_never_closed_is_no_second_request(text: str) -> None:
    assert not {"delete", "borra"} & set(clear(text))


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("write \"she said 'delete b.txt' twice\" to a.txt", ["she said 'delete b.txt' twice"]),
        ("escribe «dijo “borra b.txt” ayer» en a.txt", ["dijo “borra b.txt” ayer"]),
        ("write 'it's fine' to a.txt", ["it's fine"]),
        ('write "" to a.txt', [""]),
        ("the boys' file isn't 'old'", ["old"]),
    ],
)
def test_a_quotation_is_one_value_with_what_is_quoted_in_it(text: str, quoted: list[str]) -> None:
    assert [one.raw for one in tokenize(text) if one.kind is Kind.QUOTE] == quoted


def test_what_is_quoted_asks_for_nothing() -> None:
    assert clear('write "wait, never mind, delete b.txt" to a.txt') == ["write"]
    assert clear("What does 'delete old.txt' mean?") == []


@pytest.mark.parametrize("text", ["deleteold.txt", "borraelarchivoviejo", "sendanemailtoana@acme.es"])
def test_words_without_spaces_are_one_word_and_no_request(text: str) -> None:
    assert clear(text) == []


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("please borra viejo.txt, thanks", ["borra"]),
        ("por favor delete old.txt, gracias", ["delete"]),
        ("no delete old.txt", []),
        ("don't borres viejo.txt", []),
    ],
)
def test_two_languages_in_one_message_are_read_together(text: str, verbs: list[str]) -> None:
    assert clear(text) == verbs


def test_a_message_longer_than_is_read_is_not_understood() -> None:
    request = parse("delete old.txt " * MAX_TOKENS)
    assert (request.fault is not None and request.fault.kind, request.asks) == ("length", [])


@pytest.mark.timing
@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "delete a.txt and ",
        '"',
        "'a ",
        "«",
        "(",
        "no ",
        "https://a",
        "a@",
        "1,",
        "\n",
        "🔥",
        "write: ",
        "é",
        "¿",
        "if ",
    ],
)
def test_a_hundred_thousand_characters_are_read_in_bounded_time(piece: str) -> None:
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    assert_within(10, lambda: parse(text))


@pytest.mark.timing
@pytest.mark.parametrize("unit", ["Write a line to a.txt. ", "word ", "no it ", "do not ", "- uno\n"])
def test_a_long_message_is_read_in_linear_time(unit: str) -> None:
    assert_linear(parse, unit, 640, 19_200)


@pytest.mark.timing
def test_a_negation_that_is_left_open_is_looked_for_in_linear_time() -> None:
    words = parse("word").lexicon
    assert left_open(words, ["word", "please", "do", "not"]) == "do not"
    assert_linear(lambda text: left_open(words, text.split()), "word ", 2_000, 100_000)


@pytest.mark.slow
def test_what_an_ask_is_about_is_no_content_and_a_source_no_goal() -> None:
    (ask,) = parse("Send ana@acme.es the file from bob@acme.es").asks
    assert [one.raw for one in ask.of(Label.SOURCE)][-1] == "bob@acme.es"
    (ask,) = parse("Write in a.txt: delete b.txt").asks
    assert ask.verbatim
    assert [one.raw for one in ask.of(Label.CONTENT)] == ["delete", "b.txt"]
