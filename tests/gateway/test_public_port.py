"""What the public port bears: strangers who send too much, too slowly, too often, or what is no request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from phylactery_gateway.http.connections import Connection, ConnectionLimits, Connections
from starlette.applications import Starlette
from structlog.testing import capture_logs
from uvicorn.server import ServerState

from tests.support.gateway.running import Desk, open_gateway
from tests.support.gateway.strangers import MADE_UP, UNSIGNED, connect, connected, head

KIB = 1024
LARGE = 2_900_000


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_gateway(tmp_path) as opened:
        yield opened


async def asked(desk: Desk, *parts: bytes) -> int:
    """Send bytes as a stranger and return the status of the response."""
    stranger = await connect(desk.gateway.port)
    try:
        for part in parts:
            await stranger.send(part)
        return await stranger.status()
    finally:
        stranger.leave()


async def is_healthy(desk: Desk) -> bool:
    return await asked(desk, head("/healthz", method="GET")) == 200


def held(desk: Desk) -> int:
    """Return the bytes that are held of bodies."""
    return desk.gateway.bodies.held


# heads and signatures


UNSIGNED_HEADERS = [
    UNSIGNED,
    "X-Hub-Signature-256:\r\n",
    "X-Hub-Signature-256: sha256=\r\n",
    f"X-Hub-Signature-256: sha256={63 * 'a'}\r\n",
    f"X-Hub-Signature-256: sha256={65 * 'a'}\r\n",
    f"X-Hub-Signature-256: sha256={64 * 'g'}\r\n",
    f"X-Hub-Signature-256: sha256={64 * 'A'}\r\n",
    f"X-Hub-Signature-256: SHA256={64 * 'a'}\r\n",
    f"X-Hub-Signature-256: sha1={40 * 'a'}\r\n",
    f"X-Hub-Signature-256: {64 * 'a'}\r\n",
    f"X-Hub-Signature-256: sha256={64 * 'é'}\r\n",
    f"X-Hub-Signature: sha256={64 * 'a'}\r\n",
    f"X-Hub-Signature-256: sha256={64 * 'a'},sha256={64 * 'a'}\r\n",
]


async def test_a_webhook_without_a_signature_is_refused_before_its_body_is_read(desk: Desk) -> None:
    for header in UNSIGNED_HEADERS:
        for length in (LARGE, None, 10**19, 17):
            assert await asked(desk, head(length=length, more=header)) == 401, f"{header} without a byte of the body"
        expecting = head(length=LARGE, more=f"{header}Expect: 100-continue\r\n")
        assert await asked(desk, expecting) == 401, f"{header} and without asking for it"
    assert held(desk) == 0


async def test_telegrams_secret_is_compared_before_the_body_is_read(desk: Desk) -> None:
    for secret in ("", "bot-secre", "bot-secret-", "BOT-SECRET", "é"):
        header = f"X-Telegram-Bot-Api-Secret-Token: {secret}\r\n" if secret else ""
        assert await asked(desk, head("/webhooks/telegram", length=LARGE, more=header)) == 401, secret


async def test_a_refused_client_that_sends_its_whole_body_first_still_sees_why(desk: Desk) -> None:
    async with httpx.AsyncClient() as client:
        for size in (10, 60 * KIB, 900 * KIB):
            assert (await client.post(desk.graph.webhook, content=b"x" * size)).status_code == 401


async def test_a_head_that_does_not_end_in_time_ends_its_connection(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, head_seconds=0.3) as desk:
        port = desk.gateway.port
        silent, half, slow, second = [await connect(port) for _ in range(4)]
        await half.send(b"POST /webhooks/whatsapp HTTP/1.1\r\nHost: ")
        dripping = asyncio.create_task(slow.send(head(more="X: y\r\n" * 100), pieces=1, pause=0.02))
        await second.send(head("/healthz", method="GET"))
        assert await second.status() == 200
        await second.send(b"GET /healthz")  # the head of the next request has its time too
        for one in (silent, half, slow, second):
            await one.ended()
        assert not await dripping
        assert await is_healthy(desk)


async def test_a_head_that_is_too_large_or_is_none_is_refused_in_a_line_of_the_log_a_minute(desk: Desk) -> None:
    large = f"GET /healthz HTTP/1.1\r\nHost: gate\r\nX: {'x' * 100 * KIB}\r\n\r\n".encode()
    many = b"GET /healthz HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(30_000)) + b"\r\n"
    nothing = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 4_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    wrong = (
        b"GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /webhooks/whatsapp HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /webhooks/whatsapp HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /webhooks/whatsapp HTTP/1.1\r\nHost: a\r\nContent-Length: " + 5_000 * b"9" + b"\r\n\r\n",
        b"POST /webhooks/whatsapp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX\x00: y\r\n\r\n",
    )
    with capture_logs() as logs:
        for request in (large, many, *nothing, *wrong):
            assert await asked(desk, request) in {0, *range(400, 506)}, request[:60]
    assert len(logs) <= 1, logs
    assert await is_healthy(desk)


async def test_an_upgrade_is_not_served(desk: Desk) -> None:
    asks = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"
    for path, status in (("/healthz", 200), ("/webhooks/whatsapp", 403), ("/none", 404)):
        assert await asked(desk, head(path, method="GET", more=asks)) == status
    assert await is_healthy(desk)


# bodies


async def test_a_body_that_does_not_arrive_in_time_is_given_up(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, body_seconds=0.3) as desk:
        assert await asked(desk, head(length=100, more=MADE_UP), b"x" * 99) == 408
        assert await asked(desk, head(length=None, more=MADE_UP), b"5\r\nhello\r\n") == 408
        slow = await connect(desk.gateway.port)
        await slow.send(head(length=LARGE, more=MADE_UP))
        assert not await slow.send(b"x" * 200, pieces=1, pause=0.02), "each byte in time, and all of them too late"
        assert held(desk) == 0


async def test_all_bodies_together_hold_so_many_bytes_and_a_phone_is_served_beside_them(tmp_path: Path) -> None:
    async with open_gateway(
        tmp_path, max_held_bytes=300 * KIB, max_body_bytes=200 * KIB, max_message_bytes=KIB
    ) as desk:
        async with connected(desk.gateway.port, 30) as strangers:
            for one in strangers:
                await one.send(head(length=190 * KIB, more=MADE_UP) + b"x" * 100 * KIB)
                assert held(desk) <= 300 * KIB
            await desk.phone().say("hola")
            await desk.graph.post(json.dumps(desk.graph.change({"messages": []})).encode().ljust(150 * KIB))
            assert held(desk) <= 300 * KIB
            ended = [asyncio.create_task(one.status()) for one in strangers]
            done, waiting = await asyncio.wait(ended, timeout=1)
            assert {one.result() for one in done} == {503}
            assert len(done) >= 27
            for one in waiting:
                one.cancel()
        await desk.until(lambda: held(desk) == 0, "the room that nobody uses")


@pytest.mark.parametrize("size", [1, 2, 60])
async def test_bodies_that_never_end_keep_no_larger_one_out(tmp_path: Path, size: int) -> None:
    """Small ones fill the room, some go on byte by byte, and what is sent whole is larger than each of them."""
    async with open_gateway(
        tmp_path, max_held_bytes=120 * KIB, max_body_bytes=110 * KIB, max_message_bytes=KIB
    ) as desk:
        async with connected(desk.gateway.port, 128 // size) as strangers:
            for one in strangers:
                await one.send(head(length=110 * KIB, more=MADE_UP) + b"x" * size * KIB)
            for one in strangers[-3:]:
                await one.send(b"x")
            assert held(desk) <= 120 * KIB
            body = json.dumps(desk.graph.change({"messages": []})).encode()
            for larger in (3 * KIB, 70 * KIB, 105 * KIB):
                assert await desk.graph.post(body.ljust(larger)) == 200, "it is delivered again only by and by"
            assert held(desk) <= 120 * KIB
        await desk.until(lambda: held(desk) == 0, "the room that nobody uses")


async def test_a_wrong_signature_over_a_whole_body_leaves_nothing_behind(desk: Desk) -> None:
    body = b"x" * 500 * KIB
    assert [await asked(desk, head(length=len(body), more=MADE_UP), body) for _ in range(5)] == [401] * 5
    assert held(desk) == 0
    assert await desk.rows("SELECT * FROM inbox") == await desk.rows("SELECT * FROM backlog") == []


LYING = [
    b"zz\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhel\r\n0\r\n\r\n",
    b"5\r\nhello world\r\n",
    b"-1\r\n",
    b"ffffffffffffffffffff\r\nx",
    b"5;" + b"e" * 20 * KIB + b"\r\nhello\r\n",
    b"0\r\n" + b"X: y\r\n" * 4_000,
]


async def test_chunks_that_lie_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_gateway(tmp_path, body_seconds=0.3) as desk:
        for body in LYING:
            assert await asked(desk, head(length=None, more=MADE_UP), body) in {400, 401, 408}, body[:40]
            assert await asked(desk, head(length=None), body) in {400, 401}, body[:40]
            assert held(desk) == 0
        assert await is_healthy(desk)
    assert [one for one in caplog.records if one.exc_info] == [], "no traceback for what strangers send"


async def test_a_client_that_says_less_than_it_promised_or_more_harms_nobody(desk: Desk) -> None:
    short = await connect(desk.gateway.port)
    await short.send(head(length=100, more=MADE_UP) + b"x" * 50)
    short.leave()
    more = await connect(desk.gateway.port)
    await more.send(head(length=3, more=MADE_UP) + b"abc" + b"garbage that is no request")
    assert await more.status() == 401
    await more.ended()
    await desk.until(lambda: held(desk) == 0, "the room of who hung up")
    assert await is_healthy(desk)


async def test_requests_sent_ahead_are_answered_in_order_until_one_is_refused(desk: Desk) -> None:
    ahead = await connect(desk.gateway.port)
    good = head("/healthz", method="GET")
    await ahead.send(good * 50 + head(length=0) + good * 500)
    answered = b""
    while part := await asyncio.wait_for(ahead._reader.read(65_536), 30):
        answered += part
    assert answered.count(b"HTTP/1.1 200") == 50
    assert answered.count(b"HTTP/1.1 401") == answered.count(b"HTTP/1.1") - 50 == 1


# how many


async def test_where_every_connection_is_taken_the_one_that_waits_longest_gives_way(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, max_connections=10) as desk, connected(desk.gateway.port, 40) as strangers:
        phone = desk.phone()
        for number, one in enumerate(strangers):
            if number % 3:
                await one.send(head(length=LARGE, more=MADE_UP) if number % 3 == 1 else b"POST /webhooks/wh")
        await phone.say("hola")
        await strangers[0].ended()
        await strangers[20].ended()
        assert await is_healthy(desk)
        assert len(await desk.rows("SELECT * FROM messages")) == 1


class Line(asyncio.Transport):
    """A connection from an address that this machine has no route to."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 40_312)})
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        """Nothing is sent that would be waited for."""

    def is_closing(self) -> bool:
        return self.aborted


