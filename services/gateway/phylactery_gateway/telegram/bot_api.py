"""Calls of the Telegram Bot API. The token is part of an address there, so no error repeats one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import httpx

from phylactery_gateway.channels.port import Action, SendError

_OK, _BAD_REQUEST, _TOO_MANY, _SERVER_FAULTS = 200, 400, 429, 500
_WRONG_TOKEN: Final = (401, 404)
_LONGEST_PAUSE: Final = 3_600.0


class BotApi:
    """The Bot API with one bot's token."""

    def __init__(self, url: str, token: Callable[[], str], *, timeout: float, client: httpx.AsyncClient) -> None:
        self._url, self._token, self._timeout, self._client = url.rstrip("/"), token, timeout, client

    async def call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call a method and return its result. Raise SendError."""
        address = f"{self._url}/bot{self._token()}/{method}"
        try:
            response = await self._client.post(address, json=body, timeout=self._timeout)
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
