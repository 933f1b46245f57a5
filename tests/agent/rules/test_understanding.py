"""Static mode: text that is not a request, or refers to something unknown, leads to a question and not to a plan."""

from __future__ import annotations

import pytest
from phylactery_agent.rules.planner import read_request
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.cases import each_case

TOOLS = ToolRegistry()


def _calls(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(readings[0].tool, readings[0].args) for readings in read_request(text, TOOLS).clauses]


@each_case(
    ("text", "doubt"),
    [
        ("remind me every day except Sunday to run", "exclusion"),
        ("recuérdame cada día a las 9 de la mañana salvo el domingo correr", "exclusion"),
        ("write hello to a.txt unless it exists", "condition"),
        ("write hello to a.txt if it rains", "condition"),
        ("write hello, if it rains, to a.txt", "condition"),
        ("escribe hola en a.txt si llueve", "condition"),
        ("write hello to a.txt... no, wait", "negation"),
        ("escribe hola en a.txt, mejor no", "retraction"),
        ("cancel the reminder to water the plants, no, wait", "negation"),
        ("undo that, no wait", "retraction"),
        ("leave b.txt alone and write x to a.txt", "exclusion"),
        ("write x to a.txt and leave b.txt alone", "exclusion"),
        ("add milk but not eggs to list.txt", "exclusion"),
        ("no me lo guardes", "negation"),
        ("no escribas hola en a.txt", "negation"),
        ("don't write hello to a.txt", "negation"),
        ("write hello to a.txt?", "question"),
        ("read a.txt and write x to b.txt, no, wait", "negation"),
        ("write x to b.txt and remember that I was only kidding", "irony"),
    ],
)
def test_what_is_no_request_is_asked_about_and_never_planned(text: str, doubt: str) -> None:
    reading = read_request(text, TOOLS)
    assert (reading.clauses, reading.doubt) == ((), doubt)
    assert reading.unknown


@each_case(
    ("text", "args"),
    [
        ('write "no" to a.txt', {"content": "no", "path": "a.txt"}),
        ('write "not if it rains" to a.txt', {"content": "not if it rains", "path": "a.txt"}),
        ("escribe «no, espera» en a.txt", {"content": "no, espera", "path": "a.txt"}),
        ("could you write hello to a.txt, please?", {"content": "hello", "path": "a.txt"}),
        ("¿puedes escribir hola en a.txt?", {"content": "hola", "path": "a.txt"}),
        ("write salt and pepper to a.txt", {"content": "salt and pepper", "path": "a.txt"}),
        ("remember that I never eat meat", {"text": "I never eat meat"}),
        ("no olvides que no como carne", {"text": "no como carne"}),
        ('remind me "not to eat meat" tomorrow at 9 am', {"text": "not to eat meat", "when": "tomorrow at 9 am"}),
        ("send an email to ana@example.org: I can not come", {"to": "ana@example.org", "body": "I can not come"}),
    ],
)
def test_content_is_content_whatever_it_says(text: str, args: dict[str, object]) -> None:
    assert [found for _, found in _calls(text)] == [args]


def test_a_doubt_about_a_look_stops_no_other_look() -> None:
    assert _calls("read a.txt?") == [("read_file", {"path": "a.txt"})]


def test_a_politeness_before_the_first_clause_is_said_of_all_of_them() -> None:
    assert [tool for tool, _ in _calls("can you read a.txt and write x to b.txt?")] == ["read_file", "write_file"]


def test_a_tools_own_opening_forbids_nothing_to_the_next_clause() -> None:
    assert [tool for tool, _ in _calls("no olvides que vivo en Lima y escribe x en a.txt")] == [
        "remember",
        "write_file",
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("write one to one.txt and two to two.txt", [("one", "one.txt"), ("two", "two.txt")]),
        ("escribe uno en uno.txt y dos en dos.txt", [("uno", "uno.txt"), ("dos", "dos.txt")]),
        (
            'write "one" to one.txt, "two and a half" to two.txt and "three" to three.txt',
            [("one", "one.txt"), ("two and a half", "two.txt"), ("three", "three.txt")],
        ),
        ("write salt and pepper to a.txt and sugar to b.txt", [("salt and pepper", "a.txt"), ("sugar", "b.txt")]),
    ],
)
def test_a_verb_that_is_said_once_holds_for_every_file(text: str, written: list[tuple[str, str]]) -> None:
    assert [(args["content"], args["path"]) for _, args in _calls(text)] == written


