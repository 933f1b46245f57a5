"""Files that people send on Telegram: fetched from the Bot API alone, with size and type checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from phylactery_gateway.channels.messages import Media
from phylactery_gateway.channels.port import MediaError, MediaUnavailableError
from phylactery_gateway.loopback.bot_api import BotServer
from phylactery_gateway.telegram.bot_api import BotApi
from phylactery_gateway.telegram.channel import Telegram
from phylactery_gateway.telegram.types import looks_like, plain_type

from tests.support.agent.documents import OGG, PNG, WORD, docx, pdf
from tests.support.agent.system import open_system
from tests.support.gateway.running import open_gateway

PDF = "application/pdf"
LIMIT = 100_000


@dataclass
class Files:
    bot: BotServer
    channel: Telegram

    def offer(self, data: bytes, *, mime: str = PDF, kind: str = "document", **described: Any) -> Media:
        told = {"file_id": "f1", "file_path": "documents/file_1.pdf", "file_size": len(data), **described}
        self.bot.files["f1"] = (told, data)
        return Media("f1", kind, mime, size=len(data))

    async def reason(self, media: Media) -> str:
        with pytest.raises(MediaError) as failed:
            await self.channel.fetch(media, LIMIT)
        return failed.value.reason


@pytest.fixture
async def files() -> AsyncIterator[Files]:
    bot = BotServer("1:secret-token", "s")
    await bot.start()
    async with httpx.AsyncClient(follow_redirects=False) as client:
        api = BotApi(bot.url, lambda: bot.token, timeout=20, client=client)
        yield Files(bot, Telegram(api, secret=lambda: "s", token=lambda: bot.token, close=client.aclose))
    await bot.stop()


async def test_a_file_as_described_is_fetched(files: Files) -> None:
    data = pdf("Total: 42 euros")
    assert await files.channel.fetch(files.offer(data), LIMIT) == data


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "documents/../../x",
        "//evil.example/x",
        "https://evil.example/x",
        "a@evil.example/x",
        "a?b",
        "a#b",
        "a%2e%2e/b",
        "a b",
        "",
        7,
    ],
)
async def test_a_path_that_leads_anywhere_else_is_not_asked_for(files: Files, path: Any) -> None:
    assert await files.reason(files.offer(pdf("x"), file_path=path)) == "HOST_NOT_ALLOWED"


async def test_what_is_too_large_is_refused_before_and_while_it_is_read(files: Files) -> None:
    large = b"%PDF-" + b"x" * LIMIT
    assert await files.reason(files.offer(large)) == "TOO_LARGE"
    assert await files.reason(files.offer(large)._replace(size=0)) == "TOO_LARGE"
    assert await files.reason(files.offer(large, file_size=None)._replace(size=0)) == "TOO_LARGE"


async def test_another_type_than_the_named_one_is_refused(files: Files) -> None:
    assert await files.reason(files.offer(b"MZ\x90\x00")) == "TYPE_DIFFERS"
    assert await files.reason(files.offer(PNG)) == "TYPE_DIFFERS"
    assert await files.reason(files.offer(b"MZ", mime="application/x-msdownload")) == "TYPE_NOT_ALLOWED"
    assert await files.reason(files.offer(pdf("x"), kind="image")) == "TYPE_NOT_ALLOWED"


async def test_what_is_not_there_now_may_be_there_later_and_what_is_cut_too(files: Files) -> None:
    media = files.offer(pdf("x"))
    assert await files.reason(media._replace(reference="unknown")) == "NOT_FOUND"
    with pytest.raises(MediaUnavailableError, match="CUT"):
        await files.channel.fetch(files.offer(pdf("x"), file_size=3), LIMIT)
    await files.bot.stop()
    with pytest.raises(MediaUnavailableError) as failed:
        await files.channel.fetch(media, LIMIT)
    assert "secret-token" not in str(failed.value)
    await files.bot.start()


def test_types_are_named_as_everywhere_and_known_by_their_beginning() -> None:
    assert plain_type("Text/Markdown; charset=utf-8") == "text/plain"
    assert plain_type("audio/x-m4a") == "audio/mp4"
    for mime, data in (("audio/ogg", OGG), ("image/png", PNG), (WORD, docx("x")), ("text/plain", b"hola")):
        assert looks_like(mime, data)
        assert not looks_like(mime, b"\x7fELF\x00")
    assert not looks_like("text/plain", b"")


@pytest.mark.slow
async def test_a_document_of_a_person_is_read_by_the_agent(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system, open_gateway(tmp_path, system.target("agent")) as desk:
        await desk.lift(system.target("agent"))
        bot, data = desk.bot, pdf("Total: 42 euros")
        bot.files["f1"] = ({"file_id": "f1", "file_path": "documents/file_1.pdf", "file_size": len(data)}, data)
        document = {"file_id": "f1", "file_name": "f.pdf", "mime_type": PDF, "file_size": len(data)}
        assert await bot.post({"update_id": bot.number(), "message": bot.message({"document": document})}) == 200
        [reply] = await desk.until(lambda: bot.sent, "a reply")
        assert "Total: 42 euros" in reply["text"]
        document["mime_type"] = "application/x-msdownload"
        assert await bot.post({"update_id": bot.number(), "message": bot.message({"document": document})}) == 200
        await desk.until(lambda: len(bot.sent) == 2, "a notice")
        assert "no puedo abrir ese tipo" in bot.sent[1]["text"]
