"""A Telegram Bot API server on loopback, with a person who writes to the bot."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from phylactery_gateway.http.server import HttpServer
from phylactery_gateway.loopback.multipart import Part, form_of


@dataclass(slots=True)
class BotServer:
    """The server of one bot. ``webhook`` is the gateway's address, known once that runs."""

    token: str
    secret: str
    webhook: str = ""
    sent: list[Mapping[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    documents: list[tuple[str, Part]] = field(default_factory=list)
    """The files of the business, each with the method that sent it."""
    files: dict[str, tuple[Mapping[str, Any], bytes]] = field(default_factory=dict)
    """The files of people, by their id: what getFile says of them, and their content."""
    lose_answers: int = 0
    """So many answers to files that were sent get lost."""
    faults: deque[tuple[int, Mapping[str, Any]]] = field(default_factory=deque)
    _http: HttpServer | None = None
    _client: httpx.AsyncClient | None = None
    _numbers: int = 0

    async def start(self) -> None:
        """Listen on a free port."""
        routes = [
            Route("/bot{token}/{method}", self._call, methods=["POST"]),
            Route("/file/bot{token}/{path:path}", self._file, methods=["GET"]),
        ]
        self._http = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, grace=1, variable="another port")
        self._client = httpx.AsyncClient(timeout=30)
        await self._http.start()

    async def stop(self) -> None:
        """End."""
        if self._client is not None:
            await self._client.aclose()
        if self._http is not None:
            await self._http.stop()

    @property
    def url(self) -> str:
        """The address the gateway calls."""
        assert self._http is not None, "start() makes it"
        return f"http://127.0.0.1:{self._http.port}"

    async def post(self, update: Mapping[str, Any], *, secret: str | None = None) -> int:
        """Deliver an update and return the status of the response."""
        assert self._client is not None, "start() makes it"
        headers = {"x-telegram-bot-api-secret-token": self.secret if secret is None else secret}
        return (await self._client.post(self.webhook, json=dict(update), headers=headers)).status_code

    async def say(self, text: str, *, chat: int = 1001) -> int:
        """Deliver a message of a person and return its status."""
        return await self.post({"update_id": self.number(), "message": self.message({"text": text}, chat=chat)})

    async def press(self, sent: Mapping[str, Any], title: str, *, chat: int = 1001) -> int:
        """Press a button of a message."""
        buttons = [button for row in sent["reply_markup"]["inline_keyboard"] for button in row]
        data = next(button["callback_data"] for button in buttons if button["text"] == title)
        message = self.message({"text": sent["text"]}, chat=chat)
        query = {"id": str(self.number()), "from": _person(chat), "data": data, "message": message}
        return await self.post({"update_id": self.number(), "callback_query": query})

    def message(self, content: Mapping[str, Any], *, chat: int = 1001) -> dict[str, Any]:
        """Return a message of a person."""
        where = {"id": chat, "type": "private"}
        return {"message_id": self.number(), "date": int(time.time()), "chat": where, "from": _person(chat), **content}

    def number(self) -> int:
        """Return a new number."""
        self._numbers += 1
        return self._numbers

    async def _call(self, request: Request) -> Response:
        if request.path_params["token"] != self.token:
            return JSONResponse({"ok": False, "error_code": 401}, status_code=401)
        method = request.path_params["method"]
        self.calls.append(method)
        if method in ("sendDocument", "sendPhoto"):
            return await self._document(method, request)
        body = await request.json()
        if method == "getFile":
            found = self.files.get(body["file_id"])
            answer = {"ok": True, "result": dict(found[0])} if found else {"ok": False, "error_code": 400}
            return JSONResponse(answer, status_code=200 if found else 400)
        if method != "sendMessage":
            return JSONResponse({"ok": True, "result": True})
        if self.faults:
            status, parameters = self.faults.popleft()
            return JSONResponse({"ok": False, "error_code": status, "parameters": dict(parameters)}, status_code=status)
        self.sent.append(body)
        return JSONResponse({"ok": True, "result": {"message_id": self.number()}})

    async def _document(self, method: str, request: Request) -> Response:
        form = await form_of(request)
        if self.faults:
            status, parameters = self.faults.popleft()
            return JSONResponse({"ok": False, "error_code": status, "parameters": dict(parameters)}, status_code=status)
        self.documents.append((method, form["photo" if method == "sendPhoto" else "document"]))
        if self.lose_answers:
            self.lose_answers -= 1
            return JSONResponse({"ok": False, "error_code": 502}, status_code=502)
        return JSONResponse({"ok": True, "result": {"message_id": self.number()}})

    async def _file(self, request: Request) -> Response:
        named = request.path_params["path"]
        found = next((data for described, data in self.files.values() if described.get("file_path") == named), None)
        allowed = request.path_params["token"] == self.token
        return Response(found) if found is not None and allowed else Response(status_code=404)


def _person(chat: int) -> dict[str, Any]:
    return {"id": chat, "is_bot": False, "first_name": "Ana", "language_code": "es-ES"}
