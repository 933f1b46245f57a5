"""The welcome text: every sentence of welcome.txt is checked against the services."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_cli.supervisor import Stack, running

from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person, lines, yes

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]

WELCOME = (resources.files("phylactery_cli") / "welcome.txt").read_text(encoding="utf-8")
READ = {"en": "read {}", "es": "lee {}"}
WRITE = {"en": 'write "{}" to {}', "es": 'escribe "{}" en {}'}
CARD = "paid with 4111 1111 1111 1111"
KEY = "AKIA" + "QWERTYUIOP234567"
"""Put together from parts, so that no scanner takes this file for a leak."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path_factory.mktemp("welcome"), FREE_PORTS)) as started:
        started.sandbox.mkdir(parents=True)
        (started.sandbox / "welcome.txt").write_text(WELCOME, encoding="utf-8")
        yield started


def greets(_stack: Stack, _language: str) -> None:
    """Promise nothing."""


def nothing_else_is_touched(stack: Stack, language: str) -> None:
    (stack.data_dir / "outside.txt").write_text("of nobody's concern")
    there = Path("..", "..", "..", "outside.txt")
    with Person(stack, "local", thread=f"outside-{language}") as person:
        for path in (there, stack.data_dir / "outside.txt"):
            assert "of nobody's concern" not in person.say(READ[language].format(path)).reply.text
            person.say(WRITE[language].format("touched", path))
    assert (stack.data_dir / "outside.txt").read_text() == "of nobody's concern"


def a_read_is_allowed_and_redeemed(stack: Stack, language: str) -> None:
    with Person(stack, "local", thread=f"read-{language}") as person:
        events = person.events(READ[language].format("welcome.txt"))
        (decision,) = [event.risk_decision for event in events if event.HasField("risk_decision")]
        (told,) = [event.message.text for event in events if event.HasField("message")]
        (call,) = person.run(events[0].run_id).tool_calls
    assert decision.decision == "ALLOW"
    assert "Phylactery" in told
    assert (call.execution_id != "", call.state) == (True, "finished")  # the id of what the receipt was given for


def a_clear_write_is_done_at_once(stack: Stack, language: str) -> None:
    with Person(stack, "local", thread=f"clear-{language}") as person:
        answer = person.say(WRITE[language].format("hello", f"clear-{language}.txt"))
    assert answer.run.status == event_pb2.RUN_STATUS_DONE
    assert lines(stack, f"clear-{language}.txt", "local") == ["hello"]


def a_card_waits_for_exactly_that_yes(stack: Stack, language: str) -> None:
    name = f"card-{language}.txt"
    with Person(stack, "local", thread=f"card-{language}") as person:
        asked = person.say(WRITE[language].format(CARD, name))
        assert asked.run.status == event_pb2.RUN_STATUS_SUSPENDED
        assert lines(stack, name, "local") == []
        shown = {argument.path: argument.display for argument in asked.pending_approval.arguments}
        assert (shown["/path"], shown["/content"]) == (f'"{name}"', f'"{CARD}"')
        assert person.say(yes(asked)).run.status == event_pb2.RUN_STATUS_DONE
    assert lines(stack, name, "local") == [CARD]


def a_typed_key_is_neither_kept_nor_written(stack: Stack, language: str) -> None:
    name = f"key-{language}.txt"
    with Person(stack, "local", thread=f"key-{language}") as person:
        person.say(WRITE[language].format(f"the key is {KEY}", name))
    assert lines(stack, name, "local") == ["the key is «aws_key»"]
    kept = [path for path in stack.data_dir.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert kept == []


PROMISES: dict[str, dict[str, Callable[[Stack, str], None]]] = {
    "en": {
        "Welcome to Phylactery.": greets,
        "This file lies in the only folder the agent can touch.": nothing_else_is_touched,
        "You asked it to read this, RiskGate allowed the read, and a signed receipt let it happen.": (
            a_read_is_allowed_and_redeemed
        ),
        "Now ask for a write in plain words: it is done at once.": a_clear_write_is_done_at_once,
        "Put a card number into it, and nothing is written until you approve exactly that call.": (
            a_card_waits_for_exactly_that_yes
        ),
        "A password or a key you type is replaced by its kind, and is neither kept nor written.": (
            a_typed_key_is_neither_kept_nor_written
        ),
    },
    "es": {
        "Bienvenido a Phylactery.": greets,
        "Este archivo está en la única carpeta que el agente puede tocar.": nothing_else_is_touched,
        "Pediste que lo leyera, RiskGate permitió la lectura y un recibo firmado dejó que ocurriera.": (
            a_read_is_allowed_and_redeemed
        ),
        "Ahora pide una escritura con palabras claras: se hace en el acto.": a_clear_write_is_done_at_once,
        "Pon en ella un número de tarjeta, y no se escribirá nada hasta que apruebes exactamente esa llamada.": (
            a_card_waits_for_exactly_that_yes
        ),
        "Una contraseña o una clave que escribas se cambia por su tipo, y ni se guarda ni se escribe.": (
            a_typed_key_is_neither_kept_nor_written
        ),
    },
}


def test_welcome_says_these_sentences_and_no_other():
    said = re.split(r"(?<=\.)\s+", " ".join(WELCOME.split()))
    assert said == [sentence for sentences in PROMISES.values() for sentence in sentences]


@pytest.mark.parametrize(
    ("language", "sentence"), [(language, one) for language, promises in PROMISES.items() for one in promises]
)
def test_what_welcome_says_is_so(stack: Stack, language: str, sentence: str):
    PROMISES[language][sentence](stack, language)
