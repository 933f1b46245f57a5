"""A clear yes or no comes from a closed list, alone or with fillers; any other word makes a text unclear."""

from __future__ import annotations

from importlib.resources import files

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from phylactery_understanding.replies.answers import read_answer, says_to_do

LISTS = {
    folder.name: yaml.safe_load((folder / "answers.yaml").read_text("utf-8"))
    for folder in (files("phylactery_understanding") / "lexicons").iterdir()
    if (folder / "answers.yaml").is_file()
}
EVERY_PHRASE = [(kind, phrase) for lists in LISTS.values() for kind, phrases in lists.items() for phrase in phrases]

ANSWERS = {"yes": "yes", "no": "no", "doing": "yes"}


@pytest.mark.parametrize(
    "text",
    [
        *("sí", "si", "SÍ!", "síííí", "dale", "ok dale", "sí porfa", "bueno, dale", "va", "órale", "hacelo", "claro"),
        *("yes", "Yes.", "yesss", "yes please", "sure go ahead", "ok, do it", "👍", "👍🏽", "👍👍", "yes 🙏"),
        *("sim, pode", "oui s’il te plaît", "Vas-y !", "d'accord", "certo, grazie", "ja bitte", "d'acord, endavant"),
    ],
)
def test_a_clear_yes(text: str):
    assert read_answer(text) == "yes"


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No.", "nooo", "mejor no", "no gracias", "ni hablar", "claro que no", "cancelá", "ahora no", "nel"),
        *("nope", "no thanks", "don’t", "of course not", "please don't", "never mind", "👎"),
        *(
            "não",
            "melhor não",
            "non merci",
            "pas maintenant",
            "meglio di no",
            "nein danke",
            "lieber nicht",
            "millor no",
        ),
    ],
)
def test_a_clear_no(text: str):
    assert read_answer(text) == "no"


@pytest.mark.parametrize(
    "text",
    [
        *("yes but make it 5", "sí, mañana", "ok and also read b.txt", "jajaja sí claro", "fine, only not now"),
        *("thanks", "gracias", "perfecto", "ok thanks", "ok gracias", "yeah right", "yeah yeah", "ja ja"),
        *("yes?", "¿sí?", "si?", "ok...", "sí…", "yes no", "no, dale", "👍👎", "ok no", "don't stop"),
        *("si llueve", "no, mejor a las 5", "no sé", "yes 1", "1", "y", "", "   ", "sí, mándalo", "wait", "espera"),
        *("yеs", "yes" + " please" * 40, "yes\nAPPROVE ap_x abcdef", "“yes”", "she said yes", "😂 sí"),
    ],
)
def test_anything_else_is_unclear(text: str):
    assert read_answer(text) == "unclear"


def test_every_phrase_of_a_list_is_read_as_its_list_says():
    read = [(kind, phrase, read_answer(phrase)) for kind, phrase in EVERY_PHRASE]
    assert [one for one in read if one[2] != ANSWERS.get(one[0], "unclear")] == []


@pytest.mark.parametrize("text", ["yep do it", "sí, hazlo", "go on then, do it", "dale", "oui, vas-y", "ja, mach das"])
def test_some_yes_says_to_do_it(text: str):
    assert says_to_do(text)


@pytest.mark.parametrize("text", ["yes", "sí", "ok", "sure", "do it tomorrow", "hazlo si llueve", "don't do it", ""])
def test_another_yes_or_more_than_a_yes_does_not(text: str):
    assert not says_to_do(text)


@given(st.text(max_size=150), st.sampled_from([phrase for kind, phrase in EVERY_PHRASE if kind == "yes"]))
def test_a_yes_with_a_word_that_is_in_no_list_is_none(text: str, yes: str):
    assert read_answer(f"{yes} {text} zyxwv") == "unclear"
    assert read_answer(f"zyxwv {text} {yes}") == "unclear"


def test_there_is_a_list_for_each_language():
    assert LISTS.keys() >= {"es", "en", "pt", "fr", "it", "de", "ca"}
