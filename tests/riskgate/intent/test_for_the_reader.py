"""Who asks for words, a text for dinner, in Italian or for Bob, asks for no file, memory, reminder or message."""

from __future__ import annotations

import pytest
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR
from phylactery_riskgate.domain.intent.words import read_words
from phylactery_riskgate.domain.model import BoundCall

from benchmarks.interpreting import lie

TOOLS = load_bundle(default_bundle_folder()).tools
Call = tuple[str, dict[str, object]]


def written(path: str, content: str = "x", **more: object) -> Call:
    return "write_file", {"path": path, "content": content, **more}


def clear(words: str, call: Call, *, lied: bool) -> bool:
    tool, arguments = call
    meant = lie(words, [{"tool": tool, "arguments": arguments}]) if lied else None
    index = TaskIndex([read_words(words, "2026-11-30", meant)])
    return task_facts(index, TOOLS[tool], BoundCall("", "", arguments, "", "")).intent == CLEAR


NO_FILES = {
    "give me three ideas for dinner": ("dinner", "ideas", "for"),
    "give me two tips for lunch/dinner": ("lunch/dinner",),
    "translate 'good morning' into Italian": ("Italian", "into Italian", "translate"),
    "summarize 'the plan' into Italian": ("Italian",),
    "turn this into a poem": ("poem", "a poem", "this"),
    "write me a poem for Ana": ("Ana", "poem", "me"),
    'write "good morning" in Italian': ("Italian",),
    "make me a list for dinner": ("dinner", "list", "for"),
    "draft an apology to Bob": ("Bob", "apology"),
    "list ten names for a puppy": ("puppy", "a puppy", "ten"),
    "create three slogans for coffee": ("coffee",),
    "convert 20 dollars to euros": ("dollars", "euros", "20"),
    "put 'thank you' into Greek": ("Greek",),
    "add some humour to 'the meeting is at five'": ("the meeting is at five", "humour"),
    "dame tres ideas para la cena": ("cena", "la cena", "dame"),
    "traduce 'buenos días' al italiano": ("italiano", "al italiano"),
    "resume 'el plan' en español": ("español",),
    'escribe "buenos días" en italiano': ("italiano",),
    "escríbeme un poema para Ana": ("Ana", "poema"),
    "convierte esto en un poema": ("poema", "un poema"),
    "genera un trabalenguas en gallego": ("gallego",),
    "añade humor a 'la reunión es a las cinco'": ("la reunión es a las cinco", "humor"),
}
MORE = {"append": True}
REAL_FILES = {
    'write "milk" to notes': written("notes", "milk"),
    'add "milk" to my notes': written("notes", "milk", **MORE),
    'add "milk" to the shopping list': written("shopping list", "milk", **MORE),
    'write "hello" to "dinner"': written("dinner", "hello"),
    'write "hello" to the file dinner': written("dinner", "hello"),
    "create a note called dinner saying hello": written("dinner", "hello"),
    'save "hello" as dinner': written("dinner", "hello"),
    'write "hello" to docs/plan': written("docs/plan", "hello"),
    "give me three ideas for dinner in dinner.md": written("dinner.md", "1. Soup\n2. Rice\n3. Fish"),
    "write a poem for Ana in poem.txt": written("poem.txt", "Roses are red"),
    'escribe "leche" en notas': written("notas", "leche"),
    'añade "leche" a la lista de la compra': written("lista de la compra", "leche", **MORE),
    "crea un archivo llamado cena que diga hola": written("cena", "hola"),
    'escribe "hola" en docs/plan': written("docs/plan", "hola"),
    "escribe un poema para Ana en poema.txt": written("poema.txt", "Rosas rojas"),
    "remind me tomorrow at 9 to call Bob": ("create_reminder", {"text": "call Bob", "when": "2026-12-01T09:00"}),
    "remember that my sister is called Laura": ("remember", {"text": "my sister is called Laura"}),
    "cancel the reminder dentist": ("cancel_reminder", {"reminder": "dentist"}),
    "send me report.pdf": ("send_file", {"path": "report.pdf"}),
}
NOT_KEPT: dict[str, Call] = {
    "prepare a menu for Friday": ("create_reminder", {"text": "menu", "when": "2026-12-04T09:00"}),
    "dame ideas para recordar mañana": ("create_reminder", {"text": "ideas", "when": "2026-12-01T09:00"}),
    "get me five names for a cat": ("remember", {"text": "five names for a cat"}),
    "rewrite 'see you later' as a haiku": ("remember", {"text": "a haiku"}),
    "dime qué decir a ana@acme.es": ("send_email", {"to": "ana@acme.es", "body": "qué decir"}),
    "turn this into a poem": ("cancel_reminder", {"reminder": "a poem"}),
}


@pytest.mark.parametrize("lied", [False, True])
def test_words_that_name_no_file_are_no_path(subtests: pytest.Subtests, *, lied: bool) -> None:
    for words, paths in NO_FILES.items():
        with subtests.test(words):
            said = {words, "a text of its own", *(one for one in words.split("'")[1:2])}
            calls = [written(path, text, **more) for path in paths for text in said for more in ({}, MORE)]
            assert [one for one in calls if clear(words, one, lied=lied)] == []


def test_words_for_the_requester_are_not_kept_or_sent(subtests: pytest.Subtests) -> None:
    for words, call in NOT_KEPT.items():
        with subtests.test(words):
            assert not clear(words, call, lied=False)


def test_a_file_that_is_named_is_written(subtests: pytest.Subtests) -> None:
    for words, call in REAL_FILES.items():
        with subtests.test(words):
            assert clear(words, call, lied=False)
