"""Updates of the Bot API as elements. Only private chats are served: a group has no one person to act for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from phylactery_gateway.channels.messages import (
    ELSEWHERE,
    UNREADABLE,
    Content,
    Element,
    Identity,
    Kept,
    Kind,
    Media,
    Received,
    Sender,
)
from phylactery_gateway.channels.port import SECOND_US
from phylactery_gateway.telegram.types import plain_type

CHAT: Final = "chat"
_MAX_TEXT: Final = 20_000
_MAX_ID: Final = 512
_FILES: Final = {"photo": "image", "voice": "audio", "audio": "audio", "video": "video", "document": "document"}
_TYPES: Final = {"photo": "image/jpeg", "voice": "audio/ogg"}
"""Types that go without saying."""
_OTHERS: Final = (
    "forward_origin",
    *("forward_date", "forward_from", "forward_from_chat", "forward_sender_name"),  # before Bot API 7.0
    *("via_bot", "sender_chat", "sender_business_bot", "is_automatic_forward"),
)
"""Marks of a message that somebody else wrote: forwarded, written by a bot, a channel or another's account."""
_QUOTES: Final = ("external_reply", "reply_to_story", "reply_to_checklist_task_id", "quote")
"""Marks of an answer to something that is not in the chat, or not any more."""
_QUOTED: Final = frozenset({"blockquote", "expandable_blockquote"})
_STRUCK: Final = "strikethrough"
_UNREADABLE: Final = ("location", "contact", "venue", "poll", "dice", "video_note")

_Json = Mapping[str, Any]


def parse(account: str, body: bytes) -> Sequence[Element]:
    """Return the element of an update: Telegram sends one at a time."""
    try:
        update = json.loads(body)
        update_id = int(update["update_id"])
    except UNREADABLE:
        return [Element(account, f"kept:{hashlib.sha256(body).hexdigest()}", Kept("unknown_body"))]
    try:
        content = _content(update)
    except UNREADABLE:
        content = Kept("unreadable")
    return [Element(account, f"update:{update_id}", content)]


def _content(update: _Json) -> Content:
    if "callback_query" in update:
        return _pressed(update["callback_query"])
    if "message_reaction" in update:
        return _reaction(update["message_reaction"], int(update["update_id"]))
    for name, kind in (("message", Kind.TEXT), ("edited_message", Kind.EDIT)):
        if name in update:
            return _message(update[name], kind, int(update["update_id"]))
    return Kept("update")


def _pressed(query: _Json) -> Content:
    message = query["message"]
    if message["chat"]["type"] != "private":
        return Kept("group")
    identifier = _bounded(str(query["id"]), _MAX_ID)
    data = _bounded(query["data"], _MAX_ID)
    return Received(_sender(query["from"], message["chat"]), Kind.CHOICE, data, 0, f"callback:{identifier}", data)


def _reaction(reaction: _Json, update_id: int) -> Content:
    """Return the emoji a person put on a message last, the empty text where they took it away."""
    if reaction["chat"]["type"] != "private":
        return Kept("group")
    signs = [one.get("emoji") or "?" for one in reaction["new_reaction"]]
    return Received(
        _sender(reaction["user"], reaction["chat"]),
        Kind.REACTION,
        _bounded(signs[-1], _MAX_ID) if signs else "",
        int(reaction["date"]) * SECOND_US,
        f"reaction:{update_id}",
        refers_to=str(int(reaction["message_id"])),
    )


def _message(message: _Json, kind: Kind, update_id: int) -> Content:
    """Return a message; what somebody else wrote of it is kept apart from the person's words."""
    content = _read(message, kind, update_id)
    if not isinstance(content, Received):
        return content
    if any(message.get(mark) for mark in _OTHERS):
        return content.by_another()
    try:
        return _as_formatted(content, message.get("entities") or message.get("caption_entities") or ())
    except UNREADABLE:
        return content.by_another()  # it has marks, and which words they are on is not known


