"""What a sink is sent: JSON for programs, a few lines for people, and the form that each chat takes.

Nothing here is a code, a token or a secret. A notice names the tool, the person who asks, the tenant, what is at stake,
how long there is, the amount and the approval; only where a sink shows arguments, the control arguments too.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from functools import cache
from typing import Any, Final

from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.messages import Messages, read_messages

from phylactery_riskgate.domain.views.visible import make_visible
from phylactery_riskgate.notices.config import EmailEntry, Sink, Url, WebhookEntry
from phylactery_riskgate.notices.model import Event
from phylactery_riskgate.notices.sending import Post
from phylactery_riskgate.notices.signing import headers

_FIELDS: Final = (
    "tool", "requester", "tenant", "amount", "stakes", "risk", "class", "decided_by", "expires", "approval_id",
    "execution_id", "activated_by", "bundle_hash",
)  # fmt: skip
"""What is told besides the sentence, in this order."""
_LONGEST: Final = 200
_DISCORD_CHARACTERS: Final = 1_900
_MARKDOWN: Final = re.compile(r"([\\`*_~|>#\[\]()@<-])")
_URGENT: Final = frozenset({Event.ACTIVATED, Event.WAITING, Event.REMINDER, Event.IN_DOUBT, Event.FROZEN})


@dataclass(frozen=True, slots=True)
class Told:
    """One notice with everything it may show. ``facts`` are names, times and numbers; ``arguments`` path and value."""

    id: str
    event: Event
    time_us: int
    facts: Mapping[str, Any]
    arguments: tuple[tuple[str, str], ...] = ()
    link: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A notice for people: a sentence, labelled fields, and how to answer."""

    title: str
    fields: tuple[tuple[str, str], ...]
    how: str
    link: str = ""

    @property
    def text(self) -> str:
        """Return all of it, one thing a line."""
        lines = [self.title, *(f"{label}: {value}" for label, value in self.fields), self.how, self.link]
        return "\n".join(line for line in lines if line)


@cache
def _messages(language: str) -> Messages:
    return read_messages("phylactery_riskgate.i18n", language)


