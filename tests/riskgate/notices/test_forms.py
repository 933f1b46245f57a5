"""What each kind of sink gets: real posts and a real mail server, both languages, hostile names."""

from __future__ import annotations

import asyncio
import email
import email.policy
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from phylactery_riskgate.notices.config import read_notices
from phylactery_riskgate.notices.delivery import line_for, send
from phylactery_riskgate.notices.model import Event
from phylactery_riskgate.notices.sending import SinkError
from phylactery_riskgate.notices.wording import Told, lines_of, mail_of

from tests.support.cases import each_case
from tests.support.riskgate.command import run
from tests.support.riskgate.notices import arrivals
from tests.support.riskgate.people import tool_call
from tests.support.servers.certificates import serving_context

FACTS = {
    "variant": "",
    "approval_id": "ap_1",
    "state": "PENDING",
    "tool": "pay",
    "requester": "ana",
    "tenant": "acme",
    "class": "peer",
    "risk": "high",
    "stakes": "high",
    "created": "2026-11-30T12:00:00Z",
    "expires": "2026-12-01T12:00:00Z",
    "amount": "12.5 EUR",
}
HOSTILE = "<!channel> @everyone [x](http://evil) *b* <b>\u202egnp"


def told(**changes: Any) -> Told:
    event = changes.pop("event", Event.WAITING)
    return Told("nt_1", event, 1_790_000_000_000_000, {**FACTS, **changes}, link="https://gate.example/a/ap_1")


def sent(sinks, server, kind: str, notice: Told, **more: Any) -> Any:
    sinks.write(sinks.chat(kind, server, **more))
    sink = read_notices(sinks.file).sinks[0]
    send(sink, notice, notice.time_us, line_for(sink))
    return server.taken[-1]


def test_slack_gets_plain_text_that_calls_nobody(sinks, server):
    one = sent(sinks, server, "slack", told(requester=HOSTILE))
    assert one.path == "/hook/token-in-the-path"
    body = one.json
    assert "ana" not in body["text"]
    assert "<!channel>" not in body["text"]
    assert {block["type"] for block in body["blocks"]} == {"section", "context"}
    assert all(block["text"]["type"] == "plain_text" for block in body["blocks"] if "text" in block)
    assert "12.5 EUR" in body["text"]
    assert "riskgate approvals show ap_1" in body["text"]
    assert "https://gate.example/a/ap_1" in body["text"]


def test_teams_gets_an_adaptive_card_without_markdown(sinks, server):
    body = sent(sinks, server, "teams", told(requester=HOSTILE)).json
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert {one["type"] for one in card["body"]} == {"RichTextBlock"}
    assert card["actions"][0]["url"] == "https://gate.example/a/ap_1"


def test_discord_gets_text_that_mentions_nobody_and_fits(sinks, server):
    body = sent(sinks, server, "discord", told(requester=HOSTILE, tenant="t" * 5_000)).json
    assert body["allowed_mentions"] == {"parse": []}
    assert "\\<\\!channel" in body["content"].replace("!", "\\!")
    assert "\\[x\\]" in body["content"]
    assert len(body["content"]) <= 2_000


def test_ntfy_gets_its_topic_and_a_priority(sinks, server):
    one = sent(sinks, server, "ntfy", told(), token_file="secret")
    assert one.path == "/hook/"
    body = one.json
    assert (body["topic"], body["priority"]) == ("token-in-the-path", 4)
    assert body["title"] == "ana needs an approval to use pay."
    assert body["click"] == "https://gate.example/a/ap_1"
    assert one.headers["authorization"].startswith("Bearer whsec_")


@each_case("language", ["en", "es"])
@each_case("event", list(Event))
def test_every_event_has_words_in_both_languages_whatever_the_names_hold(event, language):
    scopes = ("all", "tenant", "user", "actor", "tool")
    states = ("APPROVED", "REJECTED", "CANCELLED")
    frozen = event in {Event.FROZEN, Event.UNFROZEN}
    variants = scopes if frozen else states if event is Event.DECIDED else ("", "unused", "TOO_MANY_PENDING")
    for variant in variants:
        notice = told(
            event=event, variant=variant, requester=HOSTILE, name="x\ny", limit="reads", decided_by="dora",
            execution_id="e1",
        )  # fmt: skip
        text = lines_of(notice, language).text
        assert "\u202e" not in text
        assert "x\ny" not in text
        assert len(text) < 2_000


def test_the_words_of_one_notice_are_these():
    assert lines_of(told(), "es").text.splitlines() == [
        "ana necesita una aprobación para usar pay.",
        "Herramienta: pay",
        "Para: ana",
        "Organización: acme",
        "Importe: 12.5 EUR",
        "En juego: high",
        "Riesgo: high",
        "Quién responde: peer",
        "Hasta: 2026-12-01 12:00:00 UTC",
        "Aprobación: ap_1",
        "Para responder: riskgate approvals show ap_1",
        "https://gate.example/a/ap_1",
    ]


