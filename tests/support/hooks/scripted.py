"""A Messages API on loopback whose model makes given calls, one a turn, and then says that it is done."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class ScriptedModel:
    """Serves the script, and keeps what the host told the model of each call."""

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        self.results: list[tuple[bool, str]] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
                served.answer(self, body, calls)

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(
        self, handler: BaseHTTPRequestHandler, body: dict[str, Any], calls: Sequence[tuple[str, dict[str, Any]]]
    ) -> None:
        """Answer one request; those that offer no tools are the host's own."""
        results = [(bool(one.get("is_error")), json.dumps(one.get("content"))) for one in told(body)]
        block: dict[str, Any] = {"type": "text", "text": "Done."}
        if body.get("tools"):
            self.results = results
            if len(results) < len(calls):
                name, given = calls[len(results)]
                block = {"type": "tool_use", "id": f"toolu_script{len(results)}", "name": name, "input": given}
        events = list(stream(block, str(body.get("model", "scripted"))))
        data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


def told(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results of tools in a request."""
    for message in body.get("messages", []):
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part.get("type") == "tool_result":
                yield part


def stream(block: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer with one block."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    if block["type"] == "text":
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": block["text"]}}
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if block["type"] == "text" else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
