"""Calls of the Telegram Bot API. The token is part of an address there, so no error repeats one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import httpx

from phylactery_gateway.channels.messages import File
from phylactery_gateway.channels.port import Action, MediaError, MediaUnavailableError, SendError

_OK, _BAD_REQUEST, _TOO_MANY, _SERVER_FAULTS = 200, 400, 429, 500
_WRONG_TOKEN: Final = (401, 404)
_PATH: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}(?:/[A-Za-z0-9_.-]{1,100}){0,5}")
"""A file_path of the Bot API: names, and nothing that changes the address."""
_LONGEST_PAUSE: Final = 3_600.0


class BotApi:
    """The Bot API with one bot's token."""

    def __init__(self, url: str, token: Callable[[], str], *, timeout: float, client: httpx.AsyncClient) -> None:
        self._url, self._token, self._timeout, self._client = url.rstrip("/"), token, timeout, client

    async def call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call a method and return its result. Raise SendError."""
        return await self._post(method, json=body)

    async def send(self, method: str, fields: dict[str, str], field: str, file: File, data: bytes) -> dict[str, Any]:
        """Call a method that takes a file in one of its fields, and return its result. Raise SendError."""
        return await self._post(method, data=fields, files={field: (file.name, data, file.mime)})

    async def fetch(self, file_id: str, limit: int) -> bytes:
        """Return a file of at most ``limit`` bytes. Raise MediaError.

        It comes from the Bot API's own address: a path that would lead anywhere else is refused. No redirect is
        followed, and nothing that is compressed is unpacked.
        """
        try:
            described = await self.call("getFile", {"file_id": file_id})
        except SendError as error:
            if error.action in (Action.RETRY, Action.UNCERTAIN, Action.SLOW_DOWN, Action.PAUSE):
                raise MediaUnavailableError("BOT_API") from None
            raise MediaError("NOT_FOUND") from None
        path, size = described.get("file_path"), described.get("file_size")
        if not isinstance(path, str) or _PATH.fullmatch(path) is None or ".." in path:
            raise MediaError("HOST_NOT_ALLOWED")
        if isinstance(size, int) and size > limit:
            raise MediaError("TOO_LARGE")
        try:
            data = await self._download(f"{self._url}/file/bot{self._token()}/{path}", limit)
        except httpx.HTTPError:
            raise MediaUnavailableError("BOT_API") from None
        if isinstance(size, int) and size != len(data):
            raise MediaUnavailableError("CUT")
        return data

    async def _download(self, address: str, limit: int) -> bytes:
        content = bytearray()
        headers = {"accept-encoding": "identity"}
        async with self._client.stream("GET", address, headers=headers, timeout=self._timeout) as response:
            if response.status_code != _OK:
                transient = response.status_code >= _SERVER_FAULTS
                raise MediaUnavailableError("DOWNLOAD") if transient else MediaError("DOWNLOAD")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise MediaError("COMPRESSED")
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > limit:
                    raise MediaError("TOO_LARGE")
        return bytes(content)

    async def _post(self, method: str, **content: Any) -> dict[str, Any]:
        address = f"{self._url}/bot{self._token()}/{method}"
        try:
            response = await self._client.post(address, timeout=self._timeout, **content)
        except httpx.ConnectError:
            raise SendError(Action.RETRY, "unreachable") from None
        except httpx.HTTPError as error:
            raise SendError(Action.UNCERTAIN, type(error).__name__) from None
        try:
            read = response.json()
        except ValueError:
            read = None
        if response.status_code == _OK and isinstance(read, dict) and read.get("ok"):
            result = read.get("result")
            return result if isinstance(result, dict) else {}
        raise _error(response.status_code, read)


def _error(status: int, read: Any) -> SendError:
    match status:
        case _ if status == _TOO_MANY:
            parameters = read.get("parameters") if isinstance(read, dict) else None
            pause = parameters.get("retry_after") if isinstance(parameters, dict) else None
            seconds = float(pause) if isinstance(pause, int) else 1.0
            return SendError(Action.SLOW_DOWN, "429", retry_after=min(seconds, _LONGEST_PAUSE))
        case _ if status in _WRONG_TOKEN:
            return SendError(Action.PAUSE, str(status), retry_after=60.0)
        case _ if status == _BAD_REQUEST:
            return SendError(Action.WITHOUT_OPTIONS, "400")
        case _ if status >= _SERVER_FAULTS or status == _OK:
            return SendError(Action.UNCERTAIN, str(status))
        case _:  # 403: the person blocked the bot
            return SendError(Action.FAIL, str(status))
