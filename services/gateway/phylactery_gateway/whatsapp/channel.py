"""WhatsApp as a channel."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from phylactery_gateway.channels.messages import Element, File, Kept, Media, Outgoing, option_id
from phylactery_gateway.channels.port import SECOND_US, Action, Address, Limits, Proof, SendError
from phylactery_gateway.channels.presentation import form_of, row_titles
from phylactery_gateway.whatsapp.errors import error_of_code
from phylactery_gateway.whatsapp.graph_api import GraphApi
from phylactery_gateway.whatsapp.payloads import BSUID, PHONE, parse

_DAY_US: Final = 24 * 3_600 * SECOND_US
_WINDOW_MARGIN_US: Final = 60 * SECOND_US
_SIGNATURE: Final = re.compile("sha256=([0-9a-f]{64})")
_DOCUMENT: Final = "document"
_FORMS: Final[Mapping[str, frozenset[str]]] = {
    "image": frozenset({"image/jpeg", "image/png"}),
    "audio": frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"}),
    _DOCUMENT: frozenset(
        {
            "text/plain",
            "text/csv",
            "application/pdf",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        }
    ),
}
_UPLOADED_AS: Final[Mapping[str, str]] = {"text/csv": "text/plain"}
"""Types that the Cloud API knows under another name."""
_MIB: Final = 1024 * 1024
_LARGEST: Final[Mapping[str, int]] = {"image": 5 * _MIB, "audio": 16 * _MIB, _DOCUMENT: 100 * _MIB}
LIMITS: Final = Limits(
    text=4_096,
    body=1_024,
    buttons=3,
    button_title=20,
    rows=10,
    row_title=24,
    row_description=72,
    pair_us=6 * SECOND_US,
    pair_burst=10,
    account_us=SECOND_US // 80,
    window_us=_DAY_US - _WINDOW_MARGIN_US,
    tells_delivery=True,
)


@dataclass(frozen=True, slots=True)
class Template:
    """The approved template that asks a person to write, by name; its body has no parameters."""

    name: str
    languages: Sequence[str]
    """Its languages as Meta writes them, for example es or en_US; the first is the one for everybody else."""

    def language(self, wanted: str) -> str:
        """Return the template's language for a conversation's."""
        return next((one for one in self.languages if wanted and one.startswith(wanted)), self.languages[0])


class _Signature:
    """The signature of a body, made while the body arrives."""

    def __init__(self, secret: str, given: str) -> None:
        self._own, self._given = hmac.new(secret.encode(), digestmod=hashlib.sha256), bytes.fromhex(given)
        self.update = self._own.update

    def holds(self) -> bool:
        return hmac.compare_digest(self._own.digest(), self._given)


class WhatsApp:
    """The WhatsApp Cloud API with one application's secret and token."""

    name = "whatsapp"

    def __init__(
        self,
        graph: GraphApi,
        *,
        app_secret: Callable[[], str],
        verify_token: Callable[[], str],
        numbers: Sequence[str],
        template: Template | None,
        limits: Limits = LIMITS,
        close: Callable[[], Any],
    ) -> None:
        """``numbers`` are the ids of the business's own phone numbers; messages to any other are kept unanswered."""
        self.limits = limits
        self._graph, self._template, self._numbers, self._close = graph, template, frozenset(numbers), close
        self._app_secret, self._verify_token = app_secret, verify_token

    def proof(self, headers: Mapping[str, str]) -> Proof | None:
        """Return what tells if the application's secret signed exactly these bytes, None without a signature."""
        given = _SIGNATURE.fullmatch(headers.get("x-hub-signature-256", ""))
        return _Signature(self._app_secret(), given[1]) if given is not None else None

    def challenge(self, query: Mapping[str, str]) -> str | None:
        """Return hub.challenge if hub.verify_token is ours."""
        own, given = self._verify_token(), query.get("hub.verify_token", "")
        same = hmac.compare_digest(hashlib.sha256(own.encode()).digest(), hashlib.sha256(given.encode()).digest())
        challenge = query.get("hub.challenge", "")
        usable = query.get("hub.mode") == "subscribe" and challenge.isascii() and challenge.isalnum()
        return challenge if same and own and usable else None

    def parse(self, body: bytes) -> Sequence[Element]:
        """Return the elements of a webhook; those of other numbers than ours are only noted."""
        return [
            element
            if element.account in self._numbers or isinstance(element.content, Kept)
            else Element(element.account, element.element_id, Kept("other_number"))
            for element in parse(body)
        ]

    async def send(self, address: Address, message: Outgoing, outbox_id: str) -> str:
        """Send a message and return its wamid. Raise SendError."""
        match form_of(message, self.limits):
            case "text":
                content = {"type": "text", "text": {"body": message.text, "preview_url": False}}
            case "buttons":
                content = {"type": "interactive", "interactive": _buttons(message, outbox_id)}
            case "list":
                content = {"type": "interactive", "interactive": _rows(message, outbox_id, self.limits)}
        return await self._send(address, content, outbox_id)

    def takes(self, file: File) -> bool:
        """Return True for the types and sizes of the Cloud API."""
        return file.size <= _LARGEST.get(_form_of(file.mime), 0)

    async def upload(self, address: Address, file: File, data: bytes) -> str:
        """Upload a file and return its media id, which is good for 30 days. Raise SendError."""
        return await self._graph.upload(address.account, file.name, _UPLOADED_AS.get(file.mime, file.mime), data)

    async def send_file(
        self,
        address: Address,
        file: File,
        reference: str,
        data: bytes,  # noqa: ARG002 - it is uploaded already
        outbox_id: str,
    ) -> str:
        """Send an uploaded file and return the message's wamid. Raise SendError."""
        form = _form_of(file.mime)
        content = {"id": reference, **({"filename": file.name} if form == _DOCUMENT else {})}
        return await self._send(address, {"type": form, form: content}, outbox_id)

    async def send_template(self, address: Address, language: str, callback_id: str) -> str | None:
        """Send the template that asks a person to write, None if none is configured. Raise SendError."""
        if self._template is None:
            return None
        chosen = {"name": self._template.name, "language": {"code": self._template.language(language)}}
        return await self._send(address, {"type": "template", "template": chosen}, callback_id)

    def error_of(self, code: str) -> SendError:
        """Return what is done about an error whose code arrives in a status."""
        return error_of_code(code)

    async def typing(self, address: Address, external_id: str) -> None:
        """Mark a message as read and show that a reply is being written."""
        body = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": external_id,
            "typing_indicator": {"type": "text"},
        }
        with contextlib.suppress(SendError):
            await self._graph.post(f"{address.account}/messages", body)

    async def fetch(self, media: Media, limit: int) -> bytes:
        """Return a file. Raise MediaError."""
        return await self._graph.fetch(media, limit)

    async def close(self) -> None:
        """Close connections."""
        await self._close()

    async def _send(self, address: Address, content: Mapping[str, Any], outbox_id: str) -> str:
        body = {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            **_receiver(address),
            **content,
            # comes back in every status of this message, also if we died before its id was stored
            "biz_opaque_callback_data": outbox_id,
        }
        response = await self._graph.post(f"{address.account}/messages", body)
        try:
            return str(response["messages"][0]["id"])
        except (KeyError, IndexError, TypeError):
            raise SendError(Action.UNCERTAIN, "response") from None


