"""Webhooks of the WhatsApp Cloud API as elements.

A webhook has entry × changes × (messages, statuses, message_echoes, …). Each element is read on its own: one that
cannot be read is kept as it came, and those beside it are read as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from phylactery_gateway.channels.messages import (
    ELSEWHERE,
    UNREADABLE,
    Content,
    Delivery,
    Echoed,
    Element,
    Identity,
    Kept,
    Kind,
    Media,
    Received,
    Renamed,
    Sender,
    Status,
)
from phylactery_gateway.channels.port import SECOND_US

BSUID: Final = "bsuid"
PHONE: Final = "phone"
_MAX_ID: Final = 512
_MAX_TEXT: Final = 20_000
_MAX_FLOW_FIELDS: Final = 100
_MEDIA: Final = ("image", "audio", "video", "document")
_DELIVERIES: Final = {
    "sent": Delivery.SENT,
    "delivered": Delivery.DELIVERED,
    "read": Delivery.READ,
    "played": Delivery.PLAYED,
    "failed": Delivery.UNKNOWN,
}
_FORWARDED: Final = ("forwarded", "frequently_forwarded")
"""Marks in the context of a message that somebody else wrote."""
_CHANGES: Final = ("user_changed_number", "user_changed_user_id")
"""System messages after which a person has another id. They have no contacts array."""

_Json = Mapping[str, Any]


class _UnreadableError(ValueError):
    """An element lacks something, or something is of another type."""


def parse(body: bytes) -> Sequence[Element]:
    """Return the elements of a webhook; a body that is no JSON object is one that is kept."""
    try:
        read = json.loads(body)
        entries = _list(read["entry"])
    except UNREADABLE:
        return [_kept("", body, "unknown_body")]
    return [element for entry in entries for element in _entry(entry)]


def _entry(entry: Any) -> Iterator[Element]:
    changes = entry.get("changes") if isinstance(entry, dict) else None
    if not isinstance(changes, list):
        yield _kept("", _encoded(entry), "unknown_entry")
        return
    for change in changes:
        value = change.get("value") if isinstance(change, dict) else None
        if not isinstance(value, dict):
            yield _kept("", _encoded(change), "unknown_change")
            continue
        yield from _change(str(change.get("field", "")), value)


def _change(field: str, value: _Json) -> Iterator[Element]:
    metadata = value.get("metadata")
    account = metadata.get("phone_number_id") if isinstance(metadata, dict) else None
    account = account if isinstance(account, str) and len(account) <= _MAX_ID else ""
    # Meta's word: another of the business's agents handles these conversations now, so nothing is said in them
    handled_elsewhere = field == "standby"
    found = False
    for name, read in _READERS.items():
        elements = value.get("standby" if handled_elsewhere and name == "messages" else name)
        if not isinstance(elements, list) or not elements:
            continue
        found = True
        for element in elements:
            yield _isolated(account, element, value, read, handled_elsewhere=handled_elsewhere)
    if not found:
        yield _kept(account, _encoded({"field": field, "value": value}), "unknown_field")


def _isolated(
    account: str,
    element: Any,
    value: _Json,
    read: Callable[[_Json, _Json], tuple[str, Content]],
    *,
    handled_elsewhere: bool,
) -> Element:
    body = _encoded(element)
    try:
        element_id, content = read(element, value) if account else ("", Kept("no_account"))
        if handled_elsewhere and not isinstance(content, Renamed):
            content = Kept("standby")
    except UNREADABLE:
        return _kept(account, body, "unreadable")
    return Element(account, element_id, content) if account else _kept("", body, "no_account")


def _kept(account: str, body: bytes, reason: str) -> Element:
    return Element(account, f"kept:{hashlib.sha256(body).hexdigest()}", Kept(reason))


def _message(message: _Json, value: _Json) -> tuple[str, Content]:
    external_id, kind = _text(message, "id"), _text(message, "type")
    if kind == "system":
        return external_id, _system(message)
    if _group(message):
        return external_id, Kept("group")
    reader = _KINDS.get(kind)
    if reader is None:
        return external_id, Kept(f"type:{kind[:32]}" if kind.isidentifier() else "type")
    return external_id, reader(message, _sender(message, value), external_id)


def _group(message: _Json) -> bool:
    """Return True for a message of a group: a person's approvals and memories have no place among others."""
    context = message.get("context")
    return bool(message.get("group_id") or (isinstance(context, dict) and context.get("group_id")))


