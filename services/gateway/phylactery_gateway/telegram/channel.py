"""Telegram as a channel: buttons are an inline keyboard, and there is no window."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from phylactery_gateway.channels.messages import Element, Media, Outgoing, option_id
from phylactery_gateway.channels.port import SECOND_US, Action, Address, Limits, MediaError, SendError
from phylactery_gateway.telegram.bot_api import BotApi
from phylactery_gateway.telegram.payloads import CHAT, parse

_PRESSED: Final = "callback:"
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


class Telegram:
    """A Telegram bot."""

    name = "telegram"

    def __init__(
        self, bot: BotApi, *, secret: Callable[[], str], token: Callable[[], str], close: Callable[[], Any]
    ) -> None:
        """``secret`` is the secret_token with which the webhook was set."""
        self.limits = LIMITS
        self._bot, self._secret, self._token, self._close = bot, secret, token, close

    def verify(self, headers: Mapping[str, str], body: bytes) -> bool:  # noqa: ARG002 - a secret, not a signature
        """Return True if the webhook carries our secret."""
        given = hashlib.sha256(headers.get("x-telegram-bot-api-secret-token", "").encode()).digest()
        return hmac.compare_digest(given, hashlib.sha256(self._secret().encode()).digest())

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

    async def fetch(self, media: Media, limit: int) -> bytes:  # noqa: ARG002 - see docs/whatsapp.md
        """Raise MediaError: files of Telegram are not fetched."""
        raise MediaError("NOT_SUPPORTED")

    async def close(self) -> None:
        """Close connections."""
        await self._close()


def _chat(address: Address) -> int:
    try:
        return int(address.identities[CHAT])
    except (KeyError, ValueError):
        raise SendError(Action.FAIL, "no_address") from None
