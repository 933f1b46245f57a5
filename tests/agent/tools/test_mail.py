"""send_email submits a message once: a refusal is a failure, and an unknown outcome is in doubt."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import signal
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.mail import GOODBYE_SECONDS, MailTools, MailUnknownError
from phylactery_agent.tools.contract import FINAL_ERRORS, Invocation, Reconciled, ToolFailedError
from phylactery_agent.tools.network_policy import MailSettings
from phylactery_agent.tools.specs import SEND_EMAIL, SendEmailArguments
from phylactery_chassis.util import crashpoints

from tests.support.agent.graph import FakeMemories, FakeOutputs
from tests.support.servers.certificates import serving_context

FROM = "agent@example.org"
KEY = "ek_mail"
HEADERS = ["Content-Transfer-Encoding", "Content-Type", "Date", "From", "MIME-Version", "Message-ID", "Subject", "To"]
PASSWORD = "correct horse"


class Post:
    """A real mail server on loopback; what it does after a message came is a test's word."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []
        self.port = 0
        self.refuse_rcpt = self.answer = ""
        self.cut = self.silent = self.stalls = self.leaves_at_data = False
        self.logins: list[str] = []

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if self.refuse_rcpt:
            return self.refuse_rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        self.taken.append(envelope)
        if self.silent:
            await asyncio.sleep(3_600)
        if self.cut:
            cast("Any", server).transport.abort()
        return self.answer or "250 taken"

    async def handle_QUIT(self, _server: SMTP, _session: Session, _envelope: Envelope) -> str:
        if self.stalls:
            await asyncio.sleep(3_600)
        return "221 bye"

    def login(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        self.logins.append(data.login.decode())
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)  # so that the server answers it


@asynccontextmanager
async def serving(
    post: Post, *, tls: ssl.SSLContext | None = None, inside: bool = False, **more: Any
) -> AsyncIterator[Post]:
    loop = asyncio.get_running_loop()

    class Server(SMTP):
        async def smtp_DATA(self, arg: str) -> None:
            if post.leaves_at_data:
                cast("Any", self).transport.abort()
                return
            await super().smtp_DATA(arg)

    def session() -> SMTP:
        return Server(post, loop=loop, tls_context=None if inside else tls, **more)

    server = await loop.create_server(session, "127.0.0.1", 0, ssl=tls if inside else None)
    post.port = server.sockets[0].getsockname()[1]
    try:
        yield post
    finally:
        server.close()


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    async with serving(Post()) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _temporary_folders_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def tools(post: Post, journal: Path | None = None, **changes: Any) -> MailTools:
    """Return the tools over a server, with a journal of their own where the test does not look at it."""
    fields: dict[str, Any] = {"host": "127.0.0.1", "port": post.port, "sender": FROM, "tls": "none"}
    folder = journal or Path(tempfile.mkdtemp())
    return MailTools(MailSettings(**{**fields, **changes}), EffectJournal(folder))


def asked(to: str = "ana@example.org", subject: str = "Hola", body: str = "Llego a las 9") -> Invocation:
    args = SendEmailArguments.model_construct(to=to, subject=subject, body=body)
    return Invocation(args, KEY, FakeOutputs(), FakeMemories(), "acme", "ana")


async def send(mail: MailTools, **fields: str) -> str:
    return await mail.send_email(asked(**fields))


async def refused(mail: MailTools, **fields: str) -> str:
    with pytest.raises(ToolFailedError) as caught:
        await send(mail, **fields)
    return caught.value.code


def read(envelope: Envelope) -> EmailMessage:
    return cast("EmailMessage", message_from_bytes(cast("bytes", envelope.content), policy=default))  # type: ignore[arg-type]


async def test_a_message_is_handed_over_with_its_words_and_an_id_of_the_effects_key(post: Post) -> None:
    told = await send(tools(post), subject="Mañana", body="El niño\r\n.\r\nllega a las 9\n.")
    (envelope,) = post.taken
    message = read(envelope)
    assert (envelope.mail_from, envelope.rcpt_tos) == (FROM, ["ana@example.org"])
    assert (message["From"], message["To"], message["Subject"]) == (FROM, "ana@example.org", "Mañana")
    assert message.get_content().replace("\r\n", "\n").rstrip("\n") == "El niño\n.\nllega a las 9\n."
    assert told == message["Message-ID"] == f"<{hashlib.sha256(KEY.encode()).hexdigest()}@example.org>"
    assert cast("bytes", envelope.content).isascii()


