"""An HTTP server on loopback that takes notices, and answers as a test says."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Taken:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def type(self) -> str:
        return str(self.json["type"])

    def signed_by(self, secret: str) -> bool:
        """Return True if one of the signatures is that of a secret, as Standard Webhooks computes it."""
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
        return expected in self.headers["webhook-signature"].split(" ")


@dataclass
class SinkServer:
    """The server: what arrived, and what it answers next; nothing more to answer is 200."""

    port: int = 0
    taken: list[Taken] = field(default_factory=list)
    answers: list[int | Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)
    always: int = 200
    arrived: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/token-in-the-path"

    @property
    def types(self) -> list[str]:
        return [one.type for one in self.taken]

    def await_count(self, count: int, seconds: float = 30) -> list[Taken]:
        """Wait until so many requests have arrived, and return them."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.taken) >= count, seconds), f"{len(self.taken)} of {count}"
            return list(self.taken)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self.arrived:
            answer = self.answers.pop(0) if self.answers else self.always
            self.taken.append(Taken(request.path, headers, body))
            self.arrived.notify_all()
        if callable(answer):
            answer(request)
            return
        request.send_response(answer)
        request.end_headers()


@contextmanager
def sink_server(tls: ssl.SSLContext | None = None) -> Iterator[SinkServer]:
    """Serve on a free port of loopback during the block."""
    sink = SinkServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sink.handle(self)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client that goes away is part of the tests."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        sink.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield sink
        finally:
            server.shutdown()
            thread.join()


def slowly(seconds: float) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer a byte of a header at a time, for so long."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            request.wfile.write(b"a")
            request.wfile.flush()
            time.sleep(0.02)

    return answer


def redirect(to: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with a redirect."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(307)
        request.send_header("location", to)
        request.end_headers()

    return answer
