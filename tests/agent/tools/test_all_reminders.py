"""All reminders at once: cancelled after one question, and only the person's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_agent.tools.specs.reminders import is_every_reminder

from tests.support.agent.system import DONE, SUSPENDED, open_system


@pytest.mark.parametrize(
    ("make", "words", "none"),
    [
        ("remind me tomorrow at {} am to call", "cancel all my reminders", "(There is nothing.)"),
        ("recuérdame mañana a las {} am llamar", "cancela todos mis recordatorios", "(No hay nada.)"),
    ],
)
async def test_all_reminders_are_cancelled_after_one_yes(tmp_path: Path, make: str, words: str, none: str) -> None:
    async with open_system(tmp_path) as system:
        ana, ben = system.person("ana"), system.person("ben")
        for person, hours in ((ana, (9, 10, 11)), (ben, (9,))):
            for hour in hours:
                assert (await person.say(make.format(hour))).run.status == DONE
        asked = await ana.say(words)
        if asked.run.status == SUSPENDED:
            pending = asked.pending_approval
            assert len(pending.also) == 0
            done = await ana.say(f"APPROVE {pending.approval_id} {pending.code}")
            assert done.run.status == DONE
        listing = "what reminders do I have?" if "all" in words else "¿qué recordatorios tengo?"
        assert none in (await ana.say(listing)).reply.text
        assert none not in (await ben.say(listing)).reply.text


def test_only_words_that_mean_all_are_all() -> None:
    assert is_every_reminder("all my reminders")
    assert is_every_reminder(" Todos los recordatorios ")
    assert not is_every_reminder("all my reminders about tea")
    assert not is_every_reminder("the reminder to call all my clients")
