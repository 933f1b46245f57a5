"""A clear yes or no comes from a closed list, alone or with fillers; any other word makes a text unclear."""

from __future__ import annotations

from importlib.resources import files

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from phylactery_understanding.replies.answers import begins_with_yes, plain_words, read_answer, says_to_do

from tests.support.cases import each_case

LISTS = {
    folder.name: yaml.safe_load((folder / "answers.yaml").read_text("utf-8"))
    for folder in (files("phylactery_understanding") / "lexicons").iterdir()
    if (folder / "answers.yaml").is_file()
}
EVERY_PHRASE = [(kind, phrase) for lists in LISTS.values() for kind, phrases in lists.items() for phrase in phrases]

ANSWERS = {"yes": "yes", "weak": "yes", "no": "no", "doing": "yes"}


@each_case(
    "text",
    [
        *("sí", "si", "SÍ!", "síííí", "dale", "ok dale", "sí porfa", "bueno, dale", "va", "órale", "hacelo", "claro"),
        *("yes", "Yes.", "yesss", "yes please", "sure go ahead", "ok, do it", "👍", "👍🏽", "👍👍", "yes 🙏"),
        *("sim, pode", "oui s’il te plaît", "Vas-y !", "d'accord", "certo, grazie", "ja bitte", "d'acord, endavant"),
    ],
)
def test_a_clear_yes(text: str):
    assert read_answer(text) == "yes"


@each_case(
    "text",
    [
        *("Yes, please go ahead with that, thanks", "Yes please, that would be great.", "ok perfect do it"),
        *(
            "Sure, go right ahead. Thank you so much!",
            "Yes, I'd like that, thank you",
            "Okay, yes, please proceed with that",
        ),
        *(
            "Yes, that's right, please do it",
            "Yep, all good, go for it please",
            "Yes - please do",
            "yes :)",
            "Do so, please.",
        ),
        *(
            "sí, claro, adelante, gracias",
            "Sí, por favor, hazlo. Muchísimas gracias",
            "sí, eso",
            "Perfecto, sí, procede por favor",
        ),
        *(
            "Sí, me parece bien, adelante con eso",
            "Vale, sí, hazlo así, gracias",
            "si porfa, te lo agradezco",
            "vale, porfa",
        ),
        *("claro que sí, muchas gracias, muy amable", "Sí — lo confirmo", "sí, puedes hacerlo\ngracias"),
    ],
)
def test_a_polite_yes_is_a_clear_yes(text: str):
    assert read_answer(text) == "yes"


@each_case(
    "text",
    [
        *(
            "yes if it is cheap",
            "yes, the other address",
            "yes? really?",
            "yes, thanks, bye",
            "yes I saw it",
            "yes that one",
        ),
        *(
            "yes, and bob too",
            "yes, at ten instead",
            "yes please, Monday",
            "she said yes please go ahead",
            "yes please go ahead?",
        ),
        *(
            '"yes, go ahead"',
            "> yes\ngo ahead",
            "yes\n- no",
            "- yes",
            "yes, thanks for nothing",
            "oh great, yes, do that",
        ),
        *(
            "sí, cuando puedas mirarlo",
            "sí, si no es mucho",
            "sí, pero a las diez",
            "sí a Bea",
            "dijo que sí, adelante",
            "sí, dos",
        ),
        *(
            "sí lo vi, gracias",
            "sí, en vez de eso mañana",
            "¿sí, adelante?",
            "sí, cómo no",
            "claro, claro",
            "yeah, sure, as if",
        ),
        *("that, yes", "eso sí", "eso, sí, gracias", "no, that", "no, eso", "with that", "eso"),
        *(
            "ok, thanks a lot",
            "ok cool thanks",
            "vale, perfecto, muchas gracias",
            "alright, thank you",
            "d'accord, merci beaucoup",
        ),
    ],
)
def test_what_says_more_than_a_yes_or_takes_leave_is_none(text: str):
    assert read_answer(text) == "unclear"


_JOINERS = st.sampled_from([" ", ", ", ". ", "! ", "\n", " - ", " — ", "; "])
_REOPENING = (
    *("but", "instead", "if", "except", "tomorrow", "Bob", "bob@hill.example", "a.txt", "7", "7:30", "$9", "not", "?"),
    *("the invoice", "pero", "si llueve", "en vez", "mañana", "salvo", "no", "la factura", "ya", "when you can"),
)