def _form_of(mime: str) -> str:
    """Return the kind of message that carries files of a type, '' if none does."""
    return next((form for form, types in _FORMS.items() if mime in types), "")


def _receiver(address: Address) -> Mapping[str, str]:
    """Return to whom a message goes: the business-scoped id in ``recipient``, or else the phone number in ``to``."""
    if bsuid := address.identities.get(BSUID):
        return {"recipient": bsuid}
    if phone := address.identities.get(PHONE):
        return {"to": phone}
    raise SendError(Action.FAIL, "no_address")


def _buttons(message: Outgoing, outbox_id: str) -> Mapping[str, Any]:
    buttons = [
        {"type": "reply", "reply": {"id": option_id(outbox_id, number), "title": option.title}}
        for number, option in enumerate(message.options)
    ]
    return {"type": "button", "body": {"text": message.text}, "action": {"buttons": buttons}}


def _rows(message: Outgoing, outbox_id: str, limits: Limits) -> Mapping[str, Any]:
    titles = row_titles(message.options, limits.row_title)
    rows = [
        {
            "id": option_id(outbox_id, number),
            "title": title,
            **({"description": option.title[: limits.row_description]} if title != option.title else {}),
        }
        for number, (option, title) in enumerate(zip(message.options, titles, strict=True))
    ]
    action = {"button": message.list_title[: limits.button_title], "sections": [{"rows": rows}]}
    return {"type": "list", "body": {"text": message.text}, "action": action}