def time_text(time_us: int) -> str:
    """Return a time as RFC 3339 in UTC."""
    return datetime.fromtimestamp(time_us // MICROSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lines_of(told: Told, language: str) -> Lines:
    """Return a notice as people read it."""
    texts, facts = _messages(language), {name: _shown(value) for name, value in told.facts.items()}
    key = f"notices_{str(told.event).replace('.', '_')}"
    key = next((one for one in (f"{key}_{told.facts.get('variant', '')}", key) if one in texts), key)
    title = texts(key, **{name: facts.get(name, "") for name in texts.placeables(key)})
    fields = [(texts(f"notices_field_{name}"), _field(name, facts[name])) for name in _FIELDS if facts.get(name)]
    fields += [(_shown(path), _shown(value)) for path, value in told.arguments]
    waits = told.event in (Event.WAITING, Event.REMINDER)
    how = texts("notices_how", id=facts["approval_id"]) if waits else ""
    return Lines(title, tuple(fields), how, told.link)


def _field(name: str, value: str) -> str:
    return value.replace("T", " ").replace("Z", " UTC") if name == "expires" else value


def _shown(value: Any) -> str:
    """Return a value that cannot pass for other text."""
    return make_visible(str(value), _LONGEST).text


def post_of(told: Told, sink: Sink, url: Url, now_us: int) -> Post:
    """Return what an HTTP sink is sent. Raise ValueError if its secret cannot be used now."""
    sent = {"content-type": "application/json"}
    token = sink.secret("token_file")
    if token:
        if not token.isascii() or not token.isprintable():
            raise ValueError("token_file: the token contains invalid characters")
        sent["authorization"] = f"Bearer {token}"
    if isinstance(sink.entry, WebhookEntry):
        body = _json(_program(told))
        sent |= headers(sink.signing_keys, told.id, now_us // MICROSECONDS, body)
        return Post(body, sent)
    lines = lines_of(told, sink.entry.language)
    sent["webhook-id"] = told.id
    if sink.kind == "ntfy":
        above, _, topic = url.path.partition("?")[0].rpartition("/")
        return Post(_json(_ntfy(told, lines, topic)), sent, path=above + "/")
    return Post(_json({"slack": _slack, "teams": _teams, "discord": _discord}[sink.kind](lines)), sent)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _program(told: Told) -> dict[str, Any]:
    data = {name: value for name, value in told.facts.items() if name != "variant" and value != ""}
    if told.arguments:
        data["arguments"] = [{"path": path, "value": value} for path, value in told.arguments]
    if told.link:
        data["link"] = told.link
    return {"type": str(told.event), "timestamp": time_text(told.time_us), "data": data}


def _slack(lines: Lines) -> dict[str, Any]:
    def safe(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def plain(text: str) -> dict[str, Any]:
        return {"type": "plain_text", "text": text[:2_900], "emoji": False}

    blocks: list[dict[str, Any]] = [{"type": "section", "text": plain(lines.title)}]
    if lines.fields:
        told = "\n".join(f"{label}: {value}" for label, value in lines.fields)
        blocks.append({"type": "section", "text": plain(told)})
    more = "\n".join(one for one in (lines.how, lines.link) if one)
    if more:
        blocks.append({"type": "context", "elements": [plain(more)]})
    # plain_text makes no links, so the fallback carries none either; mrkdwn is off, so a name formats nothing
    return {"text": safe(lines.text), "mrkdwn": False, "unfurl_links": False, "blocks": blocks}


def _teams(lines: Lines) -> dict[str, Any]:
    def runs(*texts: tuple[str, bool]) -> dict[str, Any]:
        pieces = [{"type": "TextRun", "text": text, **({"weight": "Bolder"} if bold else {})} for text, bold in texts]
        return {"type": "RichTextBlock", "inlines": pieces}  # text runs know no markdown

    body = [runs((lines.title, True))]
    body += [runs((f"{label}: ", True), (value, False)) for label, value in lines.fields]
    body += [runs((lines.how, False))] if lines.how else []
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    if lines.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "RiskGate", "url": lines.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(lines: Lines) -> dict[str, Any]:
    def safe(text: str) -> str:
        return _MARKDOWN.sub(r"\\\1", text)

    rows = [f"**{safe(lines.title)}**", *(f"{safe(label)}: {safe(value)}" for label, value in lines.fields)]
    rows += [safe(lines.how)] if lines.how else []
    content = "\n".join(rows)[:_DISCORD_CHARACTERS]
    content += f"\n<{lines.link}>" if lines.link else ""
    return {"content": content, "allowed_mentions": {"parse": []}, "flags": 4}


def _ntfy(told: Told, lines: Lines, topic: str) -> dict[str, Any]:
    rows = [*(f"{label}: {value}" for label, value in lines.fields), lines.how]
    message = {
        "topic": topic,
        "title": lines.title,
        "message": "\n".join(row for row in rows if row) or lines.title,
        "priority": 4 if told.event in _URGENT else 3,
    }
    return message | ({"click": lines.link} if lines.link else {})


def mail_of(told: Told, sink: Sink) -> EmailMessage:
    """Return the mail of a notice; a repetition has the same Message-ID."""
    entry = sink.entry
    assert isinstance(entry, EmailEntry), "only these send mail"
    lines = lines_of(told, entry.language)
    message = EmailMessage(policy=SMTP)
    message["Subject"] = lines.title
    message["From"] = _address(entry.sender)
    message["To"] = [_address(one) for one in entry.to]
    message["Date"] = datetime.fromtimestamp(told.time_us // MICROSECONDS, UTC)
    message["Message-ID"] = f"<{told.id}@{entry.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(lines.text + "\n")
    message.add_alternative(_html(lines), subtype="html")
    return message


def _address(text: str) -> Address:
    name, _, domain = text.rpartition("@")
    return Address(username=name, domain=domain)


def _html(lines: Lines) -> str:
    rows = "".join(
        f"<tr><th align=left>{html.escape(label)}</th><td>{html.escape(value)}</td></tr>"
        for label, value in lines.fields
    )
    link = f'<p><a href="{html.escape(lines.link)}">{html.escape(lines.link)}</a></p>' if lines.link else ""
    how = f"<p>{html.escape(lines.how)}</p>" if lines.how else ""
    page = f"<p><b>{html.escape(lines.title)}</b></p><table>{rows}</table>{how}{link}"
    return f"<!doctype html><html><body>{page}</body></html>\n"