@st.composite
def _polite(draw: st.DrawFn) -> tuple[list[str], str]:
    """Return the parts of a polite yes of one language, and what joins them."""
    lists = draw(st.sampled_from([LISTS["en"], LISTS["es"]]))
    yes = [draw(st.sampled_from(lists["yes"]))]
    yes += [draw(st.sampled_from(lists["back"]))] if draw(st.booleans()) else []
    courtesy = st.sampled_from([one for one in [*lists["with"], *lists["thanks"]] if one not in {"oh", "ah", "ya"}])
    before, behind = draw(st.lists(courtesy, max_size=1)), draw(st.lists(courtesy, max_size=2))
    return [*before, " ".join(yes), *behind], draw(_JOINERS)


_ODD = {plain_words(phrase) for lists in LISTS.values() for phrase in lists.get("neither", ())}


def _is_odd(text: str) -> bool:
    words = plain_words(text)
    return any(words[at : at + len(odd)] == odd for odd in _ODD for at in range(len(words)))


@given(_polite())
def test_a_yes_with_courtesy_in_any_order_is_a_yes(said: tuple[list[str], str]):
    text = said[1].join(said[0])
    assume(len(text) <= 120 and not _is_odd(text))
    assert read_answer(text) == "yes"


@given(_polite(), st.sampled_from(_REOPENING), st.integers(0, 4), _JOINERS)
def test_one_more_word_opens_the_question_again(said: tuple[list[str], str], word: str, at: int, joiner: str):
    parts = list(said[0])
    parts.insert(min(at, len(parts)), word)
    assert read_answer(said[1].join(parts)) != "yes"
    assert read_answer(f"{said[1].join(said[0])}{joiner}{word}") != "yes"


@each_case(
    "text",
    [
        *("no", "No.", "nooo", "mejor no", "no gracias", "ni hablar", "claro que no", "cancelá", "ahora no", "nel"),
        *("nope", "no thanks", "don’t", "of course not", "please don't", "never mind", "👎"),
        *("don't send it", "please do not send it", "no, no lo envíes", "no la mandes"),
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


@each_case(
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


@each_case("text", ["yes", "sí", "ok", "sure", "do it tomorrow", "hazlo si llueve", "don't do it", ""])
def test_another_yes_or_more_than_a_yes_does_not(text: str):
    assert not says_to_do(text)


@given(st.text(max_size=150), st.sampled_from([phrase for kind, phrase in EVERY_PHRASE if kind == "yes"]))
def test_a_yes_with_a_word_that_is_in_no_list_is_none(text: str, yes: str):
    assert read_answer(f"{yes} {text} zyxwv") == "unclear"
    assert read_answer(f"zyxwv {text} {yes}") == "unclear"


def test_there_is_a_list_for_each_language():
    assert LISTS.keys() >= {"es", "en", "pt", "fr", "it", "de", "ca"}


@each_case(
    "text",
    [
        "yes",
        "Yes, please, that one",
        "ok go on with the second",
        "Sure. Can you tell me the price as well?",
        "please, yes: to his new address",
        "Sí, venga, con la que dice ahí",
        "vale, dale con la primera",
        "oui, avec celle-là",
    ],
)
def test_what_a_text_goes_on_with_leaves_the_yes_it_begins_with(text: str) -> None:
    assert begins_with_yes(text)


@each_case(
    "text",
    [
        "",
        "yes?",
        "ok, and who wrote it?",
        "yes, no",
        "no, yes",
        "not yes",
        "I said yes",
        "please",
        "yesterday",
        "¿sí?",
        "that, yes",
    ],
)
def test_a_yes_that_is_asked_taken_back_or_comes_later_does_not_begin_a_text(text: str) -> None:
    assert not begins_with_yes(text)


@each_case("stroke", ["\u0335", "\u0336", "\u0337", "\u0338"])
@each_case("said", ["yes", "ok", "sí", "dale", "no"])
def test_what_is_crossed_out_answers_nothing(said: str, stroke: str):
    assert read_answer("".join(letter + stroke for letter in said)) == "unclear"
    assert read_answer(f"{said[0]}{stroke}{said[1:]}") == "unclear"
