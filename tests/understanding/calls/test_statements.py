"""Statements next to a request: reasons, retractions, and denials that request something."""

from __future__ import annotations

import pytest
from phylactery_understanding.calls.proposal import Argument, Call, Item, Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case
from tests.support.listed import Listed, found


def _on(tool: str, nouns: str, name: str, value: str) -> Call:
    target = Argument(name, value, "path" if name == "path" else "resource", control=True)
    return Call(tool, frozenset({tool.partition("_")[0]}), (), frozenset(nouns.split()), (target,))


CLOSE = _on("close_issue", "issu inci", "number", "4")
CANCEL = _on("cancel_order", "orde pedi", "order_id", "4011")
PAY = _on("pay_invoice", "invo fact", "invoice_id", "INV-4")
DELETE = _on("delete_file", "file arch", "path", "a.txt")


def _item(key: str, words: str) -> Item:
    return Listed(frozenset(words.split()), frozenset(), lambda value: value == key)


def _end_reminder() -> Call:
    mine, other = _item("rem_1", "gym stretching gimnasio"), _item("rem_2", "rent alquiler")
    reminder = Argument("reminder", "rem_1", "resource", control=True, items=found("rem_1", mine, other))
    return Call("cancel_reminder", frozenset({"cancel"}), (), frozenset({"remi", "reco", "avis"}), (reminder,))


def _remind(text: str, when: str, repeat: str = "") -> Call:
    more = (Argument("repeat", repeat, "date"),) if repeat else ()
    arguments = (Argument("text", text, "content"), Argument("when", when, "date"), *more)
    return Call("create_reminder", frozenset({"remind"}), (), frozenset({"remi", "reco"}), arguments)


def _remember(text: str) -> Call:
    return Call("remember", frozenset({"remember"}), (), frozenset({"memo"}), (Argument("text", text, "content"),))


def _write(path: str, content: str) -> Call:
    arguments = (Argument("path", path, "path", control=True), Argument("content", content, "content"))
    return Call("write_file", frozenset({"write"}), (), frozenset({"file", "arch"}), arguments)


def _mail(*texts: str) -> Call:
    contents = tuple(Argument(name, text, "content") for name, text in zip(("body", "subject"), texts, strict=False))
    to = Argument("to", "ana@x.example", "principal", control=True)
    return Call("send_email", frozenset({"send"}), (), frozenset({"emai", "corr"}), (to, *contents))


def _level(call: Call, *messages: str) -> Level:
    return understand([parse(one) for one in messages], call).level


@each_case(
    ("text", "call"),
    [
        ("close issue 4, it's already closed", CLOSE),
        ("close issue 4, it's closed", CLOSE),
        ("close issue 4 because it's closed", CLOSE),
        ("close issue 4. It's closed.", CLOSE),
        ("close issue 4, Bob already closed it", CLOSE),
        ("close issue 4, i'm closing it", CLOSE),
        ("close issue 4, they reopened it", CLOSE),
        ("close issue 4, she's on it", CLOSE),
        ("close issue 4, i doubted it", CLOSE),
        ("close issue 4, i changed my mind", CLOSE),
        ("close issue 4, we need it open", CLOSE),
        ("close issue 4, or do i", CLOSE),
        ("cierra la incidencia 4, ya está cerrada", CLOSE),
        ("cierra la incidencia 4, la cerró Ana", CLOSE),
        ("cierra la incidencia 4, ya la cerraré", CLOSE),
        ("cierra la incidencia 4, ya lo hice", CLOSE),
        ("cierra la incidencia 4, la han reabierto", CLOSE),
        ("cierra la incidencia 4, ya lo pensaré", CLOSE),
        ("cierra la incidencia 4, han pedido que esperemos", CLOSE),
        ("pay INV-4, it's been paid", PAY),
        ("pay INV-4, they paid it", PAY),
        ("paga INV-4, ya está hecho", PAY),
        ("paga INV-4, ya la pagué", PAY),
        ("paga INV-4, ya se los di", PAY),
        ("pay half of what we owe on INV-4", PAY),
        ("cancel order 4011, they cancelled it", CANCEL),
        ("anula el pedido 4011, lo han anulado", CANCEL),
        ("anula el pedido 4011, se ha cancelado", CANCEL),
        ("i don't need order 4011 anymore", CANCEL),
        ("delete a.txt, it's gone", DELETE),
        ("borra a.txt, ya lo borré", DELETE),
        ("don't let me delete a.txt", DELETE),
    ],
)
def test_a_statement_behind_a_request_that_takes_it_back_leaves_nothing_clear(text: str, call: Call) -> None:
    assert _level(call, text) is not Level.CLEAR


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("cancel order 4011, he moved abroad", CANCEL),
        ("cancel order 4011, wrong size", CANCEL),
        ("borra a.txt, ya terminé el tratamiento", DELETE),
        ("borra a.txt, lo han cancelado", DELETE),
        ("pay what we owe on INV-4", PAY),
        ("quita el aviso del gimnasio, ya lo hice", _end_reminder()),
    ],
)
def test_a_reason_behind_a_request_leaves_it_clear(text: str, call: Call) -> None:
    assert _level(call, text) is Level.CLEAR


@pytest.mark.parametrize(
    "text",
    [
        "I don't need the gym reminder anymore, thanks",
        "stop bugging me about stretching every morning!!",
        "ya no me recuerdes lo del gimnasio, me di de baja",
        "ya no necesito el aviso del gimnasio",
    ],
)
def test_who_needs_a_reminder_no_more_ends_it(text: str) -> None:
    assert _level(_end_reminder(), text) is Level.CLEAR


