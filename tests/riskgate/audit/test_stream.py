"""riskgate audit stream: every entry arrives at least once, whatever dies, and none contains an argument."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog
from phylactery_riskgate.cli import app
from phylactery_riskgate.cli.audit import stream as audit_stream
from typer.testing import CliRunner, Result


@pytest.fixture
async def served(make_gate, call, monkeypatch):
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    gate = await make_gate()
    monkeypatch.setenv("RISKGATE_TARGET", f"127.0.0.1:{gate.server.port}")
    monkeypatch.setenv("RISKGATE_TOKEN", "token-of-aldo")
    for number in range(5):
        await gate.person("ana").evaluate(call("read_file", f'{{"path":"sesame-{number}"}}', f"c{number}"))
    await gate.person("ben").evaluate(run="r2")
    yield gate
    structlog.reset_defaults()


class Siem:
    """An endpoint that notes what it takes; ``answer`` says with which status each request is answered."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[int], int] = lambda _: 200
        siem = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                siem.headers.append(dict(self.headers))
                status = siem.answer(len(siem.headers))
                if status == 200:
                    siem.taken += [json.loads(line) for line in body.splitlines()]
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/in"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def siem(monkeypatch) -> Iterator[Siem]:
    monkeypatch.setattr(audit_stream, "_FIRST_PAUSE", 0.01)
    one = Siem()
    yield one
    one.close()


def started(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=os.environ, stderr=subprocess.DEVNULL)


async def run(*arguments: object) -> Result:
    words = ["audit", "stream", *map(str, arguments)]
    return await asyncio.to_thread(CliRunner().invoke, app, words)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def places(entries: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(one["log"], one["index"]) for one in entries]


async def test_a_file_gets_every_entry_and_the_next_run_goes_on_behind_it(served, call, tmp_path):
    out, cursor = tmp_path / "siem.jsonl", tmp_path / "cursor.json"
    first = await run("--to", out, "--cursor", cursor, "--count", 6)
    assert (first.exit_code, places(lines(out))) == (0, [("riskgate", index) for index in range(6)])
    await served.person("ana").evaluate(call("echo", '{"text":"sesame"}', "new"))
    second = await run("--to", out, "--cursor", cursor, "--count", 1)
    assert (second.exit_code, places(lines(out))[6:]) == (0, [("riskgate", 6)])
    assert lines(out)[6]["record"]["tool"] == "echo"
    assert "sesame" not in out.read_text()
    assert (out.stat().st_mode & 0o777, json.loads(cursor.read_text())["positions"]) == (0o600, {"riskgate": 7})


async def test_what_was_delivered_without_the_cursor_comes_again_and_half_a_line_goes(served, tmp_path):
    out, cursor = tmp_path / "siem.jsonl", tmp_path / "cursor.json"
    assert (await run("--to", out, "--cursor", cursor, "--count", 2)).exit_code == 0
    kept = cursor.read_text()
    assert (await run("--to", out, "--cursor", cursor, "--count", 2)).exit_code == 0
    cursor.write_text(kept)
    with out.open("a") as file:
        file.write('{"log":"riskgate","ind')
    assert (await run("--to", out, "--cursor", cursor, "--count", 4)).exit_code == 0
    assert [index for _, index in places(lines(out))] == [0, 1, 2, 3, 2, 3, 4, 5]


async def test_from_now_begins_with_what_comes_and_misses_nothing_afterwards(served, call, tmp_path):
    out, cursor = tmp_path / "siem.jsonl", tmp_path / "cursor.json"
    following = asyncio.create_task(run("--to", out, "--cursor", cursor, "--from-now", "--count", 1))
    while not cursor.exists():  # noqa: ASYNC110 - the file is made by the thread of the command
        await asyncio.sleep(0.01)
    await served.person("ana").evaluate(call("echo", '{"text":"a"}', "new"))
    assert (await following).exit_code == 0
    assert places(lines(out)) == [("riskgate", 6)]


async def test_an_endpoint_that_is_away_or_full_is_asked_again_until_it_takes_them(served, siem, tmp_path):
    siem.answer = lambda number: {1: 503, 2: 429}.get(number, 200)
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Splunk sesame\n\nX-Source: riskgate\n")
    cursor = tmp_path / "cursor.json"
    result = await run("--to", siem.url, "--cursor", cursor, "--header-file", headers, "--count", 6)
    assert (result.exit_code, [index for _, index in places(siem.taken)]) == (0, list(range(6)))
    assert result.stderr.count("again in") >= 2
    assert "sesame" not in result.output
    assert {one["Authorization"] for one in siem.headers} == {"Splunk sesame"}
    assert {one["Content-Type"] for one in siem.headers} == {"application/x-ndjson"}


