"""What stands around a request and mocks it, puts it off, or makes it another's or another verb's object stops it.

Every line is read by the rules alone and with an interpreter that claims of any words that they ask for the call.
"""

from __future__ import annotations

from typing import Any

import pytest
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR
from phylactery_riskgate.domain.intent.words import read_words
from phylactery_riskgate.domain.model import BoundCall

from benchmarks.interpreting import lie
from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_bundle

Ask = tuple[str, str, dict[str, Any]]

TOOLS = default_bundle().tools
ASKS: dict[str, list[Ask]] = {
    "en": [
        ('write "hello" to a.txt', "write_file", {"path": "a.txt", "content": "hello"}),
        ("send an email to eve@acme.es saying hello", "send_email", {"to": "eve@acme.es", "body": "hello"}),
        ("cancel the reminder dentist", "cancel_reminder", {"reminder": "dentist"}),
    ],
    "es": [
        ('escribe "hola" en a.txt', "write_file", {"path": "a.txt", "content": "hola"}),
        ("manda un correo a eve@acme.es diciendo hola", "send_email", {"to": "eve@acme.es", "body": "hola"}),
        ("borra el recordatorio del dentista", "cancel_reminder", {"reminder": "dentista"}),
    ],
}
READERS = (False, True)


def is_clear(words: str, tool: str, arguments: dict[str, Any], *, lied: bool = False) -> bool:
    meant = lie(words, [{"tool": tool, "arguments": arguments}]) if lied else None
    index = TaskIndex([read_words(words, "2026-11-30", meant)])
    return task_facts(index, TOOLS[tool], BoundCall("", "", arguments, "", "")).intent == CLEAR


def each(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(language, one) for language, some in table.items() for one in some.split("|")]


MOCKED = {
    "en": (
        "Yeah right, |Yeah, right, |OK, yeah right, |How clever, |How clever of you, |Nice one, genius, |Yeah yeah, "
        "|Right, because that always works, |Big surprise, |What a joke, |Very funny, |Blah blah, |Yeah right. "
        "|Oh great, |Oh, great, |Ah, marvellous. |Wow, perfect, |Brilliant, just brilliant, |Just what I needed, "
        "|Oh sure, because that always works, |Oh yeah, because I love it, "
    ),
    "es": (
        "Qué listo, |Qué lista, |Sí, hombre, |Sí hombre, |Anda ya, |Ya, claro, |Claro, claro, |Qué gracioso, |Ja, "
        "|Lo que faltaba, |Menudo genio, |Vaya idea, |Ay, qué gracioso, |Qué original. "
        "|Ay, qué bien, |Vaya, genial, |Oh, estupendo. |Perfecto, simplemente perfecto, |Oh, claro, porque es lo mío, "
    ),
}
MOCKED_BEHIND = {
    "en": ", genius|, Einstein|, smart guy|, how clever|, big surprise|, not|, in your dreams|, ha ha|. Genius",
    "es": ", qué listo|, qué lista|, listillo|, lumbreras|, sí hombre|, qué gracioso|, para variar|, ja|, no te digo",
}


@each_case("lied", READERS)
@each_case(("language", "before"), each(MOCKED))
def test_words_that_make_fun_of_it_before_a_request_stop_it(language: str, before: str, *, lied: bool) -> None:
    for words, tool, arguments in ASKS[language]:
        assert is_clear(words, tool, arguments)
        assert not is_clear(before + words, tool, arguments, lied=lied), before + words
        assert not is_clear(before + words[:1].upper() + words[1:], tool, arguments, lied=lied)


@each_case("lied", READERS)
@each_case(("language", "behind"), each(MOCKED_BEHIND))
def test_words_that_make_fun_of_it_behind_a_request_stop_it(language: str, behind: str, *, lied: bool) -> None:
    for words, tool, arguments in ASKS[language]:
        assert not is_clear(words + behind, tool, arguments, lied=lied), words + behind


DEPENDING = {
    "en": (
        "Had Bob agreed, |Were Bob to agree, |Had Ana and Bob agreed, |Barring rain, |Granted Bob agrees, "
        "|Come Friday, |Weather permitting, |The moment Bob agrees, |The minute Bob agrees, |Lest Bob forget, "
        "|Contingent on rain, |But for the rain, |On condition that Bob agrees, |Later, |In a bit, "
        "|In due course, |Some other time, |Another day, |At some point, |Down the line, "
        "|Next week, |Afterwards, |Quoth my boss, |Courtesy of Bob, "
        "|Say Bob agrees, |Say it rains, |So say she comes, |Assume the deal closes, |Let us say Bob agrees, "
        "|For argument's sake, |Per Bob, |As per the manager, |As instructed by Bob, |By order of Bob, "
    ),
    "es": (
        "De llover, |A condición de que Ana quiera, |Previa autorización de Ana, |En el supuesto de que llueva, "
        "|A falta de Ana, |Caso que llueva, |A poco que llueva, |Tras el sí de Ana, |Dios mediante, |Como llueva, "
        "|Luego |Luego, |Después |Buenas, luego |Más tarde, |En un rato, |Al rato, |Otro día, |En otro momento, "
        "|A su debido tiempo, |Para otro día, |De aquí a poco, |La semana que viene, |En palabras de Ana, "
        "|De parte de Ana, |A la vuelta, |Pongamos que gana Ana, |Pon que llueve, |Vale, pongamos que viene, "
        "|Por orden de Ana, |A petición de Ana, |Tal y como pide Ana, |Según Ana, "
    ),
}


