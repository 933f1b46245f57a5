"""Small talk is told from everything else, in both languages, however it is spelled."""

from __future__ import annotations

import pytest
from phylactery_understanding.replies.talk import Talk, read_talk

from tests.support.cases import each_case


@each_case(
    ("text", "kind"),
    [
        *((text, "greeting") for text in ("holaa q tal", "heyyy", "hey there", "buenas tardes, ¿todo bien?", "wenas")),
        *((text, "thanks") for text in ("joya, grx", "thx!", "ok thanks", "vale gracias", "gracias majo")),
        *((text, "fine") for text in ("ok", "vale", "👍", "jaja vale", "jajajajaja", "lol ok", "dale", "cool!")),
        *((text, "farewell") for text in ("chau", "nos vemos", "see ya", "that's all")),
        *((text, "listening") for text in ("hmm", "...", "a ver")),
        *((text, "help") for text in ("?", "¿?", "what?", "¿qué?", "q podes hacer", "no entiendo nada")),
    ],
)  # fmt: skip
def test_small_talk_is_read(text: str, kind: str) -> None:
    talk = read_talk(text)
    assert talk is not None
    assert talk.kind == kind


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("help files", "files"),
        ("ayuda con los recordatorios", "reminders"),
        ("ayuda memoria", "memory"),
        ("help more", "more"),
        ("help", ""),
    ],
)
def test_help_may_have_a_topic(text: str, topic: str) -> None:
    assert read_talk(text) == Talk("help", topic)


@each_case(
    "text",
    [
        "",
        "files",
        "thanks, now read it",
        "gracias hunter2",
        "ok a.txt",
        "no",
        "yes",
        "y",
        "help me write a.txt",
        "x" * 500,
    ],
)
def test_one_word_more_makes_it_something_else(text: str) -> None:
    assert read_talk(text) is None