@pytest.mark.parametrize(
    "crowd",
    [
        ("2001:db8:0:7::1", "2001:db8:0:7::2", "2001:db8:0:7:ffff::3"),
        ("192.0.2.9", "::ffff:192.0.2.9", "::ffff:c000:209"),
        ("fe80::1", "fe80::2%eth0", "fe80::1%eth1"),
    ],
)
async def test_addresses_that_one_sender_has_are_counted_as_one(crowd: tuple[str, ...]) -> None:
    """Of IPv6 a sender has a network of 64 bits; each of the others waits longer than every one of the crowd."""
    others = ("::ffff:192.0.2.1", "::ffff:192.0.2.2", "2001:db8:0:8::1", "198.51.100.1")
    connections = Connections(ConnectionLimits(connections=len(others) + len(crowd)), lambda _: None)
    config = uvicorn.Config(Starlette(), ws="none", log_config=None)
    lines = {address: Line(address) for address in (*others, *crowd, "203.0.113.1")}
    made = []
    for number, line in enumerate(lines.values()):
        made.append(Connection(connections, config=config, server_state=ServerState(), app_state={}))
        made[-1].since = float(number)
        made[-1].connection_made(line)
    assert [address for address, line in lines.items() if line.aborted] == [crowd[0]]
    for one in made:
        one.connection_lost(None)