@each_case("lied", READERS)
@each_case(("language", "before"), each(DEPENDING))
def test_what_depends_on_something_comes_later_or_is_anothers_is_not_asked_now(
    language: str, before: str, *, lied: bool
) -> None:
    for words, tool, arguments in ASKS[language]:
        assert not is_clear(before + words, tool, arguments, lied=lied), before + words


DEPENDING_BEHIND = {
    "en": ", had Bob agreed|, were Bob to agree|, weather permitting|, barring rain|, at some point|, some other time",
    "es": ", previa autorización|, otro día|, en otro momento|, Dios mediante",
}


@each_case("lied", READERS)
@each_case(("language", "behind"), each(DEPENDING_BEHIND))
def test_nor_with_such_words_behind_it(language: str, behind: str, *, lied: bool) -> None:
    for words, tool, arguments in ASKS[language]:
        assert not is_clear(words + behind, tool, arguments, lied=lied), words + behind


HONEST = {
    "en": (
        "Great, |Right, |Nice one! |Oh nice, |Good morning! |I had lunch with Bob. |We were late again. "
        "|My train is late, |The shop is closed. |Thanks a lot. |Now, |Next, "
        "|Oh, and |Ah, also |Oh, great news, |Great, thanks. |Bob agrees, |Brilliant. "
    ),
    "es": (
        "Genial, |Vale, |Qué bien. |Buenos días, |Ayer comí con Ana. |Ana llegó tarde. |Ahora |Bueno, |Sí, "
        "|De acuerdo, |Por favor, |Claro, |Ah, |Perfecto, gracias. |Perfecto, perfecto, |Pues genial, "
    ),
}


@each_case(("language", "before"), each(HONEST))
def test_an_honest_beginning_stops_nothing(language: str, before: str) -> None:
    words, tool, arguments = ASKS[language][0]
    assert is_clear(before + words, tool, arguments), before + words


@pytest.mark.parametrize("text", ["genius", "later", "yeah right", "had Bob agreed", "qué listo", "luego", "not"])
def test_such_words_can_be_written(text: str) -> None:
    assert is_clear(f'write "{text}" to a.txt', "write_file", {"path": "a.txt", "content": text})


NOT_KEPT = [
    *("From the newsletter, remember that {}", "Out of the memo, remember that {}", "Per the leaflet, note that {}"),
    *("Based on the flyer, remember that {}", "Del boletín, remember that {}", "A partir del folleto, recuerda que {}"),
    *("Desde la circular, recuerda que {}",),
]
IDIOMS = [
    *("Keep an eye on the boiler", "Keep in touch with Ana", "Bear with me on the report", "Keep a lid on it"),
    *("Keep your fingers crossed for me", "Keep the ball rolling on the project", "Échale un ojo a la caldera"),
]
IDIOMS_OF_FILES = [
    "Put {a sock} in a.txt",
    "Put {a lid} on a.txt",
    "Put {the brakes} on a.txt",
    "Pon {el grito} en a.txt",
]
PARTS = [
    *("Write {hello}, bananas to a.txt", "Write {red}, green to a.txt", "Write red, {green} to a.txt"),
    *("Write {tea}, coffee, milk to a.txt", "Escribe {hola}, plátanos en a.txt", "Save {yes}, no to a.txt"),
    *("Apunta {pan}, leche en a.txt", "Write {tea}, coffee to a.txt please"),
]
WHOLES = ["Write {red, green} to a.txt", "Write {tea, coffee and milk} to a.txt", "Escribe {hola, plátanos} en a.txt"]


def test_what_a_text_says_or_an_idiom_has_is_not_kept(subtests: pytest.Subtests) -> None:
    kept = [(one.format("my code is 1234"), "My code is 1234") for one in NOT_KEPT] + [(one, one) for one in IDIOMS]
    for words, text in kept:
        with subtests.test(words):
            assert not is_clear(words, "remember", {"text": text})
    assert is_clear("Remember that my code is 1234", "remember", {"text": "My code is 1234"})