@pytest.mark.parametrize(
    "fields",
    [
        {"to": "ana"},
        {"to": "ana@"},
        {"to": "@example.org"},
        {"to": "ana@example.org, bob@example.org"},
        {"to": "ana@example.org\r\nRCPT TO:<eve@example.org>"},
        {"to": "ana@example.org\n"},
        {"to": "<ana@example.org>"},
        {"to": "Ana <ana@example.org>"},
        {"to": '"a b"@example.org'},
        {"to": "ñ@example.org"},
        {"to": "ana@ex ample.org"},
        {"subject": "Hi\r\nBcc: eve@example.org"},
        {"subject": "Hi\nX: y"},
        {"subject": "Hi\rX: y"},
        {"subject": "\ud800"},
        {"subject": "=?utf-8?q?Invoice=0D=0AReply-To:_eve@example.org=0D=0A=0D=0APay_to_another_account?="},
        {"subject": "Hi =?utf-8?q?a=0AX:_y?="},
        {"subject": "=?utf-8?b?cGFzc3dvcmQgc2VjcmV0?="},
        {"subject": "what=? no"},
        {"subject": "Hi\0there"},
        {"subject": "Hi\u202ethere"},
        {"to": "=?utf-8?q?a=0D=0ABcc:_eve@example.org?=@example.org"},
        {"to": "=?us-ascii?q?ana?=@example.org"},
        {"body": "\ud800"},
    ],
)
async def test_what_would_write_headers_or_other_recipients_is_refused_before_anything_is_said(
    post: Post, fields: dict[str, str]
) -> None:
    assert await refused(tools(post), **fields) == "ADDRESS_INVALID"
    assert post.taken == []


@pytest.mark.parametrize(
    "subject",
    ["", "50% = half? Yes", "¿Mañana a las 9?", "Acta nº 3 — «revisión» 😀", "x" * 200, "a  b   c"],
)
async def test_the_subject_a_recipient_reads_is_the_one_that_was_decided_about(post: Post, subject: str) -> None:
    await send(tools(post), subject=subject)
    (envelope,) = post.taken
    assert read(envelope)["Subject"] == subject
    assert sorted(read(envelope).keys()) == HEADERS


async def test_a_recipient_the_server_refuses_was_sent_nothing(post: Post) -> None:
    post.refuse_rcpt = "550 no such user here: secret-internal-name"
    with pytest.raises(ToolFailedError) as caught:
        await send(tools(post))
    assert caught.value.code == "RECIPIENT_REFUSED"
    assert "secret-internal-name" not in str(caught.value)
    assert post.taken == []


async def test_a_recipient_the_server_does_not_take_yet_is_not_refused_for_good(post: Post) -> None:
    post.refuse_rcpt = "450 greylisted, try again in five minutes"
    assert (code := await refused(tools(post))) == "MAIL_UNAVAILABLE"
    assert code not in FINAL_ERRORS
    assert post.taken == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [("552 too large", "MAIL_REFUSED"), ("451 later", "MAIL_UNAVAILABLE"), ("421 closing", "MAIL_UNAVAILABLE")],
)
async def test_a_message_the_server_refuses_was_not_sent(post: Post, answer: str, code: str) -> None:
    post.answer = answer
    assert await refused(tools(post)) == code


async def test_a_connection_cut_after_the_message_leaves_it_in_doubt(post: Post) -> None:
    post.cut = True
    with pytest.raises(MailUnknownError):
        await send(tools(post))
    assert len(post.taken) == 1


async def test_a_server_that_never_answers_the_message_leaves_it_in_doubt(post: Post) -> None:
    post.silent = True
    with pytest.raises(MailUnknownError):
        await send(tools(post, answer_seconds=0.3))
    assert len(post.taken) == 1


async def test_a_server_that_took_the_message_and_stalls_at_the_goodbye_took_it(post: Post) -> None:
    post.stalls = True
    async with asyncio.timeout(20):
        told = await send(tools(post, answer_seconds=3_600.0))
    assert told == read(post.taken[0])["Message-ID"]


async def test_a_server_that_leaves_before_it_asks_for_the_message_was_sent_nothing(post: Post) -> None:
    post.leaves_at_data = True
    mail = tools(post)
    assert await refused(mail) == "MAIL_UNAVAILABLE"
    assert await mail.reconcile_mail(asked()) == Reconciled("not_done")
    assert post.taken == []


async def test_a_message_that_cannot_be_noted_is_not_sent(post: Post, journal: Path) -> None:
    mail = tools(post, journal)
    crashpoints.install(lambda point: journal.rename(journal.with_name("gone")) if point.endswith("accepted") else None)
    try:
        assert await refused(mail) == "NOT_NOTED"
    finally:
        crashpoints.install(None)
    assert post.taken == []


