"""Hostile and broken MCP servers: bounded, killed with their children, and never logged verbatim."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.tools.mcp.config import McpConfigError, ServerConfig, ServerFaultError
from phylactery_agent.tools.mcp.listing import list_tools
from phylactery_agent.tools.mcp.session import open_session
from phylactery_agent.tools.mcp.url import MAX_STREAMS, STREAMS_PER_SECOND

from tests.support.servers.mcp import INTERPRETER, forking_server, processes_of

NO_METHOD = {"code": -32601, "message": "no such method"}
ROOT = Path(__file__).resolve().parents[3]


def command(folder: Path, *faults: str, program: tuple[str, ...] = (), **more: Any) -> ServerConfig:
    run = [*(program or forking_server(folder)), "stdio", str(folder), *faults]
    return ServerConfig(**{"command": run, "env": ["PYTHONPATH"], "cwd": ROOT, "start_seconds": 60, **more})


async def test_every_page_of_the_list_is_read(tmp_path: Path) -> None:
    assert {"note", "look", "huge", "environment"} <= set(await list_tools(command(tmp_path)))


async def test_only_the_tools_that_are_wanted_are_taken(tmp_path: Path) -> None:
    assert set(await list_tools(command(tmp_path, only=["look"]))) == {"look"}


async def test_what_is_printed_and_is_no_message_is_passed_over(tmp_path: Path) -> None:
    assert "note" in await list_tools(command(tmp_path, "garbage"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "why", "options"),
    [
        ("flood", "McpError|MCPError|ended", {}),
        ("line", "McpError|MCPError|ended", {}),
        ("silent", "did not answer within 3 seconds", {"start_seconds": 3}),
        ("endless", "more than 200 tools", {}),
        ("circle", "goes in a circle", {}),
        ("twice", "names a tool twice", {}),
    ],
)
async def test_a_server_that_says_too_much_or_nothing_is_given_up_and_ended(
    tmp_path: Path, fault: str, why: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ServerFaultError, match=why):
        await list_tools(command(tmp_path, fault, program=INTERPRETER, **options))
    assert processes_of(tmp_path) == []
    assert "noise" not in caplog.text
    assert "xxxx" not in caplog.text


async def test_the_name_a_server_gives_its_tool_stands_in_no_fault_of_it(tmp_path: Path) -> None:
    with pytest.raises(
        ServerFaultError, match=r"its tool number 9 cannot be kept: its definition has \d+ bytes"
    ) as told:
        await list_tools(command(tmp_path, "swollen"))
    assert "all is well" not in str(told.value)


async def test_a_command_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServerFaultError, match="there is no command 'no-such-command'"):
        await list_tools(ServerConfig(command=["no-such-command"]))
    with pytest.raises(ServerFaultError, match="cannot be started"):
        await list_tools(command(tmp_path, cwd=tmp_path / "nowhere"))


async def test_the_agents_environment_and_what_a_server_writes_aside_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_RISKGATE_TOKEN", "a-token")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    secret = tmp_path / "secret"
    secret.write_text("sk-1\n")
    aside = tmp_path / "stderr"
    config = command(tmp_path, program=INTERPRETER, env_files={"SERVICE_KEY": secret}, stderr=aside)
    async with open_session(config, lambda: None) as session:
        result = await session.call("environment", {}, "ek_1")
    names = result.content[0].text.split("\n")
    assert "SERVICE_KEY" in names
    assert not [name for name in names if name.startswith("AGENT_") or name == "OPENAI_API_KEY"]
    assert "stderr secret" in aside.read_text()
    assert aside.stat().st_mode & 0o777 == 0o600
    said = capfd.readouterr()
    assert "stderr secret" not in said.out + said.err


@pytest.mark.slow
async def test_a_call_that_is_given_up_tells_the_server_and_the_next_one_works(tmp_path: Path) -> None:
    (tmp_path / "hold").write_text("")
    async with open_session(command(tmp_path), lambda: None) as session:
        given_up = asyncio.create_task(session.call("note", {"text": "a"}, "ek_1"))
        while not (tmp_path / "held").exists():  # noqa: ASYNC110 - the file is another process's
            await asyncio.sleep(0.01)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        (tmp_path / "hold").unlink()
        assert (await session.call("note", {"text": "b"}, "ek_2")).content[0].text == "noted b under ek_"
    assert (tmp_path / "effects").read_text().splitlines() == ["a", "b"]


async def test_the_sdk_keeps_no_span_and_no_log_of_what_a_server_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from phylactery_chassis.telemetry.spans import LightProvider

    kept = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, LightProvider):
        provider = LightProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    async with open_session(command(tmp_path), lambda: None) as session:
        await session.tools()
        with contextlib.suppress(Exception):
            await session.call("no_such_tool_with_a_secret", {}, "ek_1")
    assert [span.name for span in kept.get_finished_spans() if "secret" in str(span.to_json())] == []
    assert [span.name for span in kept.get_finished_spans() if span.name.startswith(("tools/", "initialize"))] == []
    assert "no_such_tool_with_a_secret" not in caplog.text


# ---- by URL ----


@contextlib.asynccontextmanager
async def answering(head: str, body: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve one answer to everything on loopback; return the URL, and the requests that came."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", asked


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("200 OK\r\nContent-Type: application/json", b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 9_000_000),
        ("200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip", gzip.compress(b" " * 50_000_000)),
        ("200 OK\r\nContent-Type: text/event-stream", b"event: message\r\ndata: " + b"x" * 9_000_000 + b"\r\n\r\n"),
        ("200 OK\r\nContent-Type: text/html", b"<html>welcome</html>"),
        ("500 Internal Server Error", b"secret trace"),
        ("401 Unauthorized", b""),
    ],
    ids=["large", "packed", "large event", "html", "500", "401"],
)
async def test_an_answer_that_is_none_or_too_large_ends_the_conversation(
    head: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with answering(head, body) as (url, _):
        with pytest.raises(ServerFaultError) as told:
            await list_tools(ServerConfig(url=url, start_seconds=20))
    assert "secret" not in str(told.value)
    assert "secret" not in caplog.text


async def _spun(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, streams: list[bytes]) -> None:
    """Serve a conversation whose stream of events ends as soon as it began, and say to begin it again at once."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            asked = json.loads(await reader.readexactly(int(length[1])) if length else b"{}") or {}
            kind, body = b"application/json", b""
            if head.startswith(b"GET"):
                streams.append(head)
                kind, body = b"text/event-stream", b"id: 1\nretry: 0\ndata:\n\n"
            elif "id" in asked:
                hello = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
                version = asked.get("params", {}).get("protocolVersion")
                known = {"initialize": {"protocolVersion": version, **hello}, "tools/list": {"tools": []}}
                answer = {"result": known[asked["method"]]} if asked["method"] in known else {"error": NO_METHOD}
                body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}).encode()
            status = b"200 OK" if body else b"202 Accepted"
            fields = b"Content-Type: %b\r\nMcp-Session-Id: s1\r\nContent-Length: %d" % (kind, len(body))
            writer.write(b"HTTP/1.1 %b\r\n%b\r\n\r\n%b" % (status, fields, body))
            await writer.drain()
    writer.close()