@pytest.mark.parametrize(
    "text",
    [
        "write the contents of a.txt to c.txt",
        "escribe el contenido de a.txt en c.txt",
        "copy a.txt to c.txt",
        "copia a.txt a c.txt",
    ],
)
def test_what_is_in_another_file_is_asked_about_and_its_description_is_not_written(text: str) -> None:
    reading = read_request(text, TOOLS)
    assert (reading.clauses, reading.doubt, reading.unknown) == ((), "copy", text)


def test_quoted_words_about_another_file_are_written() -> None:
    args = {"content": "the contents of a.txt", "path": "c.txt"}
    assert _calls('write "the contents of a.txt" to c.txt') == [("write_file", args)]


@pytest.mark.parametrize("text", ["write it to a.txt", "escribe eso en a.txt", "append the same to b.txt"])
def test_a_word_that_stands_for_a_text_is_not_written(text: str) -> None:
    assert (read_request(text, TOOLS).clauses, read_request(text, TOOLS).doubt) == ((), "what_content")


@pytest.mark.parametrize(
    "text",
    [
        "write x to a.txt and read it",
        "write x to a.txt, then show me that",
        "escribe x en a.txt y léelo",
        "escribe x en a.txt; lee eso",
    ],
)
def test_a_word_that_stands_for_a_file_is_the_only_one_of_the_message(text: str) -> None:
    assert [args["path"] for _, args in _calls(text)] == ["a.txt", "a.txt"]


@pytest.mark.parametrize(
    "text",
    [
        "read it",
        "léelo",
        "read the other file",
        "lee el otro",
        "write x to a.txt and read the other",
        "write x to a.txt; write y to b.txt; read it",
    ],
)
def test_a_word_that_stands_for_no_one_file_is_asked_about(text: str) -> None:
    assert (read_request(text, TOOLS).clauses, read_request(text, TOOLS).doubt) == ((), "which_file")


def test_a_file_whose_name_is_quoted_is_read_by_that_name() -> None:
    assert _calls('read "it"')[0] == ("read_file", {"path": "it"})


@pytest.mark.parametrize("text", ["tell me a story", "tell me a joke", "no me gusta el té", "what time is it?"])
def test_talk_is_no_half_understood_request(text: str) -> None:
    reading = read_request(text, TOOLS)
    assert (reading.clauses, reading.doubt) == ((), "")


@each_case(
    ("text", "doubt"),
    [
        ("mandale un mail a ana@example.org diciendo hola y otro a bob@example.org diciendo chau", "beside"),
        ("manda un correo a ana@example.org diciendo hola, con copia a bob@example.org", "beside"),
        ("envía un correo a ana@example.org diciendo hola, pero mañana", "beside"),
        ("send an email to ana@example.org saying hi in spanish", "beside"),
        ("send an email to ana@example.org saying what I wrote in todo.txt", "beside"),
        ("add eggs to shopping.txt and to groceries.txt", "beside"),
        ('append "hello" to hi.txt and to notes.txt', "beside"),
        ("agrega un poema corto sobre gatos a notas.txt", "beside"),
        ("add today's date to diary.txt", "beside"),
        ("add my name to list.txt", "beside"),
        ("add also kiwi to list.txt", "beside"),
        ("write down hello to hi.txt", "beside"),
        ("write again and again to a.txt", "beside"),
        ("insert hello on line 3 in a.txt", "beside"),
        ("write me a poem in poem.txt", "beside"),
        ("put a.txt in b.txt", "copy"),
        ("remind me to call mom tomorrw at 9 am", "which_time"),
        ("recuérdame pagar el gas mañna a las 9 de la mañana", "which_time"),
        ("remind me to call mom this weekend at 10", "which_time"),
        ("recuérdame pagar el gas el mes que viene a las 9", "which_time"),
        ("remind me at 5 or 6 to call Sam", "which_time"),
        ("remind me every day at 9am until friday to take the pills", "which_time"),
        ("remind me at 9 am IST to join the call", "which_time"),
        ("remind me tonight at 9 that mom comes tomorrow at 10 am", "which_time"),
        ("remind me tomorrow at 10 am to do it", "what_content"),
        ("recuérdame mañana a las 10 de la mañana hacerlo", "what_content"),
    ],
)
def test_a_text_that_holds_more_than_was_dictated_is_asked_about(text: str, doubt: str) -> None:
    reading = read_request(text, TOOLS)
    assert (reading.clauses, reading.doubt) == ((), doubt)


