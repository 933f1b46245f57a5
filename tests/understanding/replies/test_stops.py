"""Words that stop what waits, or hold it, are told from denials of them and from everything that only contains them."""

from __future__ import annotations

import pytest
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.replies.stops import read_stop

from tests.support.cases import each_case

STOPS = """
stop | STOP!!! | Para. | ¡para! | ¡Para ya! | basta ya, por favor | detente | Cancela | CANCELAR TODO | cancélalo todo
cancel everything | please stop | stop it now | oye, para | no sigas | don't continue | mejor déjalo | olvida eso
never mind, thanks | nvm | no hagas nada | don't do anything | anulalo | quiero cancelar | I want to cancel
can you cancel that? | ¿puedes cancelarlo? | I changed my mind | ya no lo quiero | no, cancela | No, quiero cancelar
nooo para | stoooop | para, para, para | wait, stop | vale, para | canceláaa | /cancel | don't! stop!
""".replace("\n", "|").split("|")
HOLDS = ["espera", "hold on", "Wait!", "un momento, por favor", "hang on a sec", "wait wait wait", "no, espera"]
PAUSES = """
ahora vuelvo | ya vuelvo | lo busco | voy a mirar | déjame ver | déjame pensar | dame un minuto, por favor | permíteme
brb | be right back | let me check | let me look it up, please | bear with me | give me 5 minutes | gimme a sec
""".replace("\n", "|").split("|")
LAPSES = ["un rato", "un ratito", "un minuto, por favor", "one minute", "just a second", "un seg"]
DENIALS = """
no pares | don't stop | Please don't stop! | do not cancel | no canceles | don't cancel it | never stop | no lo canceles
no quiero cancelar | I don't want to cancel | no quiero que pares | no cancelar | let's not stop | no need to stop
you don't have to stop | prefiero no cancelar | no, don't cancel
""".replace("\n", "|").split("|")
OTHERS = """
stop? | ¿para? | cancel or move? | stop.txt | stop worrying | para mañana | para Ana | para ahora | ¿para qué sirve?
cancel the gym | cancela la cita | cancel my reminder | remind me to cancel the gym | lee para.txt | stop reminding me
write "stop" to a.txt | sí, cancela | yes | no | ok | gracias | todo | ahora | don't | alto | the bus stop | why stop
""".replace("\n", "|").split("|")


def given(texts: list[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]


@each_case(
    ("text", "read"),
    [
        *((text, "stop") for text in given(STOPS)),
        *((text, "hold") for text in given(HOLDS)),
        *((text, "pause") for text in given(PAUSES)),
        *((text, "lapse") for text in LAPSES),
        *((text, "denied") for text in given(DENIALS)),
        *((text, None) for text in (*given(OTHERS), "", "stop " * 100)),
    ],
)
def test_a_text_stops_or_holds_only_if_it_says_nothing_else(text: str, read: str | None) -> None:
    assert read_stop(text) == read


@pytest.mark.parametrize("text", ["don't cancel", "Please don't cancel!", "no quiero cancelar", "do not reject it"])
def test_a_denied_no_is_no_answer(text: str) -> None:
    assert read_answer(text) == "unclear"


@pytest.mark.parametrize("text", ["don't stop", "Never stop!", "no pares", "please don't cancel", "no quiero cancelar"])
def test_a_denied_stop_takes_nothing_back(text: str) -> None:
    taken = read_retraction(text)
    assert taken is None or not taken.everything
