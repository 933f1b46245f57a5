"""What words behind a request, in the same message, take back or change of it does not run; the rest does."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR, TaskFacts
from phylactery_riskgate.domain.intent.words import read_words
from phylactery_riskgate.domain.model import BoundCall

from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_bundle

TOOLS = default_bundle().tools
Call = tuple[str, dict[str, Any]]
ASKS: dict[str, dict[str, Call]] = {
    "es": {
        "Manda un correo a ana@acme.es diciendo hola": ("send_email", {"to": "ana@acme.es", "body": "hola"}),
        'Escribe "hola" en a.txt': ("write_file", {"path": "a.txt", "content": "hola"}),
        'Añade "leche" a compra.txt': ("write_file", {"path": "compra.txt", "content": "leche", "append": True}),
    },
    "en": {
        "Send an email to ana@acme.es saying hello": ("send_email", {"to": "ana@acme.es", "body": "hello"}),
        'Write "hello" to a.txt': ("write_file", {"path": "a.txt", "content": "hello"}),
    },
}
TAKEN_BACK = {
    "es": [
        *("Olvídalo", "olvidalo", "Déjalo", "Mejor no", "No lo hagas", "No, espera", "Cancela eso", "Cancélalo"),
        *("Da igual", "Déjalo estar", "Ya no hace falta", "No hace falta", "Nada, déjalo", "Mejor déjalo", "Para"),
        *("Ni caso", "Espera, no", "Anúlalo", "Borra eso", "Pensándolo bien, no", "Retiro lo dicho", "Olvídate"),
        *("Olvida lo que he dicho", "Al final no", "No, mejor no", "Era broma", "No me hagas caso", "Ya no lo hagas"),
    ],
    "en": [
        *("Forget it", "Never mind", "Nevermind", "Cancel that", "Cancel it", "Don't", "Don't do it", "No, wait"),
        *("Do not do that", "Actually, don't", "Scratch that", "Stop", "On second thought, no", "Leave it", "No need"),
        *("Ignore that", "Disregard that", "Forget what I said", "Just kidding", "Wait, no", "Skip it", "Drop it"),
        *("Abort", "Undo that", "Hold on", "Please don't", "I take it back", "Better not", "Rather not"),
    ],
}
JOINERS = {
    "es": [". ", "\n", "\n\n", ", ", "; ", "… ", "! ", " - ", " — ", " 😅 ", " y ", " pero "],
    "en": [". ", "\n", "\n\n", ", ", "; ", "… ", "! ", " - ", " — ", " 😅 ", " and ", " but "],
}


def facts(text: str, call: Call, *, starts: tuple[int, ...] = ()) -> TaskFacts:
    tool, arguments = call
    piece = read_words(text, own=((0, len(text)),), starts=starts)
    return task_facts(TaskIndex([piece]), TOOLS[tool], BoundCall("", "", dict(arguments), "", ""))


def is_clear(text: str, call: Call, *, starts: tuple[int, ...] = ()) -> bool:
    return facts(text, call, starts=starts).intent == CLEAR


def each(language: str) -> st.SearchStrategy[tuple[str, str, str]]:
    return st.tuples(
        st.sampled_from(list(ASKS[language])),
        st.sampled_from(JOINERS[language]),
        st.sampled_from(TAKEN_BACK[language]),
    )


def check(language: str, ask: str, joiner: str, back: str) -> None:
    call, begins = ASKS[language][ask], len(ask) + len(joiner)
    assert is_clear(ask, call)
    for starts in ((), (begins,)) if joiner.startswith("\n") else ((),):
        assert not is_clear(f"{ask}{joiner}{back}", call, starts=starts), (ask, joiner, back, starts)


@pytest.mark.parametrize("language", ASKS)
def test_nothing_that_a_message_itself_takes_back_is_clear(language: str) -> None:
    @given(each(language))
    def taken_back(one: tuple[str, str, str]) -> None:
        check(language, *one)

    taken_back()


@pytest.mark.slow
@pytest.mark.parametrize(("language", "joiner"), [(name, one) for name, joiners in JOINERS.items() for one in joiners])
def test_no_wording_and_no_joiner_lets_through_what_was_taken_back(language: str, joiner: str) -> None:
    for ask, back in product(ASKS[language], TAKEN_BACK[language]):
        check(language, ask, joiner, back)


@each_case("back", ["Olvídalo", "Cancélalo", "Mejor no", "No, espera", "Déjalo"])
@each_case("joiner", [". ", "\n", "! "])
def test_a_sentence_that_takes_all_back_refuses_and_what_is_asked_behind_it_stands(back: str, joiner: str) -> None:
    ask, call = next(iter(ASKS["es"].items()))
    assert facts(f"{ask}{joiner}{back}", call).refused
    other: Call = ("write_file", {"path": "z.txt", "content": "adiós"})
    text = f'{ask}{joiner}{back}. Escribe "adiós" en z.txt'
    assert not is_clear(text, call)
    assert not facts(text, other).refused


WITHOUT_B = {
    'Escribe "hola" en a.txt y en b.txt': [
        *("El b.txt déjalo", "b.txt déjalo", "Deja b.txt", "Olvida b.txt", "Olvida lo de b.txt", "Cancela b.txt"),
        *("Sáltate b.txt", "Omite b.txt", "Deja en paz b.txt", "Quita b.txt", "En b.txt no", "b.txt mejor no"),
    ],
    'Write "hello" to a.txt and b.txt': [
        *("Leave b.txt alone", "Leave b.txt", "Skip b.txt", "Forget b.txt", "Forget about b.txt", "Drop b.txt"),
        *("Cancel b.txt", "Not b.txt", "Don't touch b.txt", "But not b.txt", "Ignore b.txt", "no b.txt"),
    ],
}


@each_case(("ask", "back"), [(ask, back) for ask, backs in WITHOUT_B.items() for back in backs])
@each_case("joiner", [". ", "\n", "; ", ", "])
def test_one_target_taken_back_does_not_run(ask: str, back: str, joiner: str) -> None:
    content = "hola" if "hola" in ask else "hello"
    calls: list[Call] = [("write_file", {"path": path, "content": content}) for path in ("a.txt", "b.txt")]
    assert [is_clear(ask, call) for call in calls] == [True, True]
    assert not is_clear(f"{ask}{joiner}{back}", calls[1])


@pytest.mark.parametrize(
    ("ask", "back"),
    [
        ('Escribe "hola" en a.txt y en b.txt', "El b.txt déjalo"),
        ('Escribe "hola" en a.txt y en b.txt', "Olvida b.txt"),
        ('Escribe "hola" en a.txt y en b.txt', "Sáltate b.txt"),
    ],
)
def test_the_other_target_still_runs(ask: str, back: str) -> None:
    for joiner in (". ", "\n"):
        text = f"{ask}{joiner}{back}"
        assert is_clear(text, ("write_file", {"path": "a.txt", "content": "hola"}))
        assert facts(text, ("write_file", {"path": "b.txt", "content": "hola"})).refused


CHANGED = {
    "Manda un correo a ana@acme.es diciendo hola": [
        *("Cámbialo por adiós", "Cambia hola por adiós", "Mejor adiós", "No, adiós", "Perdón, adiós", "Que sea adiós"),
        *("Mejor di adiós", "Quise decir adiós", "Adiós en vez de hola", "Sustitúyelo por adiós", "Ponle adiós"),
        *("Cambia el texto a adiós", "Modifícalo: adiós", "Corrijo: adiós", "Mejor pon adiós"),
    ],
    "Send an email to ana@acme.es saying hello": [
        *("Change it to bye", "Change hello to bye", "Make it bye", "No, bye", "Sorry, bye", "I meant bye", "Use bye"),
        *("Say bye instead", "bye instead of hello", "Replace it with bye", "Let it be bye", "Swap it for bye"),
    ],
    'Escribe "hola" en a.txt': [
        "Cámbialo por b.txt",
        "Mejor en b.txt",
        "No, en b.txt",
        "Ponlo en b.txt",
        "Que sea b.txt",
    ],
    'Write "hello" to a.txt': [
        "Change it to b.txt",
        "No, b.txt",
        "Put it in b.txt instead",
        "I meant b.txt",
        "Use b.txt",
    ],
}


@each_case(("ask", "change"), [(ask, change) for ask, changes in CHANGED.items() for change in changes])
@each_case("joiner", [". ", "\n", ", "])
def test_a_value_that_was_changed_does_not_run_as_first_said(ask: str, change: str, joiner: str) -> None:
    call = next(calls[ask] for calls in ASKS.values() if ask in calls)
    assert not is_clear(f"{ask}{joiner}{change}", call)


@each_case("change", ["Mejor en b.txt", "No, en b.txt", "Perdón, b.txt", "Quise decir b.txt"])
@each_case("joiner", [". ", "\n"])
def test_a_change_behind_a_request_is_what_is_asked_for(change: str, joiner: str) -> None:
    text = f'Escribe "hola" en a.txt{joiner}{change}'
    assert is_clear(text, ("write_file", {"path": "b.txt", "content": "hola"}))
    assert not is_clear(text, ("write_file", {"path": "a.txt", "content": "hola"}))


@pytest.mark.parametrize(
    "text",
    [
        'Escribe "hola. Olvídalo" en a.txt',
        'Escribe "hola" en a.txt. Gracias',
        'Escribe "hola" en a.txt. No hay prisa',
        'Write "forget it" to a.txt',
        'Write "hello" to a.txt. Thanks',
        'Please write "hello" to a.txt but don\'t change anything else.',
        'Write "hello" to a.txt. No problem',
    ],
)
def test_content_and_courtesy_take_nothing_back(text: str) -> None:
    content = text.partition('"')[2].partition('"')[0]
    assert not facts(text, ("write_file", {"path": "a.txt", "content": content})).refused


def test_a_message_that_was_joined_takes_back_what_was_dictated_before_it() -> None:
    text = "Escribe en a.txt: hola\nOlvídalo"
    call: Call = ("write_file", {"path": "a.txt", "content": "hola"})
    assert facts(text, call, starts=(text.index("Olv"),)).refused


@pytest.mark.parametrize("newer", ["no, a bob@acme.es", "mejor b.txt", "sí", "sí, hazlo"])
def test_a_later_message_does_not_bring_back_what_its_own_message_took_back(newer: str) -> None:
    for ask, call in ASKS["es"].items():
        index = TaskIndex([read_words(f"{ask}. Olvídalo"), read_words(newer)])
        tool, arguments = call
        changed = {name: "b.txt" if name == "path" else one for name, one in arguments.items()}
        for given_arguments in (arguments, {**changed, "to": "bob@acme.es"} if "to" in arguments else changed):
            found = task_facts(index, TOOLS[tool], BoundCall("", "", given_arguments, "", ""))
            assert found.intent < CLEAR


MAIL, NOTE = {"to": "ana@acme.es"}, {"path": "notes.txt"}


@pytest.mark.parametrize(
    ("first", "then", "call"),
    [
        ("send an email to ana@acme.es saying: hello", "change it to bye", ("send_email", MAIL)),
        ("write to notes.txt: hello", "change it to bye", ("write_file", NOTE)),
        ("write to notes.txt: hello", "put it in other.txt instead", ("write_file", NOTE)),
        ("manda un correo a ana@acme.es diciendo: hola", "cámbialo por adiós", ("send_email", MAIL)),
        ("escribe en notes.txt: hola", "cámbialo por adiós", ("write_file", NOTE)),
    ],
)
def test_what_was_dictated_does_not_swallow_a_change_that_was_joined(first: str, then: str, call: Call):
    tool, arguments = call
    body = first.rpartition(": ")[2]
    text, name = f"{first}\n{then}", "body" if tool == "send_email" else "content"
    assert is_clear(first, (tool, {**arguments, name: body}))
    for content in (body, f"{body}\n{then}"):
        assert not is_clear(text, (tool, {**arguments, name: content}), starts=(len(first) + 1,)), content


def test_a_change_alone_does_not_name_a_file_to_write():
    text = "write hello to notes.txt\nchange it to bye"
    call = ("write_file", {"path": "bye", "content": "hello to notes.txt\nchange it"})
    assert not is_clear(text, call, starts=(25,))


@each_case("cited", ["> Eva escribió ayer\n", "> one\n> two\n", "```\nEva: hola\n```\n", ""])
@each_case("back", ["olvídalo", "no lo escribas", "forget it", "never mind, don't"])
def test_what_is_cited_moves_no_boundary(cited: str, back: str):
    first = f"{cited}escribe en notes.txt lo siguiente:\nhola"
    for content in ("hola", f"hola\n{back}"):
        call = ("write_file", {**NOTE, "content": content})
        assert not is_clear(f"{first}\n{back}", call, starts=(len(first) + 1,)), content


DICTATED = {
    "es": ("escribe en notes.txt: hola", ("write_file", {**NOTE, "content": "hola"})),
    "en": ("write to notes.txt: hello", ("write_file", {**NOTE, "content": "hello"})),
    "es list": ("añade a notes.txt: leche", ("write_file", {**NOTE, "content": "leche", "append": True})),
    "es memory": ("recuerda que vivo en Lima", ("remember", {"text": "vivo en Lima"})),
    "en memory": ("remember that I live in Lima", ("remember", {"text": "I live in Lima"})),
}


@pytest.mark.parametrize("ask", DICTATED)
@pytest.mark.parametrize("joiner", [". ", "\n", "! "])
def test_what_is_dictated_does_not_swallow_its_own_taking_back(ask: str, joiner: str):
    text, (tool, arguments) = DICTATED[ask]
    name = "text" if tool == "remember" else "content"
    for back in TAKEN_BACK[ask[:2]]:
        if back in {"Ya no hace falta", "Al final no"}:  # no retraction by their words alone
            continue
        for content in (arguments[name], f"{arguments[name]}{joiner}{back}"):
            assert not is_clear(f"{text}{joiner}{back}", (tool, {**arguments, name: content})), (back, content)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("escribe en notes.txt: hola. Gracias por todo", "hola. Gracias por todo"),
        ('write "hello. Forget it" to notes.txt', "hello. Forget it"),
        ("write to notes.txt: " + "One more line. " * 60, ("One more line. " * 60).strip()),
    ],
)
def test_a_text_of_several_sentences_is_written_as_it_is_dictated(text: str, content: str):
    assert is_clear(text, ("write_file", {**NOTE, "content": content}))


SHOWN = {
    "es": [
        *("Primero enséñamelo", "Enséñamelo primero", "Léemelo primero", "Primero léemelo", "Muéstramelo antes"),
        *("Pregunta a Bob primero", "Primero dímelo", "Dime primero qué pondrás", "Avísame antes"),
    ],
    "en": [
        *("Read it to me first", "First read it to me", "Show it to me first", "Read it back to me first"),
        *("Let Ana read it first", "Read it aloud beforehand", "Ask Bob first", "Tell me first", "Show me first"),
    ],
}


@each_case("joiner", [". ", "\n", "! ", "; "])
@each_case(("language", "shown"), [(one, shown) for one in SHOWN for shown in SHOWN[one]])
def test_what_is_to_be_shown_or_asked_first_is_not_done_at_once(language: str, shown: str, joiner: str) -> None:
    for ask, call in ASKS[language].items():
        assert not is_clear(ask + joiner + shown, call), ask + joiner + shown


@pytest.mark.parametrize("behind", [". Then read it to me", ". Lee b.txt", ". Read b.txt first"])
def test_what_is_only_read_as_well_puts_nothing_off(behind: str) -> None:
    assert is_clear('Write "hello" to a.txt' + behind, ("write_file", {"path": "a.txt", "content": "hello"}))