def _sender(message: _Json, value: _Json) -> Sender:
    """Return who wrote a message: the business-scoped id first, the phone number only if there is one."""
    phone, bsuid = message.get("from"), message.get("from_user_id")
    contacts = value.get("contacts")
    contact = _contact(contacts if isinstance(contacts, list) else [], phone, bsuid)
    return _identities(bsuid or contact.get("user_id"), phone or contact.get("wa_id"))


def _contact(contacts: Sequence[Any], phone: Any, bsuid: Any) -> _Json:
    """Return the contact of a message: the one of its own id, or the only one."""
    known = [one for one in contacts if isinstance(one, dict)]
    for one in known:
        if (bsuid and one.get("user_id") == bsuid) or (phone and one.get("wa_id") == phone):
            return one
    # a webhook of one message has one contact, whose number may be written in another form than the message's
    return known[0] if len(known) == 1 and not (bsuid and known[0].get("user_id")) else {}


def _identities(bsuid: Any, phone: Any) -> Sender:
    pairs = ((BSUID, bsuid), (PHONE, phone))
    found = tuple(Identity(kind, _bounded(value)) for kind, value in pairs if value)
    if not found:
        raise _UnreadableError
    return Sender(found)


def _system(message: _Json) -> Content:
    system = message["system"]
    if system.get("type") not in _CHANGES:
        return Kept("system")
    previous = _identities(system.get("previous_user_id") or message.get("from_user_id"), message.get("from"))
    current = _identities(system.get("user_id"), system.get("wa_id"))
    changed_us = _time_us(message) if "timestamp" in message else 0
    return Renamed(previous.identities, current.identities, changed_us)


def _received(message: _Json, sender: Sender, external_id: str, kind: Kind, text: str, **more: Any) -> Received:
    more.setdefault("refers_to", _quoted(message))
    received = Received(sender, kind, text[:_MAX_TEXT], _time_us(message), external_id, **more)
    return received.by_another() if _is_forwarded(message) else received


def _quoted(message: _Json) -> str:
    """Return the id of the message that one quotes; a pressed button names its message so, too.

    It is ELSEWHERE if there is only a mark that something was quoted: what it was may be gone.
    """
    context = message.get("context")
    if not isinstance(context, dict) or not context.keys() & {"id", "from"}:
        return ""
    quoted = context.get("id")
    return quoted[:_MAX_ID] if isinstance(quoted, str) and quoted else ELSEWHERE


def _is_forwarded(message: _Json) -> bool:
    """Return True if somebody else wrote a message, or the one that an edit changes."""
    edit = message.get("edit")
    inner = edit.get("message") if isinstance(edit, dict) else None
    contexts = [one.get("context") for one in (message, edit, inner) if isinstance(one, dict)]
    return any(context.get(mark) for context in contexts if isinstance(context, dict) for mark in _FORWARDED)


def _text_message(message: _Json, sender: Sender, external_id: str) -> Content:
    return _received(message, sender, external_id, Kind.TEXT, _text(message["text"], "body", most=_MAX_TEXT))


def _button(message: _Json, sender: Sender, external_id: str) -> Content:
    """Read the press of a template's button: it says what is written on it."""
    text = message["button"].get("text") or message["button"].get("payload")
    return _received(message, sender, external_id, Kind.QUICK_REPLY, _bounded(text))


def _interactive(message: _Json, sender: Sender, external_id: str) -> Content:
    if "interactive" not in message:  # the application could not show what was sent, and says so under errors
        return Kept("interactive_error")
    answer = message["interactive"]
    kind = answer.get("type")
    if kind in ("button_reply", "list_reply"):
        chosen = answer[kind]
        title = _text(chosen, "title", most=_MAX_TEXT)
        return _received(message, sender, external_id, Kind.CHOICE, title, option=_text(chosen, "id"))
    if kind == "nfm_reply":
        return _received(message, sender, external_id, Kind.TEXT, _flow(answer[kind]))
    return Kept("interactive")


def _flow(reply: _Json) -> str:
    """Return a filled WhatsApp Flow as lines "field: value", which is how a person would have written it."""
    fields = json.loads(_text(reply, "response_json", most=200_000))
    if not isinstance(fields, dict):
        raise _UnreadableError
    lines = []
    for name, value in list(fields.items())[:_MAX_FLOW_FIELDS]:
        if name != "flow_token" and value not in ("", None):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{name.replace('_', ' ')}: {shown}")
    if not lines:
        raise _UnreadableError
    return "\n".join(lines)