async def test_a_stream_of_events_that_ends_again_and_again_is_not_begun_for_ever() -> None:
    streams: list[bytes] = []
    server = await asyncio.start_server(lambda reader, writer: _spun(reader, writer, streams), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    loop = asyncio.get_running_loop()
    async with server:
        began = loop.time()
        async with open_session(ServerConfig(url=url, start_seconds=60), lambda: None) as session:
            async with asyncio.timeout(60):
                while len(streams) < MAX_STREAMS:
                    assert await session.tools() == {}
            for _ in range(300):
                assert await session.tools() == {}
            at_most = MAX_STREAMS + 1 + (loop.time() - began) * STREAMS_PER_SECOND
            assert len(streams) <= at_most
            assert not session.ended.is_set()


async def test_a_stream_that_says_nothing_without_end_is_given_up() -> None:
    async def drone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            while True:
                writer.write((b": " + b"x" * 65_000 + b"\n\n") * 4)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(drone, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        with pytest.raises(ServerFaultError) as told:
            await list_tools(ServerConfig(url=url, start_seconds=60))
    assert "did not answer" not in str(told.value)


async def test_a_header_goes_to_its_host_and_follows_no_redirect(tmp_path: Path) -> None:
    secret = tmp_path / "authorization"
    secret.write_text("Bearer sk-1\n")
    async with answering("200 OK\r\nContent-Type: application/json", b"{}") as (elsewhere, asked_elsewhere):
        away = elsewhere.replace("127.0.0.1", "localhost")
        async with answering(f"307 Temporary Redirect\r\nLocation: {away}", b"") as (url, asked):
            with pytest.raises(ServerFaultError):
                await list_tools(ServerConfig(url=url, header_files={"Authorization": secret}, start_seconds=20))
    assert b"Bearer sk-1" in asked[0]
    assert asked_elsewhere == []


async def test_a_secret_that_cannot_be_read_is_said_by_its_file_alone(tmp_path: Path) -> None:
    with pytest.raises(ServerFaultError, match="nowhere cannot be read"):
        await list_tools(ServerConfig(url="http://127.0.0.1:9/mcp", header_files={"A": tmp_path / "nowhere"}))
    odd = tmp_path / "odd"
    odd.write_text("sk-1\r\nX-Other: 1")
    with pytest.raises(ServerFaultError, match="more than one line") as told:
        await list_tools(ServerConfig(url="http://127.0.0.1:9/mcp", header_files={"A": odd}))
    assert "sk-1" not in str(told.value)
    with pytest.raises(McpConfigError):
        ServerConfig(command=["x"], env_files={"A": odd}).environment()
