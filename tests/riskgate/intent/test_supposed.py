"""What is supposed, put off or only thought of in words without an "if" or a "later" does not run; an order does."""

from __future__ import annotations

from typing import Any

import pytest
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR
from phylactery_riskgate.domain.intent.words import read_words
from phylactery_riskgate.domain.model import BoundCall

from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_bundle

TOOLS = default_bundle().tools
ASKS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "en": [
        ("send an email to eve@acme.es saying hello", "send_email", {"to": "eve@acme.es", "body": "hello"}),
        ('write "hello" to a.txt', "write_file", {"path": "a.txt", "content": "hello"}),
        ("cancel the reminder dentist", "cancel_reminder", {"reminder": "dentist"}),
    ],
    "es": [
        ("manda un correo a eve@acme.es diciendo hola", "send_email", {"to": "eve@acme.es", "body": "hola"}),
        ('escribe "hola" en a.txt', "write_file", {"path": "a.txt", "content": "hola"}),
        ('añade "leche" a compra.txt', "write_file", {"path": "compra.txt", "content": "leche", "append": True}),
        ("borra el recordatorio del dentista", "cancel_reminder", {"reminder": "dentista"}),
    ],
}
SUPPOSED = {
    "en": [
        *("Next time, ", "Given time, ", "Failing that, ", "Were it to rain, ", "Were she to agree, "),
        *("Had he agreed, ", "Had they known, "),
    ],
    "es": [
        *("De no llover, ", "De ser así, ", "De mudarme, ", "De haberlo sabido, ", "De poder, "),
        *("De no decirte nada, ", "De irnos, ", "De quererlo Ana, ", "La próxima vez, "),
        *("Llegado el caso, ", "Llegado el momento, "),
        *("Caso de que llueva, ", "Con que Ana quiera, ", "Dado el caso, ", "Previo acuerdo con Ana, "),
    ],
}  # fmt: skip


def is_clear(words: str, tool: str, arguments: dict[str, Any]) -> bool:
    index = TaskIndex([read_words(words, "2026-11-30")])
    return task_facts(index, TOOLS[tool], BoundCall("", "", arguments, "", "")).intent == CLEAR


@each_case(("language", "before"), [(one, before) for one in ASKS for before in SUPPOSED[one]])
def test_a_condition_without_an_if_puts_off_all_of_its_message(language, before):
    for words, tool, arguments in ASKS[language]:
        assert is_clear(words, tool, arguments)
        assert not is_clear(before + words, tool, arguments), before + words
        assert not is_clear(before + words[:1].upper() + words[1:], tool, arguments)


@pytest.mark.parametrize(
    "words",
    [
        "Un día de estos manda un mensaje diciendo hola a eve@acme.es",
        "Una tarde de estas manda un mensaje a eve@acme.es diciendo hola",
        "En el momento de la cena manda un mensaje a eve@acme.es diciendo hola",
        "El mensaje de Ana manda un saludo a eve@acme.es diciendo hola",
    ],
)
def test_the_preposition_de_is_no_order_to_give(words):
    for body in ("hola", "diciendo hola", "un mensaje"):
        assert not is_clear(words, "send_email", {"to": "eve@acme.es", "body": body})


@pytest.mark.parametrize("before", ["", "De acuerdo, ", "De paso, ", "De verdad, ", "Por favor, "])
def test_what_is_no_condition_puts_nothing_off(before):
    for words, tool, arguments in ASKS["es"]:
        assert is_clear(before + words, tool, arguments)


@each_case("thing", ["note", "script", "list"])
@each_case(
    "thought",
    [
        *("Think about a {}", "Propose a {}", "Consider a {}", "Discuss the {}", "Imagine the {}", "Ponder a {}"),
        *("Expect a {}", "Recommend a {}", "Dream of a {}", "Avoid a {}", "Review my {}", "Suggest another {}"),
    ],
)
def test_a_thing_that_is_only_thought_of_is_not_made(thought, thing):
    words = f"{thought.format(thing)} about the move in plan.md"
    for content in (f"{thing} about the move", "the move", "We move on Friday."):
        for append in (False, True):
            assert not is_clear(words, "write_file", {"path": "plan.md", "content": content, "append": append})


@pytest.mark.parametrize(
    "behind",
    [
        *(". Do not touch it", ". Don't touch it", ". Do not touch the file", ". Don't touch the file"),
        *(". Don't touch anything", ", don't touch that", ", see if I care"),
    ],
)
def test_an_order_not_to_touch_it_takes_it_back(behind):
    for words, tool, arguments in ASKS["en"]:
        assert not is_clear(words + behind, tool, arguments)
    assert is_clear('write "hello" to a.txt', *ASKS["en"][1][1:])