@pytest.mark.parametrize("status", [400, 401, 404, 302, 307])
async def test_an_endpoint_that_refuses_ends_the_run_and_the_cursor_stays(served, siem, tmp_path, status):
    siem.answer = lambda _: status
    result = await run("--to", siem.url, "--cursor", tmp_path / "cursor.json", "--count", 6)
    assert (result.exit_code, len(siem.headers)) == (2, 1)
    assert f"it returned {status}" in result.stderr
    assert not (tmp_path / "cursor.json").exists()


@pytest.mark.slow
async def test_a_killed_run_loses_nothing(served, siem, tmp_path):
    reached, go_on = threading.Event(), threading.Event()

    def answer(number: int) -> int:
        if number == 1:
            reached.set()
            go_on.wait(60)
        return 200

    siem.answer = answer
    command = [sys.executable, "-m", "phylactery_riskgate.cli", "audit", "stream", "--to", siem.url]
    process = await asyncio.to_thread(started, *command, "--cursor", str(tmp_path / "cursor.json"))
    assert await asyncio.to_thread(reached.wait, 60)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    go_on.set()
    result = await run("--to", siem.url, "--cursor", tmp_path / "cursor.json", "--count", 6)
    assert (result.exit_code, {index for _, index in places(siem.taken)}) == (0, set(range(6)))
    assert [index for _, index in places(siem.taken)][-6:] == list(range(6))


async def test_ocsf_events_say_who_did_what_and_what_was_decided(served, tmp_path):
    out = tmp_path / "siem.jsonl"
    result = await run("--to", out, "--cursor", tmp_path / "c", "--format", "ocsf", "--kind", "decision", "--count", 6)
    assert result.exit_code == 0, result.output
    read, asked = lines(out)[0], lines(out)[5]
    assert (read["class_uid"], read["type_uid"], read["category_uid"]) == (6003, 600301, 6)
    assert (read["metadata"]["uid"], read["metadata"]["version"]) == ("riskgate:0", "1.3.0")
    assert (read["action_id"], read["disposition_id"], read["status_id"]) == (1, 1, 1)
    assert (asked["action_id"], asked["disposition_id"], asked["disposition"]) == (2, 99, "AUTH_REQUIRED")
    assert (asked["actor"]["user"], asked["api"]["operation"]) == (
        {"name": "ben", "org": {"uid": "acme"}},
        "write_file",
    )
    assert asked["api"]["request"]["uid"] == asked["unmapped"]["record"]["decision_id"]
    assert (asked["policy"]["uid"], abs(asked["time"] - asked["unmapped"]["record"]["time_us"] // 1000)) == (
        asked["unmapped"]["record"]["policy_ids"][0],
        0,
    )
    assert "sesame" not in out.read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--to", "/no/such/folder/x"], "name a file in a folder that exists"),
        (["--to", "http://siem.example.org/in"], "must use https for remote hosts"),
        (["--to", "https://ana:pw@siem.example.org/in"], "without credentials"),
        (["--to", "-", "--header-file", "x"], "--header-file is for a URL"),
    ],
)
async def test_what_cannot_be_delivered_to_is_said_before_anything_is_read(tmp_path, options, told):
    result = await run(*options, "--cursor", tmp_path / "c")
    assert (result.exit_code, told in result.stderr) == (2, True)


async def test_a_cursor_belongs_to_one_run_and_a_broken_one_is_told(served, siem, tmp_path):
    cursor = tmp_path / "cursor.json"
    with audit_stream._Cursor.opened(cursor):
        result = await run("--to", siem.url, "--cursor", cursor)
    assert (result.exit_code, "another `riskgate audit stream`" in result.stderr) == (2, True)
    for broken in ("", "[]", '{"positions": {"riskgate": -1}}', '{"positions": 1}'):
        cursor.write_text(broken)
        result = await run("--to", siem.url, "--cursor", cursor)
        assert (result.exit_code, "not a valid cursor" in result.stderr) == (2, True), broken
    assert not siem.taken


async def test_a_full_disk_under_the_file_leaves_whole_lines_and_is_tried_again(served, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_stream, "_FIRST_PAUSE", 0.01)
    written, failed = audit_stream._write_all, []

    def short(file: Any, data: bytes) -> None:
        if len(failed) < 2:
            failed.append(file.write(data[:40]))
            raise OSError(28, "No space left on device")
        written(file, data)

    monkeypatch.setattr(audit_stream, "_write_all", short)
    out = tmp_path / "siem.jsonl"
    result = await run("--to", out, "--cursor", tmp_path / "c", "--count", 6)
    assert (result.exit_code, [index for _, index in places(lines(out))]) == (0, list(range(6)))
    assert (len(failed), "No space left on device" in result.stderr) == (2, True)