class _Mailbox:
    """What the mail server took."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.refuse = ""

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuse:
            return self.refuse
        self.mails.append((envelope, email.message_from_bytes(envelope.content, policy=email.policy.default)))
        return "250 OK"


@pytest.fixture
def mailbox():
    return _Mailbox()


@pytest.fixture
def smtp(mailbox, tmp_path):
    """Start a mail server and return its port; with ``tls`` it offers STARTTLS and asks for a password."""
    with ExitStack() as stack:

        def start(*, tls: bool = False) -> int:
            more: dict[str, Any] = {}
            if tls:
                context, _ = serving_context(tmp_path, "localhost")

                def check(_server, _session, _envelope, _mechanism, data):
                    return AuthResult(success=data.password == b"mail-password", handled=False)

                more = {"tls_context": context, "authenticator": check, "auth_required": True, "require_starttls": True}
            return stack.enter_context(mail_server(mailbox, **more))

        yield start


@contextmanager
def mail_server(handler: Any, **options: Any) -> Iterator[int]:
    """Serve mail in a thread during the block; yield its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made = loop.create_server(lambda: SMTP(handler, loop=loop, **options), "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(made, loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def mail_sink(port: int, **more: Any) -> dict[str, Any]:
    return {
        "name": "mail",
        "kind": "email",
        "server": "localhost",
        "port": port,
        "sender": "riskgate@example.com",
        "to": ["dora@example.com", "gina@example.com"],
        "allow_private": True,
        **more,
    }


async def test_a_mail_of_an_approval_arrives_with_text_html_and_a_stable_id(told_gate, sinks, smtp, mailbox):
    gate = await told_gate(mail_sink(smtp(), tls="none", language="es"))
    call = tool_call("pay", '{"to":"canary-recipient","note":"canary-note"}')
    approval = (await gate.person("ana").evaluate(call)).approval
    for _ in range(1_000):
        if mailbox.mails:
            break
        await asyncio.sleep(0.02)
    ((envelope, mail),) = mailbox.mails
    assert envelope.rcpt_tos == ["dora@example.com", "gina@example.com"]
    assert mail["subject"] == "ana necesita una aprobación para usar pay."
    assert mail["message-id"].startswith("<nt_")
    assert mail["auto-submitted"] == "auto-generated"
    text, page = (part.get_content() for part in mail.iter_parts())
    assert approval.id in text
    assert approval.id in page
    assert "canary" not in envelope.content.decode()


def test_a_mail_with_hostile_names_has_no_header_and_no_markup_of_theirs(sinks):
    sinks.write(mail_sink(25, tls="none"))
    sink = read_notices(sinks.file).sinks[0]
    notice = told(requester="ana\r\nBcc: evil@example.com\r\n\r\n<script>x</script>")
    mail = mail_of(notice, sink)
    assert mail["bcc"] is None
    assert "\nBcc:" not in mail.as_string()
    assert "<script>" not in mail.get_body(("html",)).get_content()


def test_a_mail_goes_with_starttls_and_a_password_over_a_trusted_certificate_alone(sinks, smtp, mailbox, tmp_path):
    port = smtp(tls=True)
    sinks.write_secret(sinks.folder / "password", "mail-password")
    signed_in = mail_sink(port, user="riskgate", password_file="password")
    sinks.write(signed_in)
    sink = read_notices(sinks.file).sinks[0]
    with pytest.raises(SinkError) as caught:
        send(sink, told(), 0, line_for(sink))
    assert caught.value.code == "CERTIFICATE"
    assert "self-signed" in caught.value.told
    sinks.write({**signed_in, "ca_file": "localhost.pem"})
    sink = read_notices(sinks.file).sinks[0]
    send(sink, told(), 0, line_for(sink))
    assert len(mailbox.mails) == 1
    sinks.write_secret(sinks.folder / "password", "another")
    sink = read_notices(sinks.file).sinks[0]
    with pytest.raises(SinkError) as caught:
        send(sink, told(), 0, line_for(sink))
    assert caught.value.code == "SMTP_535"


def test_a_mail_server_without_starttls_and_one_that_refuses_are_named_without_their_words(sinks, smtp, mailbox):
    port = smtp()
    sinks.write(mail_sink(port))
    sink = read_notices(sinks.file).sinks[0]
    with pytest.raises(SinkError) as caught:
        send(sink, told(), 0, line_for(sink))
    assert caught.value.code == "TLS"
    mailbox.refuse = "554 canary-words"
    sinks.write(mail_sink(port, tls="none"))
    sink = read_notices(sinks.file).sinks[0]
    with pytest.raises(SinkError) as caught:
        send(sink, told(), 0, line_for(sink))
    assert caught.value.code == "SMTP_554"
    assert "canary" not in caught.value.told


async def test_every_kind_of_chat_gets_an_approval_from_a_running_gate(told_gate, sinks, server):
    kinds = ("slack", "teams", "discord", "ntfy")
    gate = await told_gate(*(sinks.chat(kind, server) for kind in kinds))
    approval = (await gate.person("ana").evaluate(tool_call("pay", '{"to":"canary"}'))).approval
    found = await arrivals(server, 4)
    escaped = approval.id.replace("_", "\\\\_")
    assert all(approval.id in one.body.decode() or escaped in one.body.decode() for one in found)
    assert all("canary" not in one.body.decode() for one in found)


def test_the_command_tries_sinks_and_names_what_is_wrong(sinks, server):
    server.answers = [200, 404]
    sinks.write(sinks.hook(server), sinks.chat("slack", server))
    answer = run("notices", "test", "--file", sinks.file)
    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == ["hook: it took the notice", "slack: it answered 404 (HTTP_404)"]
    assert server.taken[0].type == "test"
    assert run("notices", "test", "hook", "--file", sinks.file).exit_code == 0
    assert run("notices", "test", "nobody", "--file", sinks.file).exit_code == 2
