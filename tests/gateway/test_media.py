"""Files that people send: from which host, of which type and size, and with which hash they are taken."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

import httpx
import pytest
from phylactery_gateway.channels.messages import Media
from phylactery_gateway.channels.port import Channel, MediaError
from phylactery_gateway.delivery.files import fetch
from phylactery_gateway.http.server import HttpServer
from phylactery_gateway.loopback.graph_api import GraphServer
from phylactery_gateway.whatsapp.graph_api import GraphApi
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

PDF = b"%PDF-1.7 hola"
LIMIT = 1_000


@dataclass
class Files:
    graph: GraphServer
    api: GraphApi
    foreign: HttpServer

    def offer(self, content: bytes = PDF, *, mime: str = "application/pdf", **described: object) -> Media:
        self.graph.files["1"] = (mime, content)
        url = f"{self.graph.base}/files/1"
        self.graph.media["m1"] = {"url": url, "mime_type": mime, "sha256": hashlib.sha256(PDF).hexdigest(), **described}
        return Media("m1", "document", "application/pdf", base64.b64encode(hashlib.sha256(PDF).digest()).decode())


@pytest.fixture
async def files() -> AsyncIterator[Files]:
    graph = GraphServer("s", "t")
    await graph.start()

    async def redirected(_: Request) -> Response:
        return RedirectResponse(f"{graph.base}/files/1")

    async def bomb(_: Request) -> Response:
        packed = gzip.compress(b"0" * 10_000_000)
        return Response(packed, media_type="application/pdf", headers={"content-encoding": "gzip"})

    routes = [Route("/redirect", redirected), Route("/bomb", bomb)]
    foreign = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, grace=1, variable="")
    await foreign.start()
    async with httpx.AsyncClient(follow_redirects=False) as client:
        hosts = ["lookaside.example"]
        yield Files(graph, GraphApi(graph.url, lambda: "t", timeout=5, media_hosts=hosts, client=client), foreign)
    await foreign.stop()
    await graph.stop()


async def reason(files: Files, media: Media) -> str:
    with pytest.raises(MediaError) as failed:
        await files.api.fetch(media, LIMIT)
    return failed.value.reason


async def test_a_file_as_described_is_fetched(files: Files) -> None:
    assert await files.api.fetch(files.offer(), LIMIT) == PDF


async def test_a_file_of_another_host_is_not_asked_for(files: Files) -> None:
    own = files.graph.base
    hosts = (
        f"http://127.0.0.1:{files.foreign.port}/redirect",
        "https://lookaside.example.evil.test/1",
        "https://user@lookaside.example/1",
        "http://lookaside.example/1",
        "https://lookaside.example:8443/1",
        own.replace("127.0.0.1", "localhost") + "/files/1",
        "https://[::1/",
        "file:///etc/passwd",
        f"{own}/files/1\r\nX: y",
        f"{own}/files/\x00",
        f"{own}/" + "a" * 70_000,
    )
    for url in hosts:
        assert await reason(files, files.offer(url=url)) == "HOST_NOT_ALLOWED"


@pytest.mark.parametrize(
    "reference", ["../me", "1?fields=x", "a/b", "%2e%2e", "k\r\nX: y", "", "https://evil.test/x", "é", "1#x", "x\n"]
)
async def test_an_id_that_is_no_plain_one_is_asked_for_nowhere(files: Files, reference: str) -> None:
    assert await reason(files, files.offer()._replace(reference=reference)) == "NOT_FOUND"


@pytest.mark.parametrize(
    "error", [ValueError("x"), RuntimeError("x"), OSError("x"), httpx.InvalidURL("x"), KeyError("x")]
)
async def test_a_file_that_cannot_be_read_at_all_is_missing_beside_one_that_can(error: Exception) -> None:
    good = Media("1", "document", "application/pdf", name="a.pdf")

    class Half:
        name = "whatsapp"

        async def fetch(self, media: Media, limit: int) -> bytes:
            if media is good:
                return PDF[:limit]
            raise error

    attached, missing = await fetch(cast("Channel", Half()), [good._replace(reference="2"), good], again=True)
    assert [one.data for one in attached] == [PDF]
    assert missing == "media_failed"


async def test_a_file_that_is_too_large_is_refused_before_and_while_it_is_read(files: Files) -> None:
    assert await reason(files, files.offer(file_size=LIMIT + 1)) == "TOO_LARGE"
    assert await reason(files, files.offer(b"x" * (LIMIT + 1))) == "TOO_LARGE"


async def test_a_file_of_another_type_or_hash_is_refused(files: Files) -> None:
    assert await reason(files, files.offer(mime="text/html")) == "TYPE_DIFFERS"
    assert await reason(files, files.offer(b"%PDF-1.7 otro")) == "HASH_DIFFERS"
    media = files.offer()
    assert await reason(files, media._replace(mime="application/x-msdownload")) == "TYPE_NOT_ALLOWED"
    assert await reason(files, media._replace(reference="unknown")) == "NOT_FOUND"
    files.graph.media["m1"] = {**files.graph.media["m1"], "sha256": ""}
    assert await reason(files, media._replace(sha256="")) == "HASH_DIFFERS"


@pytest.mark.parametrize(("path", "why"), [("redirect", "DOWNLOAD"), ("bomb", "COMPRESSED")])
async def test_redirects_are_not_followed_and_bombs_are_not_unpacked(files: Files, path: str, why: str) -> None:
    url = f"http://127.0.0.1:{files.foreign.port}"
    async with httpx.AsyncClient() as client:
        api = GraphApi(f"{url}/v26.0", lambda: "t", timeout=5, media_hosts=[], client=client)
        media = files.offer()
        with pytest.raises(MediaError) as failed:
            await api._download(media, {"url": f"{url}/{path}"}, LIMIT)
    assert failed.value.reason == why