async def test_strangers_cause_one_warning_and_not_one_each(desk: Desk) -> None:
    with capture_logs() as logs:
        for _ in range(60):
            assert await asked(desk, head(length=LARGE)) == 401
            assert await asked(desk, b"\x00\r\n\r\n") == 400
            assert await asked(desk, head("/webhooks/telegram", length=4)) == 401
    assert len([one for one in logs if one["log_level"] in ("warning", "error")]) <= 3, logs


async def test_a_reader_of_nothing_keeps_no_large_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phylactery_gateway.http import connections

    monkeypatch.setattr(connections, "WRITE_SECONDS", 0.3)
    offered = {"phylactery.agent.v1.ChatService": "127.0.0.1:1"}
    async with open_gateway(
        tmp_path, rpc_services=offered, identity_mode="tokens", tokens_file=_tokens(tmp_path)
    ) as desk:
        stuck = await connect(desk.gateway.port)
        await stuck.send(head("/openapi.json", method="GET") * 1_000)
        with capture_logs() as logs:
            await desk.until(lambda: logs, "the end of the connection")
        assert [one["reason"] for one in logs] == ["write_slow"]
        assert await is_healthy(desk)
        stuck.leave()


def _tokens(folder: Path) -> Path:
    from phylactery_chassis.auth.identity import Role
    from phylactery_chassis.auth.tokens import add_token

    add_token(folder / "tokens.yaml", subject="ana", tenant="acme", roles=[Role.CALLER])
    return folder / "tokens.yaml"


