"""Streamable HTTP on both sides: who connects, what is refused, and a server behind a URL."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from phylactery_mcp_proxy.frontend.http import Address, Clients, read_clients, serve_http, token_hash
from phylactery_mcp_proxy.running import Options, assembled
from phylactery_mcp_proxy.settings import ConfigError
from phylactery_mcp_proxy.state.pins import Pins, load_pins, save_pins

from tests.support.proxies import PATIENCE, Place, texts

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
YES = types.ElicitResult(action="accept", content={"allow": True})
CLIENTS = Clients({token_hash(f"t-{name}"): name for name in ("ana", "bruno")})


@asynccontextmanager
async def serving(options: Options, clients: Clients | None = None) -> AsyncIterator[str]:
    """Serve a proxy over HTTP in this process and yield its URL."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with assembled(options) as server:
        task = asyncio.create_task(serve_http(server, Address("127.0.0.1", 0), clients, ready.set_result))
        try:
            yield await asyncio.wait_for(ready, PATIENCE)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def client(url: str, mode: str, token: str = "", answer: Any = None) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http,
        Client(
            streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=answer, cache=None
        ) as connected,
    ):
        yield connected


async def yes(_: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
    return YES


@ERAS
async def test_on_loopback_clients_call_tools(make_place: Callable[..., Place], mode: str):
    place = await make_place().pin()
    async with serving(place.options()) as url, client(url, mode) as connected:
        assert texts(await connected.call_tool("mcp_test_look", {})) == "looked"
        assert (await connected.call_tool("mcp_test_note", {"text": "milk"})).is_error
    assert place.effects == ["look"]


@ERAS
async def test_each_client_with_a_token_is_a_principal_of_its_own(make_place: Callable[..., Place], mode: str):
    place = await make_place().pin()
    async with serving(place.options(forms=True), CLIENTS) as url:
        async with client(url, mode, "t-ana", yes) as ana:
            assert not (await ana.call_tool("mcp_test_note", {"text": "milk"})).is_error
        async with client(url, mode, "t-bruno") as bruno:
            assert (await bruno.call_tool("mcp_test_note", {"text": "milk"})).is_error
    assert place.effects == ["milk"]
    found = {}
    for name in ("ana", "bruno"):
        async with place.riskgate(name) as gate:
            (approval,) = (await gate.list_approvals(thread_id=place.thread)).approvals
            found[name] = (approval.requester, approval.state)
    assert found == {"ana": ("ana", "REDEEMED"), "bruno": ("bruno", "PENDING")}


async def test_the_state_of_another_principal_is_refused(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with serving(place.options(forms=True), CLIENTS) as url:
        async with client(url, "2026-07-28", "t-ana", yes) as ana:
            waits = await ana.session.call_tool("mcp_test_note", {"text": "x"}, allow_input_required=True)
            assert isinstance(waits, types.InputRequiredResult)
        async with client(url, "2026-07-28", "t-bruno", yes) as bruno:
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await bruno.session.call_tool(
                    "mcp_test_note",
                    {"text": "x"},
                    input_responses={"approval": YES},
                    request_state=waits.request_state,
                    allow_input_required=True,
                )
    assert place.effects == []


async def test_strangers_and_pages_of_a_browser_are_refused(make_place: Callable[..., Place]):
    place = await make_place().pin()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accepts = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        async with serving(place.options(), CLIENTS) as url:
            for headers in ({}, {"authorization": "Bearer t-nobody"}):
                assert (await http.post(url, json=ping, headers=accepts | headers)).status_code == 401
        async with serving(place.options()) as url:
            for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
                assert (await http.post(url, json=ping, headers=accepts | headers)).status_code in {403, 421}
            assert b" 413 " in await status_of_long(httpx2.URL(url))
    assert place.effects == []


async def status_of_long(url: httpx2.URL) -> bytes:
    """Return what is answered to a request that announces a long body."""
    assert url.port is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = (
        f"POST {url.path} HTTP/1.1",
        f"Host: {url.host}:{url.port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {5 * 1024 * 1024}",
    )
    writer.write("\r\n".join([*head, "", ""]).encode())
    status = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    return status


async def test_beyond_loopback_clients_need_tokens(make_place: Callable[..., Place]):
    place = make_place()
    async with assembled(place.options()) as server:
        with pytest.raises(ConfigError, match="--clients"):
            await serve_http(server, Address("0.0.0.0", 0), None, lambda _: None)


@pytest.mark.parametrize("text", ["", "8080", ":1", "127.0.0.1:x", "127.0.0.1:70000"])
def test_an_address_that_is_none_is_refused(text: str):
    with pytest.raises(ConfigError, match="HOST:PORT"):
        Address.parse(text)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"ana": 5}', '{"ana": "sha256:1"}', '{"a b": "' + token_hash("x") + '"}']
)
def test_a_clients_file_that_is_none_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "clients.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="--clients"):
        read_clients(path)
    with pytest.raises(ConfigError, match="--clients"):
        read_clients(tmp_path / "nowhere")
    path.write_text(json.dumps({"ana": token_hash("x"), "bruno": token_hash("x")}))
    with pytest.raises(ConfigError, match="of its own"):
        read_clients(path)


async def test_an_address_in_use_is_told(make_place: Callable[..., Place]):
    place = make_place()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with assembled(place.options()) as server:
            with pytest.raises(ConfigError, match="cannot be bound"):
                await serve_http(server, Address("127.0.0.1", taken.getsockname()[1]), None, lambda _: None)


@ERAS
async def test_a_server_behind_a_url_is_guarded_alike(make_place: Callable[..., Place], mode: str):
    """The guarded server is another proxy over HTTP, which speaks both eras."""
    inner = await make_place().pin()
    outer = Place(inner.folder / "outer", inner.gate, "raw")
    async with serving(inner.options()) as url:
        target = replace(outer.target, name="raw", command=(), url=url)
        # of the inner proxy's tools the catalog knows none under the outer one's name, so nothing runs
        async with outer.client(mode, options=outer.options(target=target)) as connected:
            assert (await connected.list_tools()).tools == []
            async with client(url, "auto") as direct:
                offered = {
                    tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                    for tool in (await direct.list_tools()).tools
                }
        save_pins(outer.state, Pins(target.identity, offered))
        assert load_pins(outer.state).tools.keys() == offered.keys()
        async with outer.client(mode, options=outer.options(target=target)) as connected:
            assert "mcp_raw_mcp_test_look" in {tool.name for tool in (await connected.list_tools()).tools}
            told = await connected.call_tool("mcp_raw_mcp_test_look", {})
    assert "The catalog does not know this tool" in texts(told)
    assert inner.effects == []
