"""Reminders, web pages and e-mail through the three services: requested, decided, executed, and reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.app import build_agent
from phylactery_agent.settings import AgentSettings
from phylactery_chassis.errors import StartError
from phylactery_chassis.settings import load

from tests.agent.tools.test_mail import FROM, Post
from tests.agent.tools.test_mail import serving as serving_mail
from tests.agent.tools.test_web import Site, answer
from tests.agent.tools.test_web import serving as serving_web
from tests.support.agent.process import AgentProcess
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system

ENDS_SECONDS = 60.0


async def until_told(person: Person, start: str, thread_id: str = "t1") -> str:
    """Wait for a message of the agent in the transcript."""
    async with asyncio.timeout(ENDS_SECONDS):
        while True:
            for role, text in await person.transcript(thread_id):
                if role == "assistant" and text.startswith(start):
                    return text
            await asyncio.sleep(0.05)


@pytest.fixture
async def reminding(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path, time_zone="America/Lima", reminder_poll_seconds=0.05) as opened:
        yield opened


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("recuérdame pagar el arriendo en 20 minutos", "Recordatorio"),
        ("remind me in 20 minutes to pay the rent", "Reminder"),
    ],
)
async def test_a_reminder_that_was_asked_for_is_told_in_its_thread_when_it_is_due(
    reminding: System, words: str, said: str
) -> None:
    ana = reminding.person("ana")
    asked = await ana.say(words)
    assert (asked.run.status, asked.run.tool_calls[0].status) == (DONE, "success")
    reminding.clock.advance(19 * 60)
    other = await ana.say("repite hola")
    assert not [text for _, text in await ana.transcript() if text.startswith(said + ":")]
    reminding.clock.advance(60)
    await until_told(ana, said + ": ")
    later = await ana.say("repite adiós")
    assert (other.run.status, later.run.status) == (DONE, DONE)
    texts = [text for _, text in await ana.transcript()]
    assert len([text for text in texts if text.startswith(said + ":")]) == 1


async def test_reminders_are_listed_and_cancelled_in_words(reminding: System) -> None:
    ana = reminding.person("ana")
    await ana.say("recuérdame regar las plantas mañana a las 9 de la mañana")
    listed = await ana.say("¿qué recordatorios tengo?")
    assert "09:00 (America/Lima): regar las plantas" in listed.reply.text
    assert (await ana.say("cancela el recordatorio de regar las plantas")).run.status == DONE
    assert "(No hay nada.)" in (await ana.say("muéstrame mis recordatorios")).reply.text


async def test_a_reminder_leaves_a_suspended_run_suspended_and_its_approval_good(tmp_path: Path) -> None:
    async with open_system(tmp_path, asks=True, reminder_poll_seconds=0.05) as system:
        ana = system.person("ana")
        asked = await ana.say("recuérdame pagar en 5 minutos")
        approval_id, code = approval_of(asked)
        assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
        waiting = await ana.say('escribe "hola" en notas.txt')
        assert waiting.run.status == SUSPENDED
        system.clock.advance(301)
        await until_told(ana, "Recordatorio")
        assert (await ana.run(waiting.run.id)).status == SUSPENDED
        approval_id, code = approval_of(waiting)
        assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
        assert (system.sandbox / "notas.txt").read_text() == "hola"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["agent.schedule.claimed", "agent.schedule.fired"])
async def test_an_agent_killed_around_a_firing_tells_it_once(reminding: System, tmp_path: Path, point: str) -> None:
    ana = reminding.person("ana")
    folder = tmp_path / "killed"
    process = AgentProcess(reminding, folder, point, AGENT_REMINDER_POLL_SECONDS="0.05")
    async with await process.channel() as channel:
        chat = reminding.through(channel, ana)
        assert (await chat.say("recuérdame pagar en 1 minuto")).run.status == DONE
    process.end()
    _make_due(folder)
    process = AgentProcess(reminding, folder, point, AGENT_REMINDER_POLL_SECONDS="0.05")
    assert await asyncio.to_thread(process.child.wait, ENDS_SECONDS) != 0
    process = AgentProcess(reminding, folder, AGENT_REMINDER_POLL_SECONDS="0.05")
    async with await process.channel() as channel:
        chat = reminding.through(channel, ana)
        await until_told(chat, "Recordatorio (")
        await chat.say("repite hola")
        told = [text for _, text in await chat.transcript() if text.startswith("Recordatorio (")]
    process.end()
    assert len(told) == 1


def _make_due(folder: Path) -> None:
    """Move what is kept into the past: the process goes by its own clock."""
    import sqlite3

    with sqlite3.connect(folder / "agent.db") as database:
        moved = database.execute(
            "UPDATE agent_schedules SET due_us = due_us - 600000000, start_us = start_us - 600000000"
        )
        assert moved.rowcount == 1


@pytest.mark.slow
async def test_a_listed_page_is_read_and_one_that_is_not_says_so(tmp_path: Path) -> None:
    site = Site({"/precios": answer(b"42 euros")})
    async with serving_web(site), open_system(tmp_path, http_allow=[f"http://127.0.0.1:{site.port}"]) as system:
        ana = system.person("ana")
        read = await ana.say(f"lee {site.url('/precios')}")
        assert read.run.status == DONE
        assert "42 euros" in read.reply.text
        other = await ana.say("lee http://127.0.0.1:1/precios")
        assert [call.error_code for call in other.run.tool_calls][-1:] == ["HOST_NOT_ALLOWED"]


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    async with serving_mail(Post()) as opened:
        yield opened


def mailing(post: Post) -> dict[str, Any]:
    return {"smtp_host": "127.0.0.1", "smtp_port": post.port, "smtp_tls": "none", "smtp_from": FROM}


async def test_a_message_that_is_asked_for_in_full_is_sent_once_and_at_once(tmp_path: Path, post: Post) -> None:
    async with open_system(tmp_path, **mailing(post)) as system:
        sent = await system.person("ana").say(
            "envía un correo a ana@example.org con asunto «Hola» que diga «Llego a las 9»"
        )
        assert (sent.run.status, [call.status for call in sent.run.tool_calls]) == (DONE, ["success"])
        assert [envelope.rcpt_tos for envelope in post.taken] == [["ana@example.org"]]


async def test_a_connection_cut_after_the_message_is_in_doubt_and_never_sent_again(tmp_path: Path, post: Post) -> None:
    post.cut = True
    async with open_system(tmp_path, **mailing(post)) as system:
        ana = system.person("ana")
        answered = await ana.say("manda un correo a ana@example.org: mañana no puedo ir")
        assert [call.state for call in answered.run.tool_calls] == ["in_doubt"]
        await ana.say("continúa")
        assert len(post.taken) == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"AGENT_HTTP_ALLOW": '["exa mple.org"]'}, "AGENT_HTTP_ALLOW"),
        ({"AGENT_HTTP_ALLOW": '["user@example.org"]'}, "AGENT_HTTP_ALLOW"),
        ({"AGENT_HTTP_CA_FILE": "/nowhere.pem"}, "AGENT_HTTP_CA_FILE"),
        ({"AGENT_SMTP_HOST": "mail.example.org"}, "smtp_from"),
        ({"AGENT_SMTP_HOST": "mail.example.org", "AGENT_SMTP_FROM": "agent"}, "smtp_from"),
        ({"AGENT_SMTP_HOST": "a/b", "AGENT_SMTP_FROM": FROM}, "smtp_host"),
        ({"AGENT_SMTP_HOST": "mail.example.org", "AGENT_SMTP_FROM": FROM, "AGENT_SMTP_TLS": "none"}, "loopback"),
        ({"AGENT_TIME_ZONE": "Nowhere/City"}, "AGENT_TIME_ZONE"),
        ({"AGENT_REMINDERS_PER_USER": "0"}, "AGENT_REMINDERS_PER_USER"),
    ],
)
def test_a_setting_that_cannot_be_meant_stops_the_start_by_name(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], told: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StartError, match=told):
        load(AgentSettings)


async def test_a_password_file_that_is_not_there_stops_the_start_by_name(tmp_path: Path) -> None:
    settings = AgentSettings(
        data_dir=tmp_path, smtp_host="localhost", smtp_from=FROM, smtp_user="u", smtp_password_file=tmp_path / "none"
    )
    with pytest.raises(StartError, match="AGENT_SMTP_PASSWORD_FILE"):
        await build_agent(settings)