# many elements


def giant(desk: Desk, count: int, *, senders: int = 1) -> dict[str, Any]:
    """Return a webhook of many messages."""
    now = int(time.time())
    messages = [
        {
            "id": f"wamid.g{number}",
            "from": str(34_700_000_000 + number % senders),
            "timestamp": str(now),
            "type": "text",
            "text": {"body": f"message {number}"},
        }
        for number in range(count)
    ]
    return desk.graph.change({"messages": messages})


async def test_a_webhook_of_many_elements_is_durable_at_once_and_read_afterwards(desk: Desk) -> None:
    for size in (51, 400):
        payload = giant(desk, size)
        assert await desk.graph.post(payload) == await desk.graph.post(payload) == 200
        await desk.until_rows("SELECT * FROM messages", size)
        await desk.until_rows("SELECT * FROM backlog", 0)
    rows = await desk.rows("SELECT external_id FROM messages ORDER BY position")
    sent = payload["entry"][0]["changes"][0]["value"]["messages"]
    assert [one.external_id for one in rows] == [one["id"] for one in sent]


async def test_a_large_webhook_with_one_element_or_none_that_can_be_read_is_kept_too(desk: Desk) -> None:
    huge = {"id": "wamid.1", "type": "hologram", "hologram": "x" * 100 * KIB, "timestamp": "1"}
    for body in (json.dumps(desk.graph.change({"messages": [huge]})).encode(), b"[" * 100 * KIB, b"\xff" * 100 * KIB):
        assert await desk.graph.post(body) == 200
    await desk.until_rows("SELECT * FROM inbox", 3)
    await desk.until_rows("SELECT * FROM backlog", 0)
    kinds = sorted(one.kind for one in await desk.rows("SELECT kind FROM inbox"))
    assert kinds == ["kept:type:hologram", "kept:unknown_body", "kept:unknown_body"]


@pytest.mark.slow
async def test_while_many_wait_for_the_agent_a_webhook_is_not_read_on_and_who_writes_now_is_not_behind_them(
    desk: Desk,
) -> None:
    assert await desk.graph.post(giant(desk, 600, senders=600)) == 200  # there is no agent that would take any of them
    await desk.until_rows("SELECT * FROM conversations", 100)
    await desk.phone().say("hola")
    [own] = await desk.rows(
        "SELECT receive_us FROM messages JOIN conversations USING (conversation_id) JOIN identities i USING (user_id)"
        " WHERE i.value = 'ES.100'"
    )
    # Not by work_us: every try that finds no agent puts it off, so it does not say who came first
    [before] = await desk.rows("SELECT count(*) AS n FROM messages WHERE receive_us < :own", own=own.receive_us)
    assert before.n <= 150
    await asyncio.sleep(1.5)
    assert len(await desk.rows("SELECT * FROM conversations")) <= 151
    assert len(await desk.rows("SELECT * FROM backlog")) == 1


@pytest.mark.slow
async def test_thousands_that_arrive_at_once_do_not_stop_what_is_sent(desk: Desk) -> None:
    assert await desk.graph.post(giant(desk, 500)) == 200
    await desk.until_rows("SELECT * FROM messages", 500)
    rates = await desk.rows("SELECT rate_us FROM accounts WHERE channel = 'whatsapp'")
    assert all(one.rate_us <= time.time_ns() // 1_000 + 1_000_000 for one in rates)


async def test_what_is_taken_back_before_it_was_read_is_never_served(desk: Desk) -> None:
    phone = desk.phone()
    await phone.send({"type": "revoke", "revoke": {"original_message_id": "wamid.late"}})
    await phone.say("pay everything", wamid="wamid.late")
    await phone.say("hola")
    rows = await desk.rows("SELECT external_id FROM messages WHERE state <> 'noted'")
    assert len(rows) == 1
    assert await desk.rows("SELECT * FROM messages WHERE external_id = 'wamid.late'") == []