def _media(message: _Json, sender: Sender, external_id: str) -> Content:
    kind = message["type"]
    file = message[kind]
    media = Media(
        _text(file, "id"),
        kind,
        _text(file, "mime_type", most=128),
        _optional(file, "sha256"),
        _optional(file, "filename"),
    )
    return _received(message, sender, external_id, Kind.MEDIA, _optional(file, "caption", _MAX_TEXT), media=media)


def _sticker(message: _Json, sender: Sender, external_id: str) -> Content:
    return _received(message, sender, external_id, Kind.STICKER, "")


def _unreadable(message: _Json, sender: Sender, external_id: str) -> Content:
    return _received(message, sender, external_id, Kind.UNREADABLE, "")


def _edit(message: _Json, sender: Sender, external_id: str) -> Content:
    """Read an edit, which arrives only for numbers that are also used in the WhatsApp Business app."""
    edit = message["edit"]
    inner = edit.get("message") if isinstance(edit.get("message"), dict) else edit
    kind = inner.get("type", "text")
    body = inner["text"]["body"] if kind == "text" else inner[kind].get("caption", "")
    return _received(
        message, sender, external_id, Kind.EDIT, _bounded(body, _MAX_TEXT), refers_to=_text(edit, "original_message_id")
    )


def _reaction(message: _Json, sender: Sender, external_id: str) -> Content:
    """Read an emoji on a message; without one it was taken away."""
    reaction = message["reaction"]
    sign, on = _optional(reaction, "emoji"), _text(reaction, "message_id")
    return _received(message, sender, external_id, Kind.REACTION, sign, refers_to=on)


def _revoke(message: _Json, sender: Sender, external_id: str) -> Content:
    original = _text(message["revoke"], "original_message_id")
    return _received(message, sender, external_id, Kind.REVOKE, "", refers_to=original)


_KINDS: Final[Mapping[str, Callable[[_Json, Sender, str], Content]]] = {
    "text": _text_message,
    "button": _button,
    "interactive": _interactive,
    "sticker": _sticker,
    "edit": _edit,
    "revoke": _revoke,
    "reaction": _reaction,
    "location": _unreadable,
    "contacts": _unreadable,
    "order": _unreadable,
    **dict.fromkeys(_MEDIA, _media),
}
"""How each type is read. Requests to be welcomed and types nobody knows yet are kept without a reply."""


def _status(status: _Json, _value: _Json) -> tuple[str, Content]:
    external_id, name = _text(status, "id"), _text(status, "status", most=32)
    element_id = f"status:{external_id}:{name}"
    if name not in _DELIVERIES or status.get("recipient_type") == "group":
        return element_id, Kept("status")
    code = ""
    if name == "failed":
        errors = status.get("errors")
        first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
        code = str(first.get("code", "unknown"))[:32]
    return element_id, Status(external_id, _DELIVERIES[name], code, _optional(status, "biz_opaque_callback_data"))


def _echo(echo: _Json, _value: _Json) -> tuple[str, Content]:
    external_id = _text(echo, "id")
    if _group(echo):
        return external_id, Kept("group")
    return external_id, Echoed(_identities(echo.get("to_user_id"), echo.get("to")))


_READERS: Final[Mapping[str, Callable[[_Json, _Json], tuple[str, Content]]]] = {
    "messages": _message,
    "statuses": _status,
    "message_echoes": _echo,
}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _UnreadableError
    return value


def _text(holder: _Json, name: str, *, most: int = _MAX_ID) -> str:
    return _bounded(holder[name], most)


def _optional(holder: _Json, name: str, most: int = _MAX_ID) -> str:
    value = holder.get(name)
    return _bounded(value, most) if value else ""


def _bounded(value: Any, most: int = _MAX_ID) -> str:
    if not isinstance(value, str) or not value or len(value) > most:
        raise _UnreadableError
    return value


def _time_us(message: _Json) -> int:
    seconds = int(message["timestamp"])
    if not 0 < seconds < 2**40:  # a date that a column holds
        raise _UnreadableError
    return seconds * SECOND_US


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, sort_keys=True).encode()