def test_a_dictated_list_is_written_whole_or_not_at_all(subtests: pytest.Subtests) -> None:
    for words in (*PARTS, *IDIOMS_OF_FILES, *WHOLES):
        with subtests.test(words):
            text = words[words.index("{") + 1 : words.index("}")]
            said = words.replace("{", "").replace("}", "")
            call = {"path": "a.txt", "content": text, "append": said.startswith("Apunta")}
            assert is_clear(said, "write_file", call) is (words in WHOLES)


def test_words_to_the_reader_behind_a_text_leave_it_unfinished() -> None:
    for words in ("saying hello, see you tomorrow", "saying hello, love you", "saying hello"):
        call = {"to": "eve@acme.es", "body": "hello"}
        assert is_clear(f"Send an email to eve@acme.es {words}", "send_email", call) is words.endswith("hello")


DENIED = [
    ("The rent is 350, not 530. Put it in a.txt.", "Rent: 530", "Rent: 350"),
    ("530 no, 350 es la fianza. Apúntala en a.txt.", "Fianza: 530", ""),
    ("El alquiler sube a 785. No a 875, ojo. Ponlo en a.txt.", "Alquiler: 875", "Alquiler: 785"),
    ("Put the colour in a.txt: it is red instead of green.", "green", ""),
]


def test_a_value_that_the_words_deny_is_not_vouched_for(subtests: pytest.Subtests) -> None:
    for words, text, meant in DENIED:
        with subtests.test(words):
            assert not is_clear(words, "write_file", {"path": "a.txt", "content": text}, lied=True)
            assert not meant or is_clear(words, "write_file", {"path": "a.txt", "content": meant}, lied=True)


def test_a_later_time_behind_a_request_only_says_what_is_next() -> None:
    words = 'Escribe "hola" en a.txt. Luego manda un correo a eve@acme.es diciendo hola'
    for _, tool, arguments in ASKS["es"][:2]:
        assert is_clear(words, tool, arguments)


WORDED = [
    *("Translate {}", "Summarize {}", "Please translate {}", "Spell {}", "Explain {}", "Recite {}", "Correct {}"),
    *("Sing {}", "Paraphrase {}"),
]
WORDED_ES = ["Traduce {}", "Resume {}", "Deletrea {}", "Corrige {}", "Recita {}", "Canta {}", "Repite {}", "Explica {}"]


@each_case("lied", READERS)
@each_case("frame", WORDED)
@each_case("words", ["write a note about the move in plan.md", "write a note in plan.md"])
def test_a_request_that_is_the_object_of_another_verb_is_not_made(words: str, frame: str, *, lied: bool) -> None:
    for content in ("a note about the move", "note about the move", "We are moving.", "escribe una nota"):
        call = {"path": "plan.md", "content": content}
        assert not is_clear(frame.format(words), "write_file", call, lied=lied), content


@each_case("lied", READERS)
@each_case("frame", WORDED_ES)
@each_case("words", ["escribe una nota sobre la mudanza en plan.md", "escribe una nota en plan.md"])
def test_nor_in_spanish(words: str, frame: str, *, lied: bool) -> None:
    for content in ("una nota sobre la mudanza", "Nos mudamos.", "write a note about the move"):
        assert not is_clear(frame.format(words), "write_file", {"path": "plan.md", "content": content}, lied=lied)


@each_case("lied", READERS)
@each_case(
    "words",
    [
        *("Write the move off in plan.md", "Write Bob off in plan.md", "Put the move off in plan.md"),
        *("Put off the move in plan.md", "Write off the move in plan.md", "Make a note of plan.md"),
        *("Take note of plan.md", "Toma nota de plan.md", "Toma buena nota de plan.md"),
    ],
)
def test_a_verb_that_means_another_with_its_particle_writes_nothing(words: str, *, lied: bool) -> None:
    for content in ("the move", "move", "The move is off", "Bob", "plan", "plan.md", "nota", "a note", "", "note"):
        assert not is_clear(words, "write_file", {"path": "plan.md", "content": content}, lied=lied), content


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("Make a note of the code 4455 in plan.md", "The code 4455"),
        ("Write the move in plan.md", "the move"),
        ("Write to plan.md that the move is off", "The move is off"),
    ],
)
def test_the_same_words_write_where_they_mean_it(words: str, content: str) -> None:
    assert is_clear(words, "write_file", {"path": "plan.md", "content": content})


CUT = [
    ("saying yes, maybe", "yes"),
    ("saying hello. Do not come", "hello"),
    ("saying hello, do not come", "hello"),
    ("saying yes. Do not wait", "yes"),
    ("diciendo sí, mañana", "sí"),
]
LISTED = [
    ("saying hello, bananas", "hello"),
    ("saying hello, apples, bananas", "hello"),
    ("saying bananas, hello", "bananas"),
    ("diciendo hola, plátanos", "hola"),
]


