"""Telegram as a channel: buttons are an inline keyboard, and there is no window."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from phylactery_gateway.channels.messages import FETCHED_TYPES, Element, File, Media, Outgoing, option_id
from phylactery_gateway.channels.port import SECOND_US, Action, Address, Limits, MediaError, Proof, SendError
from phylactery_gateway.telegram.bot_api import BotApi
from phylactery_gateway.telegram.payloads import CHAT, parse
from phylactery_gateway.telegram.types import looks_like

_PRESSED: Final = "callback:"
_PICTURES: Final = ("image/jpeg", "image/png")
_LARGEST: Final = 50 * 1024 * 1024
_LARGEST_PICTURE: Final = 10 * 1024 * 1024
LIMITS: Final = Limits(
    text=4_096,
    body=4_096,
    buttons=20,
    button_title=64,
    rows=0,
    row_title=0,
    row_description=0,
    pair_us=SECOND_US,
    pair_burst=5,
    account_us=SECOND_US // 30,
)


class _Proved:
    """A body that a header has proved."""

    def update(self, part: bytes, /) -> object:
        return part

    def holds(self) -> bool:
        return True


_PROVED: Final = _Proved()


class Telegram:
    """A Telegram bot."""

    name = "telegram"

    def __init__(
        self, bot: BotApi, *, secret: Callable[[], str], token: Callable[[], str], close: Callable[[], Any]
    ) -> None:
        """``secret`` is the secret_token with which the webhook was set."""
        self.limits = LIMITS
        self._bot, self._secret, self._token, self._close = bot, secret, token, close

    def proof(self, headers: Mapping[str, str]) -> Proof | None:
        """Return what takes any body if the webhook carries our secret, None otherwise."""
        given = hashlib.sha256(headers.get("x-telegram-bot-api-secret-token", "").encode()).digest()
        return _PROVED if hmac.compare_digest(given, hashlib.sha256(self._secret().encode()).digest()) else None

    def challenge(self, query: Mapping[str, str]) -> str | None:  # noqa: ARG002 - Telegram asks nothing
        """Return None: Telegram does not ask."""
        return None

    def parse(self, body: bytes) -> Sequence[Element]:
        """Return the element of an update."""
        return parse(self._token().partition(":")[0], body)  # the number in a token is the bot's id

    async def send(self, address: Address, message: Outgoing, outbox_id: str) -> str:
        """Send a message and return its id. Raise SendError."""
        body: dict[str, Any] = {"chat_id": _chat(address), "text": message.text}
        if 0 < len(message.options) <= self.limits.buttons:
            rows = [
                [{"text": option.title[: self.limits.button_title], "callback_data": option_id(outbox_id, number)}]
                for number, option in enumerate(message.options)
            ]
            body["reply_markup"] = {"inline_keyboard": rows}
        return str((await self._bot.call("sendMessage", body)).get("message_id", ""))

    def takes(self, file: File) -> bool:
        """Return True for what a bot may upload."""
        return file.size <= _LARGEST

    async def upload(self, address: Address, file: File, data: bytes) -> str:  # noqa: ARG002
        """Return '': a file goes with its message."""
        return ""

    async def send_file(self, address: Address, file: File, reference: str, data: bytes, outbox_id: str) -> str:  # noqa: ARG002
        """Send a file, a picture as one that is seen at once, and return the message's id. Raise SendError."""
        picture = file.mime in _PICTURES and file.size <= _LARGEST_PICTURE
        method, field = ("sendPhoto", "photo") if picture else ("sendDocument", "document")
        result = await self._bot.send(method, {"chat_id": str(_chat(address))}, field, file, data)
        return str(result.get("message_id", ""))

    async def send_template(self, address: Address, language: str, callback_id: str) -> str | None:  # noqa: ARG002
        """Return None: there are no templates."""
        return None

    def error_of(self, code: str) -> SendError:
        """Return the error of a code; Telegram reports none later."""
        return SendError(Action.FAIL, code)

    async def typing(self, address: Address, external_id: str) -> None:
        """Show that a reply is being written, and end the waiting of a pressed button."""
        with contextlib.suppress(SendError):
            if external_id.startswith(_PRESSED):
                query_id = external_id.removeprefix(_PRESSED)
                await self._bot.call("answerCallbackQuery", {"callback_query_id": query_id})
            await self._bot.call("sendChatAction", {"chat_id": _chat(address), "action": "typing"})

    async def fetch(self, media: Media, limit: int) -> bytes:
        """Return a file, if its content is of the type that its message named. Raise MediaError."""
        if media.mime not in FETCHED_TYPES.get(media.kind, ()):
            raise MediaError("TYPE_NOT_ALLOWED")
        if media.size > limit:
            raise MediaError("TOO_LARGE")
        data = await self._bot.fetch(media.reference, limit)
        if not looks_like(media.mime, data):
            raise MediaError("TYPE_DIFFERS")
        return data

    async def close(self) -> None:
        """Close connections."""
        await self._close()


def _chat(address: Address) -> int:
    try:
        return int(address.identities[CHAT])
    except (KeyError, ValueError):
        raise SendError(Action.FAIL, "no_address") from None