async def test_lines_that_begin_with_a_dot_arrive_as_they_were_written(post: Post) -> None:
    await send(tools(post), body="uno\n.\n..dos\nRSET\n.")
    assert read(post.taken[0]).get_content().splitlines() == ["uno", ".", "..dos", "RSET", "."]
    assert len(post.taken) == 1


def _send_and_die(port: int, folder: str, point: str) -> None:
    def hook(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoints.install(hook)
    settings = MailSettings(host="127.0.0.1", port=port, sender=FROM, tls="none")
    asyncio.run(MailTools(settings, EffectJournal(Path(folder))).send_email(asked()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "state", "taken"),
    [
        ("agent.send_email.accepted", "not_done", 0),
        ("agent.send_email.noted", "unknown", 0),
        ("agent.send_email.sent", "unknown", 1),
        ("agent.send_email.kept", "done", 1),
    ],
)
async def test_a_process_killed_leaves_doubt_only_between_the_end_of_the_message_and_the_servers_word(
    post: Post, journal: Path, point: str, state: str, taken: int
) -> None:
    dying = multiprocessing.get_context("spawn").Process(target=_send_and_die, args=(post.port, str(journal), point))
    dying.start()
    await asyncio.to_thread(dying.join, 60)
    assert dying.exitcode == -signal.SIGKILL
    mail = tools(post, journal)
    assert (await mail.reconcile_mail(asked())).state == state
    assert len(post.taken) == taken
    if state == "unknown":
        with pytest.raises(MailUnknownError):
            await send(mail)
    else:
        message_id = await send(mail)
        assert [read(envelope)["Message-ID"] for envelope in post.taken] == [message_id]


def test_what_is_waited_for_a_server_is_less_than_the_tools_own_time() -> None:
    settings = MailSettings("127.0.0.1", 25, FROM)
    waited = settings.open_seconds + settings.answer_seconds + GOODBYE_SECONDS
    assert waited < SEND_EMAIL.contract.timeout_seconds


async def test_an_answer_that_is_neither_yes_nor_no_leaves_it_in_doubt(post: Post) -> None:
    post.answer = "354 go on"
    with pytest.raises(MailUnknownError):
        await send(tools(post))


async def test_a_server_that_is_not_there_or_says_nothing_was_sent_nothing() -> None:
    async def mute(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3_600)

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    post = Post()
    post.port = server.sockets[0].getsockname()[1]
    assert await refused(tools(post, open_seconds=0.3)) == "MAIL_UNAVAILABLE"
    server.close()
    await asyncio.sleep(0)
    assert await refused(tools(post, open_seconds=5.0)) == "MAIL_UNAVAILABLE"


async def test_starttls_is_demanded_and_the_name_of_the_certificate_is_checked(post: Post, tmp_path: Path) -> None:
    assert await refused(tools(post, tls="starttls")) == "MAIL_UNAVAILABLE"
    context, trusted = serving_context(tmp_path, "localhost")
    async with serving(Post(), tls=context, require_starttls=True) as safe:
        await send(tools(safe, host="localhost", tls="starttls", ca_file=trusted))
        assert len(safe.taken) == 1
        assert await refused(tools(safe, tls="starttls", ca_file=trusted)) == "MAIL_UNAVAILABLE"  # 127.0.0.1 is no name
        assert await refused(tools(safe, host="localhost", tls="starttls")) == "MAIL_UNAVAILABLE"
        assert len(safe.taken) == 1


async def test_tls_from_the_first_byte_works_and_is_checked(tmp_path: Path) -> None:
    context, trusted = serving_context(tmp_path, "localhost")
    async with serving(Post(), tls=context, inside=True) as safe:
        await send(tools(safe, host="localhost", tls="tls", ca_file=trusted))
        assert await refused(tools(safe, host="localhost", tls="tls")) == "MAIL_UNAVAILABLE"
        assert len(safe.taken) == 1


async def test_a_user_logs_in_and_a_wrong_password_sends_nothing_and_stands_in_no_text(tmp_path: Path) -> None:
    context, trusted = serving_context(tmp_path, "localhost")
    safe = Post()
    more = {"authenticator": safe.login, "auth_required": True}
    async with serving(safe, tls=context, **more):
        how: dict[str, Any] = {"host": "localhost", "tls": "starttls", "ca_file": trusted, "user": "agent"}
        await send(tools(safe, password=PASSWORD, **how))
        assert (safe.logins, len(safe.taken)) == (["agent"], 1)
        with pytest.raises(ToolFailedError) as caught:
            await send(tools(safe, password="wr0ng-s3cret", **how))
        assert caught.value.code == "MAIL_REFUSED"
        assert "wr0ng-s3cret" not in repr(caught.value)
        assert len(safe.taken) == 1
    assert PASSWORD not in repr(MailSettings("h", 1, FROM, password=PASSWORD))