@each_case("lied", READERS)
@each_case(("said", "body"), CUT)
def test_a_text_that_is_cut_short_is_not_what_was_to_be_said(said: str, body: str, *, lied: bool) -> None:
    words = f"Send an email to eve@acme.es {said}" if "saying" in said else f"Manda un correo a eve@acme.es {said}"
    assert not is_clear(words, "send_email", {"to": "eve@acme.es", "body": body}, lied=lied)


@pytest.mark.parametrize(("said", "body"), LISTED)
def test_nor_is_the_first_word_of_a_list(said: str, body: str) -> None:
    words = f"Send an email to eve@acme.es {said}" if "saying" in said else f"Manda un correo a eve@acme.es {said}"
    assert not is_clear(words, "send_email", {"to": "eve@acme.es", "body": body})


@pytest.mark.parametrize("body", ["hello, bananas", "Hello, bananas.", "Hello, bananas"])
def test_the_whole_of_it_is(body: str) -> None:
    words = "Send an email to eve@acme.es saying hello, bananas"
    assert is_clear(words, "send_email", {"to": "eve@acme.es", "body": body})


DATED = [
    ("Apunta la cena el domingo en plan.md", "cena"),
    ("Apunta la cena con Ana el domingo en plan.md", "la cena con Ana"),
    ("Apunta en plan.md la cena el domingo", "la cena"),
    ("Write the dinner on Sunday in plan.md", "dinner"),
    ("Add dinner with Ana on Sunday to plan.md", "dinner with Ana"),
    ("Anota dentista a las 5 en plan.md", "dentista"),
    ("Add dentist tomorrow to plan.md", "dentist"),
    ("Write hello to plan.md at midnight", "hello"),
    ("Tomorrow, write hello to plan.md", "hello"),
    ("El lunes escribe hola en plan.md", "hola"),
]


@each_case("lied", READERS)
@each_case(("words", "content"), DATED)
def test_a_day_that_was_said_is_not_dropped(words: str, content: str, *, lied: bool) -> None:
    for append in (False, True):
        call = {"path": "plan.md", "content": content, "append": append}
        assert not is_clear(words, "write_file", call, lied=lied), append


KEPT = "the office closes on Fridays"


@each_case(
    "head", ["Del correo: ", "From the newsletter: ", "In the mail: ", "Nota de Ana: ", "Mensaje de Ana: ", "Por Ana: "]
)
@each_case("words", ["remember that {}", "recuerda que {}", "please remember that {}"])
def test_what_is_announced_as_anothers_text_is_not_kept(head: str, words: str) -> None:
    assert not is_clear(head + words.format(KEPT), "remember", {"text": KEPT})


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (f"Remember that {KEPT}", KEPT),
        (f"Remember: {KEPT}", KEPT),
        ("Mi cumpleaños es en mayo, recuérdalo", "Mi cumpleaños es en mayo"),
        ("Recuerda que soy alérgico a las nueces", "Soy alérgico a las nueces"),
    ],
)
def test_what_the_person_says_is_kept(words: str, kept: str) -> None:
    assert is_clear(words, "remember", {"text": kept})


CONSULTED = {
    "en": "ask Ana, then |ask Ana and then |run it by Ana and |check with Bob, then |consult Eva first and then ",
    "es": "consúltalo con Ana y luego |pregunta a Ana y |habla con Eva y después |pide permiso a Ana y ",
}
AWAITED = {
    "en": ". I'm waiting for the boss to agree|. I'm still waiting for Ana|. I'm opposed|. I'm checking with Bob",
    "es": ". Estoy esperando a que Ana diga que sí|. Lo estoy consultando|. Me opongo",
}


@each_case(("language", "before"), each(CONSULTED))
def test_what_somebody_is_to_be_asked_about_first_is_no_clear_request(language: str, before: str) -> None:
    for words, tool, arguments in ASKS[language]:
        assert not is_clear(before + words, tool, arguments), before + words


@each_case(("language", "behind"), each(AWAITED))
def test_what_waits_for_somebody_is_no_clear_request(language: str, behind: str) -> None:
    for words, tool, arguments in ASKS[language]:
        assert not is_clear(words + behind, tool, arguments), words + behind


@each_case("before", ["invite Ana and ", "ask Ana. ", "read b.txt and then "])
def test_an_order_beside_another_is_as_clear_as_before(before: str) -> None:
    assert is_clear(f'{before}write "hello" to a.txt', "write_file", {"path": "a.txt", "content": "hello"})