def _read(message: _Json, kind: Kind, update_id: int) -> Content:  # noqa: PLR0911 - one for each kind of message
    chat = message["chat"]
    if chat["type"] != "private":
        return Kept("group")
    sender, sent_us = _sender(message["from"], chat), int(message["date"]) * SECOND_US
    external_id = str(int(message["message_id"]))
    if kind is Kind.EDIT:
        text = _bounded(message.get("text") or message["caption"])
        edit_us = int(message.get("edit_date", message["date"])) * SECOND_US
        edited = f"{external_id}:edit:{update_id}"  # there may be two in a second
        return Received(sender, kind, text, edit_us, edited, refers_to=external_id)
    quoted = message.get("reply_to_message")
    quotes = str(int(quoted["message_id"])) if isinstance(quoted, dict) else ELSEWHERE * any(map(message.get, _QUOTES))
    if "text" in message:
        return Received(sender, kind, _bounded(message["text"]), sent_us, external_id, refers_to=quotes)
    if "sticker" in message:
        return Received(sender, Kind.STICKER, "", sent_us, external_id)
    for name, file_kind in _FILES.items():
        if name in message:
            file = message[name][-1] if name == "photo" else message[name]
            media = Media(
                _bounded(file["file_id"], _MAX_ID),
                file_kind,
                plain_type(str(file.get("mime_type", _TYPES.get(name, ""))))[:128],
                name=str(file.get("file_name", ""))[:_MAX_ID],
                size=int(file.get("file_size", 0)),
            )
            caption = str(message.get("caption", ""))[:_MAX_TEXT]
            return Received(sender, Kind.MEDIA, caption, sent_us, external_id, refers_to=quotes, media=media)
    if any(name in message for name in _UNREADABLE):
        return Received(sender, Kind.UNREADABLE, "", sent_us, external_id)
    return Kept("message")


def _as_formatted(content: Received, entities: Sequence[_Json]) -> Received:
    """Return a message without the words that its marks take from the person: what is quoted, and what is struck out.

    The application shows them so, and sends the same plain text as if they were said. Raise as reading anything does.
    """
    units = content.text.encode("utf-16-le", "surrogatepass")  # offsets are in units of UTF-16
    marks = [""] * (len(units) // 2)
    for one in entities:
        kind = "quoted" if one["type"] in _QUOTED else _STRUCK if one["type"] == _STRUCK else ""
        start, length = int(one["offset"]), int(one["length"])
        if kind and min(start, length) < 0:
            raise ValueError("an offset before the text")
        if kind:
            inside = range(start, min(start + length, len(marks)))
            marks[start : start + length] = [max(kind, marks[place]) for place in inside]
    own, quoted, start = "", [], 0
    for mark, run in groupby(marks):
        stop = start + len(list(run))
        words = units[2 * start : 2 * stop].decode("utf-16-le", "surrogatepass")
        own += words if not mark else "\n" * (mark == "quoted")  # a sentence does not go on behind a quotation
        if mark == "quoted":
            quoted.append(words)
        start = stop
    if own.strip():
        return replace(content, text=own.strip("\n") if quoted else own, passed_on="\n".join(quoted))
    return content.by_another()


def _sender(person: _Json, chat: _Json) -> Sender:
    """Return who wrote: in a private chat the chat's id is the person's, and nobody else's word counts there."""
    if person.get("is_bot"):
        raise ValueError("a bot")
    if int(person["id"]) != int(chat["id"]):
        raise ValueError("not the person whose chat it is")
    code = str(person.get("language_code", "")).partition("-")[0]
    return Sender((Identity(CHAT, str(int(chat["id"]))),), code if code in ("es", "en") else "")


def _bounded(value: Any, most: int = _MAX_TEXT) -> str:
    if not isinstance(value, str) or not value or len(value) > most:
        raise ValueError("a text that is missing or too long")
    return value
