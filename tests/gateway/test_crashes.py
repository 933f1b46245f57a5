"""A gateway killed between any two writes: nothing is lost, no effect happens twice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from phylactery_gateway.loopback.graph_api import GraphServer, Phone

from tests.support.agent.files import shared_folder
from tests.support.agent.system import open_system
from tests.support.gateway.process import GatewayProcess, one_gateway
from tests.support.gateway.running import until
from tests.support.servers import postgres

pytestmark = pytest.mark.slow
POINTS = ("received", "turn", "tried", "accepted", "recorded", "said", "claimed", "sent", "done")
TYPES = {"type": "text", "text": {"body": 'append "once" to log.txt'}}


async def deliver(phone: Phone, graph: GraphServer) -> None:
    """Deliver a message as Meta does: until it is acknowledged."""
    payload = phone.webhook(TYPES, wamid="wamid.once")
    for _ in range(300):
        with suppress(httpx.HTTPError):
            if await graph.post(payload) == 200:
                return
        await asyncio.sleep(0.1)
    raise AssertionError("the webhook was never acknowledged")


@pytest.mark.parametrize("point", POINTS)
async def test_a_gateway_killed_between_two_writes_loses_nothing_and_repeats_no_effect(
    tmp_path: Path, point: str
) -> None:
    async with open_system(tmp_path) as system, one_gateway(tmp_path, system.target("agent")) as (process, graph):
        await process.start(f"gateway.{point}")
        await process.lift()
        phone = Phone(graph)
        delivery = asyncio.create_task(deliver(phone, graph))
        await process.died()
        await process.start()
        await delivery
        await until(lambda: phone.inbox, "a reply")
        log = system.phone_sandbox() / "log.txt"
        assert log.read_text().splitlines() == ["once"]
        await phone.say("read log.txt")
        await until(lambda: any("once" in one.text for one in phone.inbox[1:]), "the next reply")
        assert log.read_text().splitlines() == ["once"]
        # a message whose response was lost is known by its status, so not even that is sent twice
        assert len(phone.inbox) == 2


@pytest.mark.parametrize("point", ["kept", "unpacked", "unpacked#2"])
async def test_a_gateway_killed_with_a_webhook_of_many_elements_loses_none_and_stores_none_twice(
    tmp_path: Path, point: str
) -> None:
    async with one_gateway(tmp_path, "127.0.0.1:1") as (process, graph):
        await process.start(f"gateway.{point}")
        phone = Phone(graph)
        said = [phone.webhook({"type": "text", "text": {"body": str(n)}}, wamid=f"wamid.{n}") for n in range(170)]
        value = said[0]["entry"][0]["changes"][0]["value"]
        value["messages"] = [one["entry"][0]["changes"][0]["value"]["messages"][0] for one in said]
        with suppress(httpx.HTTPError):
            assert await graph.post(said[0]) == 200
        await process.died()
        await process.start()
        if point == "kept":  # nobody told the channel that it was taken
            assert await graph.post(said[0]) == 200

        def rows(query: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(tmp_path / "gateway" / "gateway.db")) as database:
                return database.execute(query).fetchall()

        await until(lambda: rows("SELECT count(*) FROM messages") == [(170,)], "every message")
        await until(lambda: rows("SELECT count(*) FROM backlog") == [(0,)], "the end of the webhook")
        found = rows("SELECT external_id FROM messages ORDER BY position")
        assert found == [(f"wamid.{number}",) for number in range(170)]
        assert await graph.post(said[0]) == 200
        await until(lambda: rows("SELECT count(*) FROM backlog") == [(0,)], "the end of its repetition")
        assert rows("SELECT count(*) FROM messages") == [(170,)]


@pytest.mark.parametrize("point", ["received", "turn", "accepted", "recorded"])
async def test_a_gateway_killed_while_a_number_changes_hands_makes_one_new_person(tmp_path: Path, point: str) -> None:
    async with open_system(tmp_path) as system, one_gateway(tmp_path, system.target("agent")) as (process, graph):
        await process.start()
        phone = Phone(graph, "", "5215512345678")
        await phone.say("hola")
        await until(lambda: phone.inbox, "a reply")
        process.kill()
        database = tmp_path / "gateway" / "gateway.db"
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE users SET seen_us = seen_us - 91 * 86400000000")
        await process.start(f"gateway.{point}")
        moved = Phone(graph, "", "525512345678")
        delivery = asyncio.create_task(deliver(moved, graph))
        await process.died()
        await process.start()
        await delivery
        await until(lambda: moved.inbox, "a reply")
        with closing(sqlite3.connect(database)) as connection:
            counts = [
                connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
                for table in ("users", "conversations", "identities", "former")
            ]
        assert counts == [2, 2, 1, 1]


FILE_POINTS = ("said", "claimed", "fetched", "uploaded", "begun", "sent", "done")


@pytest.mark.parametrize("statuses", [True, False], ids=["with statuses", "without"])
@pytest.mark.parametrize("point", FILE_POINTS)
async def test_a_gateway_killed_while_it_sends_a_file_sends_it_once_or_says_that_it_does_not_know(
    tmp_path: Path, point: str, statuses: bool
) -> None:
    box = shared_folder(tmp_path, "local")
    (box.path / "a.txt").write_text("hola")
    async with (
        open_system(tmp_path, sandbox_shared=[box]) as system,
        one_gateway(tmp_path, system.target("agent")) as (process, graph),
    ):
        graph.statuses = statuses
        await process.start(f"gateway.{point}")
        await process.lift()
        phone = Phone(graph)
        await phone.say("envíame shared/box/a.txt")
        await process.died()
        await process.start()
        await until(lambda: any("Te envío" in one.text for one in phone.inbox), "the reply")
        files = [one for one in phone.inbox if one.media_id]
        # nobody can tell a message that was never asked for from one whose status does not come
        unknown = point == "begun" or (point == "sent" and not statuses)
        if unknown:
            await until(lambda: any("No sé si «a.txt»" in one.text for one in phone.inbox), "the doubt")
        assert len(files) == (point != "begun")
        assert {graph.uploads[one.media_id].content for one in files} <= {b"hola"}
        assert sum("No sé si" in one.text for one in phone.inbox) == unknown


async def test_two_gateway_processes_share_one_database_and_one_conversation(tmp_path: Path, postgres_url: str) -> None:
    url = postgres.create_database(postgres_url, "gateway_processes")
    async with (
        open_system(tmp_path) as system,
        one_gateway(tmp_path, system.target("agent"), database_url=url) as (first, graph),
    ):
        from phylactery_chassis.db.database import Database

        database = Database(url)
        await asyncio.to_thread(database.migrate, "phylactery_gateway")
        await asyncio.to_thread(database.close)
        await first.lift(*(f"ES.{place}" for place in range(5)))
        await first.start()
        environment = {**first._environment, "GATEWAY_PORT": "0", "GATEWAY_DATA_DIR": str(tmp_path / "second")}
        environment["GATEWAY_SEAL_KEY_FILE"] = str(tmp_path / "gateway" / "seal.key")
        second = GatewayProcess(tmp_path, environment, "second")
        await second.start()
        try:
            phones = [Phone(graph, f"ES.{place}", f"34{place}") for place in range(5)]
            hooks = [f"http://127.0.0.1:{port}/webhooks/whatsapp" for port in (first.port, second.port)]
            async with httpx.AsyncClient(timeout=60) as client:
                posts = []
                for place, phone in enumerate(phones):
                    said = {"type": "text", "text": {"body": f'append "{place}" to log{place}.txt'}}
                    body = json.dumps(phone.webhook(said, wamid=f"wamid.{place}")).encode()
                    headers = {"x-hub-signature-256": graph.sign(body)}
                    posts += [client.post(hook, content=body, headers=headers) for hook in hooks * 2]
                assert {one.status_code for one in await asyncio.gather(*posts)} == {200}
            await until(lambda: all(phone.inbox for phone in phones), "five replies")
            await asyncio.to_thread(first.kill)
            for phone in phones:
                body = json.dumps(phone.webhook({"type": "text", "text": {"body": "hola"}}, wamid=f"w2.{phone.bsuid}"))
                graph.webhook = hooks[1]
                assert await graph.post(body.encode()) == 200
            await until(lambda: all(len(phone.inbox) == 2 for phone in phones), "five more")
            for place in range(5):
                [path] = system.written(f"log{place}.txt")
                assert path.read_text().splitlines() == [str(place)]
        finally:
            second.kill()