@each_case(
    ("text", "tool", "args"),
    [
        ("agregale miel a tareas.txt", "write_file", {"content": "miel", "path": "tareas.txt", "append": True}),
        ("anotá pan en lista.txt", "write_file", {"content": "pan", "path": "lista.txt", "append": True}),
        ("poné pan en lista.txt porfa", "write_file", {"content": "pan", "path": "lista.txt", "append": True}),
        ('put "sugar" in shopping.txt', "write_file", {"content": "sugar", "path": "shopping.txt", "append": True}),
        ("could u add kiwi to list.txt pls", "write_file", {"content": "kiwi", "path": "list.txt", "append": True}),
        ("add kiwi to list.txt, thanks!", "write_file", {"content": "kiwi", "path": "list.txt", "append": True}),
        ("add kiwi to list.txt pls :)", "write_file", {"content": "kiwi", "path": "list.txt", "append": True}),
        ("remember that Bob said thanks", "remember", {"text": "Bob said thanks"}),
        ("echo hello thanks", "echo", {"text": "hello thanks"}),
        (
            "add too much sugar to list.txt",
            "write_file",
            {"content": "too much sugar", "path": "list.txt", "append": True},
        ),
        ("I need to add kiwi to list.txt", "write_file", {"content": "kiwi", "path": "list.txt", "append": True}),
        ("thanks, can you add tea to todo.txt?", "write_file", {"content": "tea", "path": "todo.txt", "append": True}),
        ("buenas, agrega miel a a.txt. gracias!", "write_file", {"content": "miel", "path": "a.txt", "append": True}),
        ("mostrame lista.txt", "read_file", {"path": "lista.txt"}),
        ("leé lista.txt", "read_file", {"path": "lista.txt"}),
        ("¿qué hay en lista.txt?", "read_file", {"path": "lista.txt"}),
        ("what's in notes.txt?", "read_file", {"path": "notes.txt"}),
        ("puedes leerme notas.txt?", "read_file", {"path": "notas.txt"}),
        (
            "recordame mañana a las 9 de la mañana llamar a Ana",
            "create_reminder",
            {"text": "llamar a Ana", "when": "mañana a las 9 de la mañana"},
        ),
        ("borrá el recordatorio de la basura", "cancel_reminder", {"reminder": "la basura"}),
        ("deshacelo", "undo_write", {}),
        ("oops, undo that please", "undo_write", {}),
        ("perdón, deshacé eso", "undo_write", {}),
        ("email ana@example.org saying hi", "send_email", {"to": "ana@example.org", "body": "hi"}),
        (
            "mándale a ana@example.org un correo diciendo hola",
            "send_email",
            {"to": "ana@example.org", "body": "hola"},
        ),
        (
            "send an email to ana@example.org saying call me please",
            "send_email",
            {"to": "ana@example.org", "body": "call me please"},
        ),
        (
            'send an email to ana@example.org saying "call me" please',
            "send_email",
            {"to": "ana@example.org", "body": "call me"},
        ),
    ],
)
def test_other_words_for_what_a_tool_does_are_read(text: str, tool: str, args: dict[str, object]) -> None:
    assert _calls(text) == [(tool, args)]


@each_case(
    "text",
    [
        "no agregues miel a tareas.txt",
        "oops, write x to a.txt",
        "remind bob to call me tomorrow at 9 am",
        "quita y pon leche en lista.txt",
        "no, undo nothing",
        "agregaría miel a tareas.txt",
        "ayer agregué miel a tareas.txt",
        "should I put sugar in shopping.txt?",
        "my mum put sugar in shopping.txt",
        "mostrame el partido",
        "poné música",
    ],
)
def test_words_that_ask_for_nothing_of_it_are_not(text: str) -> None:
    assert _calls(text) == []