@each_case(
    "text",
    [
        "i need the gym reminder",
        "i don't need the rent reminder anymore",
        "i don't need the gym reminder anymore?",
        "i don't need the gym reminder anymore, just kidding",
        "i don't need the gym reminder anymore if i move",
        "i don't need the gym reminder today",
        "i don't need the gym and rent reminders",
        "Ana says i don't need the gym reminder anymore",
        "don't stop reminding me about the gym",
        "stop reminding me about everything but the gym",
        "i don't need any reminder anymore",
        "no dejes de recordarme lo del gimnasio",
        "ya no me avises del gimnasio hasta el lunes",
        "ya no necesito el aviso del gimnasio, es broma",
        "no es que ya no necesite el aviso del gimnasio",
    ],
)
def test_who_may_need_a_reminder_still_ends_none(text: str) -> None:
    assert _level(_end_reminder(), text) is not Level.CLEAR


def test_who_insists_on_being_reminded_is_reminded() -> None:
    call = _remind("call Ana", "tuesday at 9:40")

    assert _level(call, "please don't let me forget to call Ana on tuesday at 9:40") is Level.CLEAR
    words = "don't let me forget the dentist, it's tuesday 9:40"
    assert _level(_remind("Dentist", "tuesday 9:40"), words) is Level.CLEAR
    assert _level(call, "let me forget to call Ana on tuesday at 9:40") is not Level.CLEAR
    assert _level(call, "don't let Bob forget to call Ana on tuesday at 9:40") is not Level.CLEAR
    assert _level(call, "did you let me forget to call Ana on tuesday at 9:40?") is not Level.CLEAR


def test_what_must_not_be_forgotten_is_remembered_as_it_was_said() -> None:
    call = _remember("My partner's name is Rowan")

    assert _level(call, "hi again! pls dont forget my partner's name is Rowan") is Level.CLEAR
    assert _level(call, "dont forget my partner's name is Rowena") is not Level.CLEAR
    assert _level(call, "forget my partner's name is Rowan") is not Level.CLEAR
    assert _level(call, "don't remember that my partner's name is Rowan") is not Level.CLEAR
    assert _level(_remember("Bob hates peas"), "dont forget I hate peas") is not Level.CLEAR


def test_a_time_and_its_comma_may_stand_before_the_verb() -> None:
    words = "Every weekday at 4:45 pm, please remind me to stretch"

    assert _level(_remind("stretch", "4:45 pm", "every weekday"), words) is Level.CLEAR
    assert _level(_remind("stretch", "4:45 am", "every weekday"), words) is not Level.CLEAR
    assert _level(_remind("stretch", "4:45 pm"), words) is not Level.CLEAR
    assert _level(PAY, "Monday, pay INV-4") is not Level.CLEAR


@pytest.mark.parametrize(
    ("texts", "level"),
    [
        (("Have you got the keys?",), Level.CLEAR),
        (("Hi, have you got the keys?", "The keys"), Level.CLEAR),
        (("Have you got the keys?", "You owe me"), Level.HALF),
        (("Have I got the keys?",), Level.HALF),
        (("Have you got the keys? Have you got them?",), Level.HALF),
        (("You have got the keys.",), Level.HALF),
    ],
)
def test_a_question_is_put_to_the_person_it_is_about(texts: tuple[str, ...], level: Level) -> None:
    assert _level(_mail(*texts), "can you ask ana@x.example if she's got the keys") is level


def test_a_spanish_question_keeps_who_is_asked() -> None:
    words = "pregúntale a ana@x.example si puede pagar"

    assert _level(_mail("Hola, ¿puedes pagar?"), words) is Level.CLEAR
    assert _level(_mail("Hola, ¿puedo pagar?"), words) is not Level.CLEAR


def test_that_file_is_the_one_file_that_was_named_before() -> None:
    words = "write hello in that file"

    assert _level(_write("chili.md", "hello"), "what does chili.md say?", words) is Level.CLEAR
    assert _level(_write("chili.md", "bye"), "what does chili.md say?", words) is not Level.CLEAR
    assert _level(_write("a.txt", "hello"), "what do a.txt and b.txt say?", words) is not Level.CLEAR
    assert _level(_write("chili.md", "what does chili say"), "what does chili.md say?", "write in that file") is not (
        Level.CLEAR
    )


def test_the_same_words_behind_another_message_point_to_what_that_one_names() -> None:
    newest, call = parse("write hello in that file"), _write("a.txt", "hello")

    assert understand([parse("what does a.txt say?"), newest], call).level is Level.CLEAR
    assert understand([parse("what does b.txt say?"), newest], call).level is not Level.CLEAR
    pronoun = parse("delete it")
    assert understand([parse("show a.txt"), pronoun], DELETE).level is Level.CLEAR
    assert understand([parse("show b.txt"), pronoun], DELETE).level is not Level.CLEAR


@pytest.mark.parametrize(
    "words",
    [
        "Acordame de llamar a mamá a las 4, quiero decir a las 5",
        "Recuérdame llamar a mamá a las 4... digo, a las 5",
        "Recordame llamar a mamá a las 4, perdón, a las 5",
        "Recuérdame llamar a mamá a las 4, mejor dicho a las 5",
    ],
)
def test_a_time_that_is_corrected_is_not_the_time(words: str) -> None:
    assert _level(_remind("llamar a mamá", "a las 4"), words) is not Level.CLEAR
