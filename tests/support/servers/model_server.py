"""A scripted OpenAI-compatible endpoint on loopback that records its requests.

    with model_server() as server:
        server.script(calls(("write_file", {"path": "a.txt", "content": "hi"})), says("Saved."))
        # the agent runs with model_base_url=server.url, model="test-model"
        assert len(server.asked) == 2

Each request gets the next answer of the script; after its end, ``server.otherwise`` is called with the request. An
answer is streamed if the request says so.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

Call = tuple[str, Mapping[str, Any] | str] | tuple[str, Mapping[str, Any] | str, str]
"""A tool's name, its arguments (an object, or text as written by a model), and an id; "" omits the id."""


_INTERPRETING = "You read one message that a person wrote to an assistant"
"""The beginning of an interpretation prompt."""


@dataclass(frozen=True)
class Asked:
    """A received request."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        return list(self.body["messages"])

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def is_for_interpretation(self) -> bool:
        return str(self.messages[0]["content"]).startswith(_INTERPRETING)

    @property
    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", ())]


class Exchange:
    """A request being answered."""

    def __init__(self, handler: BaseHTTPRequestHandler, asked: Asked, closing: threading.Event) -> None:
        self._handler, self.asked, self._closing = handler, asked, closing

    def whole(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a complete response."""
        self._handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self._handler.send_header(name, value)
        self._handler.send_header("Content-Length", str(len(body)))
        self._handler.end_headers()
        self._handler.wfile.write(body)

    def begin(self, content_type: str = "text/event-stream") -> None:
        """Begin a stream."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", content_type)
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def send(self, data: bytes) -> None:
        """Send bytes of a stream."""
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self._handler.wfile.flush()

    def event(self, data: Mapping[str, Any] | str) -> None:
        """Send one event."""
        text = data if isinstance(data, str) else json.dumps(data)
        self.send(f"data: {text}\n\n".encode())

    def end(self) -> None:
        """End a stream in the way HTTP defines."""
        self._handler.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection abruptly."""
        self._handler.close_connection = True
        with contextlib.suppress(OSError):
            self._handler.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait; return True if the server is closing."""
        return self._closing.wait(seconds)


Answer = Callable[[Exchange], None]


def _usage(usage: tuple[int, int] | None) -> dict[str, Any]:
    if usage is None:
        return {}
    return {"usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}}


def _calls(calls: Sequence[Call]) -> list[dict[str, Any]]:
    made = []
    for index, call in enumerate(calls):
        arguments = call[1] if isinstance(call[1], str) else json.dumps(call[1])
        one = {"type": "function", "function": {"name": call[0], "arguments": arguments}}
        own = call[2] if len(call) == 3 else f"call_{index}"
        made.append({"id": own, **one} if own else one)
    return made


def calls(
    *calls: Call,
    text: str = "",
    usage: tuple[int, int] | None = (11, 7),
    chunk: int = 5,
    finish: str = "",
    pause: float = 0.0,
) -> Answer:
    """Return tool calls, after optional text; ``chunk`` is the number of characters per delta."""
    reason = finish or ("tool_calls" if calls else "stop")

    def whole(exchange: Exchange) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = _calls(calls)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": exchange.asked.body["model"]}
        exchange.whole(200, json.dumps({**answer, "choices": [choice], **_usage(usage)}).encode())

    def streamed(exchange: Exchange) -> None:
        exchange.begin()
        for delta in _deltas(text, calls, chunk):
            exchange.event(chunk_of(exchange, delta))
            if pause:
                exchange.wait(pause)
        exchange.event(chunk_of(exchange, {}, finish=reason))
        if usage is not None and (exchange.asked.body.get("stream_options") or {}).get("include_usage"):
            exchange.event({**chunk_of(exchange, {}), "choices": [], **_usage(usage)})
        exchange.event("[DONE]")
        exchange.end()

    return lambda exchange: streamed(exchange) if exchange.asked.streamed else whole(exchange)


def says(text: str, **how: Any) -> Answer:
    """Return text only."""
    return calls(text=text, **how)


def _deltas(text: str, calls: Sequence[Call], size: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for start in range(0, len(text), size):
        yield {"content": text[start : start + size]}
    for index, made in enumerate(_calls(calls)):
        arguments = made["function"]["arguments"]
        first = {**made, "function": {**made["function"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **first}]}
        for start in range(0, len(arguments), size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[start : start + size]}}]}


def chunk_of(exchange: Exchange, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    """Return one event of a streamed completion."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": exchange.asked.body["model"],
        "choices": [choice],
    }


