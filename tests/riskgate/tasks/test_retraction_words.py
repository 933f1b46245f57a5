"""Retractions in Spanish and English: plain statements count, and what only sounds like one does not."""

from __future__ import annotations

import pytest
from phylactery_understanding.replies.retraction import forbids, read_retraction, targets_in

from tests.support.cases import each_case
from tests.support.effort import assert_linear

SEND = frozenset({"send"})


@each_case(
    "text",
    [
        "no", "No.", "nope", "Never mind", "no thanks", "absolutely not", "no way", "wait", "stop", "Stop it!",
        "actually cancel that", "forget it", "scratch that, delete b.txt", "don't do it", "No, wait! Never send it",
        "No, send it to carla@x.com instead", "déjalo", "Olvídalo", "ni hablar", "espera", "mejor no", "no gracias",
        "no lo hagas", "No, no lo envíes", "para", "nel", "nein",
    ],
)  # fmt: skip
def test_a_plain_refusal_takes_everything_back(text):
    found = read_retraction(text)
    assert found is not None
    assert found.everything


@each_case(
    ("text", "target"),
    [
        ("Don't send it", ""),
        ("Never send it", ""),
        ("I don't want you to send it", ""),
        ("Please do not email Bob", ""),
        ("no quiero que lo envíes", ""),
        ("no hace falta que lo envíes", ""),
        ("don't send the email to eve@x.com", "eve@x.com"),
        ("No envíes nada a eve@x.com", "eve@x.com"),
        ("Don't send a.txt to eve@x.com, but read b.txt", "eve@x.com"),
    ],
)
def test_who_forbids_an_effect_takes_that_back(text, target):
    found = read_retraction(text)
    assert found is not None
    assert not found.everything
    (one,) = found.forbidden
    assert forbids(one, SEND, frozenset())
    assert not forbids(one, frozenset({"delete"}), frozenset())
    assert (target in one.targets) == bool(target)


def test_what_is_cancelled_by_its_name_is_meant():
    found = read_retraction("forget the email to eve@x.com")
    assert found is not None
    (one,) = found.forbidden
    assert forbids(one, SEND, frozenset({"emai"}))
    assert not forbids(one, SEND, frozenset({"file"}))
    assert one.targets <= targets_in("Eve <eve@x.com>")


@each_case(
    "text",
    [
        "yes", "yes, send it", "dale", "no problem", "No problem, send it", "no pasa nada", "de nada", "why not?",
        "No need to hurry, send it", "¿no es peligroso?", "Didn't you send it?", "Don't forget to send it",
        "write to bob@x.com that I never send it", "tell bob@x.com: don't send it", 'Append "no" to a.txt',
        "Send it to bob@x.com, not to eve@x.com", "sorry, I meant carla", "change the subject to hi", "ok", "",
        "Write hello to a.txt and leave b.txt alone", "Great, nothing else", "I would rather call him", "no sé, ¿y tú?",
    ],
)  # fmt: skip
def test_what_only_sounds_like_it_takes_nothing_back(text):
    assert read_retraction(text) is None


@pytest.mark.timing
def test_it_is_read_in_the_time_its_length_needs():
    assert_linear(read_retraction, "No, don't send it to eve@x.com. ", 3_200, 96_000)
