"""A Graph API server on loopback, with phones that write to a business and read what it sends.

It checks what the Graph API checks (token, lengths, identifiers, the 24-hour window), delivers signed webhooks, and
fails as it is told to.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from phylactery_gateway.http.server import HttpServer
from phylactery_gateway.loopback.multipart import Part, form_of

NUMBER: Final = "1122334455667"
_OK, _TRIES, _AGAIN_SECONDS = 200, 200, 0.2
_BODY, _TITLE, _ROW, _BUTTONS, _ROWS, _TEXT = 1_024, 20, 24, 3, 10, 4_096


class Fault(NamedTuple):
    """A response instead of what was asked for."""

    status: int
    code: int = 0
    delivered: bool = False
    """Whether the message is delivered all the same, so that only its response is lost."""
    seconds: float = 0.0
    """How long to wait before the response."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message the business sent."""

    wamid: str
    receiver: str
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The text a person reads."""
        interactive = self.body.get("interactive")
        if interactive is not None:
            return str(interactive["body"]["text"])
        if "template" in self.body:
            return f"[{self.body['template']['name']}]"
        if self.media_id:
            return f"[{self.body['type']} {self.body[self.body['type']].get('filename', '')}]"
        return str(self.body["text"]["body"])

    @property
    def media_id(self) -> str:
        """The media id of a file, '' for another message."""
        return str(self.body.get(self.body.get("type", ""), {}).get("id", ""))

    @property
    def choices(self) -> Mapping[str, str]:
        """The ids of the buttons or rows, by title."""
        action = self.body.get("interactive", {}).get("action", {})
        replies = [button["reply"] for button in action.get("buttons", ())]
        rows = [row for section in action.get("sections", ()) for row in section["rows"]]
        return {one["title"]: one["id"] for one in (*replies, *rows)}


@dataclass(slots=True)
class GraphServer:
    """The server. ``webhook`` is the gateway's address, known once that runs."""

    app_secret: str
    token: str
    webhook: str = ""
    number: str = NUMBER
    sent: list[Sent] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    media: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    uploads: dict[str, Part] = field(default_factory=dict)
    """The files of the business, by their media id."""
    upload_faults: deque[Fault] = field(default_factory=deque)
    statuses: bool = True
    """Whether the business hears that its messages were delivered."""
    arrived: Callable[[Sent], None] = lambda _: None
    _http: HttpServer | None = None
    _numbers: int = 0
    _client: httpx.AsyncClient | None = None
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    async def start(self) -> None:
        """Listen on a free port."""
        routes = [
            Route("/{version}/{number}/messages", self._messages, methods=["POST"]),
            Route("/{version}/{number}/media", self._upload, methods=["POST"]),
            Route("/files/{name}", self._file, methods=["GET"]),
            Route("/{version}/{media}", self._media, methods=["GET"]),
        ]
        self._http = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, grace=1, variable="another port")
        self._client = httpx.AsyncClient(timeout=30)
        await self._http.start()

    async def stop(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
        if self._http is not None:
            await self._http.stop()

    @property
    def base(self) -> str:
        """The server's address without a version."""
        assert self._http is not None, "start() makes it"
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def url(self) -> str:
        """The address the gateway calls."""
        return f"{self.base}/v26.0"

    def sign(self, body: bytes) -> str:
        """Return the signature of a body."""
        return "sha256=" + hmac.digest(self.app_secret.encode(), body, hashlib.sha256).hex()

    async def post(self, payload: Any, *, signature: str | None = None) -> int:
        """Deliver a webhook and return the status of the response."""
        assert self._client is not None, "start() makes it"
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        headers = {"x-hub-signature-256": self.sign(body) if signature is None else signature}
        return (await self._client.post(self.webhook, content=body, headers=headers)).status_code

    def wamid(self) -> str:
        """Return a new id of a message."""
        self._numbers += 1
        return f"wamid.loopback{self._numbers:06d}"

    def change(self, value: Mapping[str, Any], *, name: str = "messages") -> dict[str, Any]:
        """Return a webhook with one change."""
        metadata = {"display_phone_number": "15550001111", "phone_number_id": self.number}
        whole = {"messaging_product": "whatsapp", "metadata": metadata, **value}
        return {
            "object": "whatsapp_business_account",
            "entry": [{"id": "1", "changes": [{"field": name, "value": whole}]}],
        }

    async def _messages(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _refusal(401, 190)
        body = await request.json()
        if "typing_indicator" in body:
            self.typed.append(body["message_id"])
            return JSONResponse({"success": True})
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and not fault.delivered:
            await asyncio.sleep(fault.seconds)
            return _refusal(fault.status, fault.code)
        receiver = body.get("recipient") or body.get("to")
        if not receiver or problem(body) or not self._has_media(body):
            return _refusal(400, 131009)
        sent = Sent(self.wamid(), receiver, body)
        self.sent.append(sent)
        self.arrived(sent)
        if self.statuses:
            self._aside(self._deliver(sent))
        if fault is not None:
            await asyncio.sleep(fault.seconds)
            return _refusal(fault.status, fault.code)
        return JSONResponse({"messaging_product": "whatsapp", "messages": [{"id": sent.wamid}]})

    def _has_media(self, body: Mapping[str, Any]) -> bool:
        """Return True unless the message names a file that was never uploaded."""
        content = body.get(body.get("type", "text"))
        return not (isinstance(content, Mapping) and "id" in content) or content["id"] in self.uploads

    def _aside(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, sent: Sent) -> None:
        for status in ("sent", "delivered", "read"):
            for _ in range(_TRIES):  # as Meta does, for a shorter time
                try:
                    if await self.post(self.status(sent, status)) == _OK:
                        break
                except httpx.HTTPError:
                    pass
                await asyncio.sleep(_AGAIN_SECONDS)

    def status(self, sent: Sent, status: str, code: int = 0) -> dict[str, Any]:
        """Return the webhook of a status of a message."""
        told: dict[str, Any] = {
            "id": sent.wamid,
            "status": status,
            "timestamp": str(int(time.time())),
            "recipient_user_id": sent.receiver,
            "biz_opaque_callback_data": sent.body.get("biz_opaque_callback_data", ""),
        }
        if code:
            told["errors"] = [{"code": code, "title": "a fault of the test"}]
        return self.change({"statuses": [told]})

    async def _media(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _refusal(401, 190)
        found = self.media.get(request.path_params["media"])
        return _refusal(404, 131052) if found is None else JSONResponse(dict(found))

    async def _upload(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _refusal(401, 190)
        form = await form_of(request)
        fault = self.upload_faults.popleft() if self.upload_faults else None
        if fault is not None and not fault.delivered:
            return _refusal(fault.status, fault.code)
        file = form["file"]
        if form["messaging_product"].content != b"whatsapp" or form["type"].content.decode() != file.mime:
            return _refusal(400, 100)
        self._numbers += 1
        reference = f"media-{self._numbers}"
        self.uploads[reference] = file
        return JSONResponse({"id": reference}) if fault is None else _refusal(fault.status, fault.code)

    async def _file(self, request: Request) -> Response:
        found = self.files.get(request.path_params["name"])
        return Response(status_code=404) if found is None else Response(found[1], media_type=found[0])


@dataclass(slots=True)
class Phone:
    """A person with WhatsApp."""

    server: GraphServer
    bsuid: str = "ES.13491208655302741918"
    phone: str = ""
    """The number, empty for a person whose number the business does not see."""

    @property
    def inbox(self) -> list[Sent]:
        """What the business sent to this person."""
        return [one for one in self.server.sent if one.receiver in (self.bsuid, self.phone) and one.receiver]

    async def say(self, text: str, **more: Any) -> str:
        """Write a message and return its id."""
        return await self.send({"type": "text", "text": {"body": text}}, **more)

    async def press(self, sent: Sent, title: str, **more: Any) -> str:
        """Press a button or choose a row of a message."""
        kind = "list_reply" if sent.body["interactive"]["type"] == "list" else "button_reply"
        reply = {"type": kind, kind: {"id": sent.choices[title], "title": title}}
        return await self.send({"type": "interactive", "interactive": reply, "context": {"id": sent.wamid}}, **more)

    async def send(self, message: Mapping[str, Any], *, wamid: str = "", times: int = 1, at: float = 0.0) -> str:
        """Deliver a message, as often as told, and return its id. Raise AssertionError if it is not acknowledged."""
        wamid = wamid or self.server.wamid()
        payload = self.webhook(message, wamid=wamid, at=at)
        for _ in range(times):
            status = await self.server.post(payload)
            assert status == 200, f"the webhook was answered {status}"  # noqa: PLR2004
        return wamid

    def webhook(self, message: Mapping[str, Any], *, wamid: str, at: float = 0.0) -> dict[str, Any]:
        """Return the webhook of a message."""
        whole = {"id": wamid, "timestamp": str(int(at or time.time())), **message}
        contact: dict[str, Any] = {"profile": {"name": "Ana"}}
        if self.phone:
            whole["from"] = contact["wa_id"] = self.phone
        if self.bsuid:
            whole["from_user_id"] = contact["user_id"] = self.bsuid
        return self.server.change({"contacts": [contact], "messages": [whole]})


def problem(body: Mapping[str, Any]) -> str:
    """Return what the Graph API would object to in a message, '' if nothing."""
    if "interactive" not in body:
        return "text" if "text" in body and not 0 < len(body["text"]["body"]) <= _TEXT else ""
    interactive = body["interactive"]
    if not 0 < len(interactive["body"]["text"]) <= _BODY:
        return "body"
    action = interactive["action"]
    if interactive["type"] == "button":
        titles = [button["reply"]["title"] for button in action["buttons"]]
        most, longest = _BUTTONS, _TITLE
    else:
        titles = [row["title"] for section in action["sections"] for row in section["rows"]]
        most, longest = _ROWS, _ROW
        if not 0 < len(action["button"]) <= _TITLE:
            return "button"
    fine = 0 < len(titles) <= most and all(0 < len(title) <= longest for title in titles)
    return "" if fine and len(set(titles)) == len(titles) else "titles"


def _refusal(status: int, code: int) -> Response:
    return JSONResponse({"error": {"message": "refused", "code": code}}, status_code=status)