def fails(status: int, body: str = '{"error": {"message": "no", "code": "broken"}}', **headers: str) -> Answer:
    """Return an HTTP error; header names are written with underscores: retry_after="2"."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.whole(status, body.encode(), sent)


def raw(body: str | bytes, content_type: str = "application/json") -> Answer:
    """Return 200 with this body, whatever the request."""
    data = body.encode() if isinstance(body, str) else body
    return lambda exchange: exchange.whole(200, data, {"Content-Type": content_type})


def events(*data: Mapping[str, Any] | str, cut: bool = False) -> Answer:
    """Stream exactly these events, then end, or close the connection in the middle."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for one in data:
            exchange.event(one)
        exchange.cut() if cut else exchange.end()

    return answer


def malformed() -> Answer:
    """Return invalid JSON."""

    def answer(exchange: Exchange) -> None:
        if not exchange.asked.streamed:
            exchange.whole(200, b'{"choices": [')
            return
        exchange.begin()
        exchange.event('{"choices": [')
        exchange.end()

    return answer


def half(text: str = "I was about to", *, cut: bool = True) -> Answer:
    """Stream text and stop before its end: the connection closes, or the stream ends early."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(chunk_of(exchange, {"content": text}))
        exchange.cut() if cut else exchange.end()

    return answer


def hangs(after: str | None = None) -> Answer:
    """Return nothing, or nothing more after this text, until the server closes."""

    def answer(exchange: Exchange) -> None:
        if after is not None:
            exchange.begin()
            exchange.event(chunk_of(exchange, {"content": after}))
        exchange.wait()
        exchange.cut()

    return answer


def endless(text: str = "and so on ") -> Answer:
    """Stream text endlessly."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        while not exchange.wait(0):
            exchange.event(chunk_of(exchange, {"content": text * 50}))
        exchange.cut()

    return answer


def redirects(to: str, status: int = 307) -> Answer:
    """Redirect the client."""
    return lambda exchange: exchange.whole(status, b"", {"Location": to})


def huge(megabytes: int = 64) -> Answer:
    """Return a body of this size."""

    def answer(exchange: Exchange) -> None:
        exchange.begin("application/json")
        exchange.send(b'{"choices": [{"message": {"content": "')
        for _ in range(megabytes * 16):
            exchange.send(b"x" * 65_536)
        exchange.send(b'"}}]}')
        exchange.end()

    return answer


class ModelServer:
    """The running endpoint."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        """All requests, oldest first."""
        self.otherwise: Callable[[Asked], Answer] = lambda _asked: says("ok")
        self.interpretations: list[Asked] = []
        """All interpretation requests, oldest first: separate, because they arrive concurrently with the others."""
        self.interpret: Callable[[Asked], Answer] = lambda _asked: says('{"asks": []}')
        self._script: deque[Answer] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the base URL for the agent's setting."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *answers: Answer) -> None:
        """Add answers for the next requests, one each."""
        with self._changed:
            self._script.extend(answers)

    def take(self, asked: Asked) -> Answer:
        """Record a request and return its answer."""
        with self._changed:
            if asked.is_for_interpretation:
                self.interpretations.append(asked)
                return self.interpret(asked)
            self.asked.append(asked)
            answer = self._script.popleft() if self._script else self.otherwise(asked)
            self._changed.notify_all()
            return answer

    def wait_until_asked(self, times: int = 1, seconds: float = 60.0) -> None:
        """Block until this many requests have arrived; call it in a thread."""
        with self._changed:
            end = time.monotonic() + seconds
            while len(self.asked) < times:
                left = end - time.monotonic()
                assert left > 0, f"{len(self.asked)} of {times} requests came"
                self._changed.wait(left)

    def close(self) -> None:
        """End every response and the server."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def closing(self) -> threading.Event:
        """The event set when the server ends."""
        return self._closing


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], owner: ModelServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients that hang up are the subject of many tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version: ClassVar[str] = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        exchange = Exchange(self, asked, self.server.owner.closing)
        self.server.owner.take(asked)(exchange)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing."""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Run an endpoint during the block."""
    server = ModelServer()
    try:
        yield server
    finally:
        server.close()
