"""The zone of the person's times: by their own words, and the question about a time that is not one time."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_agent.ports import ProfileValue
from phylactery_agent.timeparse.places import zone_of_place, zone_stated, zone_told

from tests.support.agent.system import DONE, open_system


def test_a_place_names_its_zone_and_one_of_several_zones_names_none(subtests: pytest.Subtests) -> None:
    zones = {"México": "America/Mexico_City", "lima": "America/Lima", "Europe/Madrid": "Europe/Madrid", "gmt": "UTC"}
    zones |= {"Kuala Lumpur": "Asia/Kuala_Lumpur", "a house": "", "United States": "", "": ""}
    for name, where in zones.items():
        with subtests.test(name):
            assert zone_of_place(name) == where


def test_only_what_a_person_states_of_themselves_sets_the_zone(subtests: pytest.Subtests) -> None:
    for text in (
        "vivo en Lima",
        "Mi zona horaria es America/Lima.",
        "I live in Lima now",
        "me he mudado a Lima",
        "I moved to Lima",
    ):
        with subtests.test(text):
            assert zone_stated(text) == "America/Lima"
    for text in ("mi hermana vive en Lima", "si vivo en Lima", "I live in a house", "vivo en Lima con Ana"):
        with subtests.test(text):
            assert zone_stated(text) == ""


def test_the_zone_that_was_told_last_is_the_persons_by_its_name_or_by_their_city() -> None:
    def told(name: str, value: str, at: int = 0) -> ProfileValue:
        return ProfileValue(name, value, "user", "user", at)

    assert zone_told([told("city", "Lima"), told("name", "Madrid", 9)]) == "America/Lima"
    assert zone_told([told("city", "Lima", 1), told("timezone", "Europe/Madrid", 1)]) == "Europe/Madrid"
    assert zone_told([told("city", "Lima", 2), told("timezone", "Europe/Madrid", 1)]) == "America/Lima"
    assert zone_told([told("city", "Lima", 1), told("timezone", "nowhere", 2)]) == "America/Lima"
    assert zone_told([told("timezone", "nowhere")]) == ""


async def test_reminders_are_set_in_the_zone_the_person_told_and_asked_about_where_two_times_are_meant(
    tmp_path: Path,
) -> None:
    async with open_system(tmp_path) as opened:
        ana = opened.person("ana")
        assert "America/Lima" in (await ana.say("vivo en Lima")).reply.text
        asked = await ana.say("recuérdame mañana a las 8 llamar a Eva y lista mis archivos")
        assert (asked.run.status, "«mañana a las 8»" in asked.reply.text) == (DONE, True)
        assert "En la carpeta" in asked.reply.text
        assert (await ana.say("qué recordatorios tengo")).reply.text.count("(America/Lima)") == 0
        await ana.say("recuérdame mañana a las 8 de la noche llamar a Eva")
        assert "20:00 (America/Lima): llamar a Eva" in (await ana.say("qué recordatorios tengo")).reply.text
        assert "Cuándo" in (await ana.say("recuérdame llamar al dentista")).reply.text
        completed = await ana.say(
            "el viernes a las 5 de la tarde"
        )  # of the reminder asked about, not of the one before
        assert completed.pending_approval.tool == "create_reminder"
        assert not completed.pending_approval.also
        await ana.say("ahora vivo en Madrid", "t2")
        await ana.say("recuérdame mañana a las 10 de la noche mirar el horno", "t3")
        assert "(Europe/Madrid): mirar el horno" in (await ana.say("qué recordatorios tengo", "t4")).reply.text
        assert "Madrid" in (await ana.say("¿dónde vivo?", "t5")).reply.text
        unknown = (await ana.say("mi zona horaria es argentina", "t6")).reply.text  # which memory takes for no place
        assert "America/" not in unknown
        bob = opened.person("bob")
        await bob.say("recuérdame mañana a las 8 de la noche llamar a Eva")
        assert "20:00 (UTC): llamar a Eva" in (await bob.say("qué recordatorios tengo")).reply.text
