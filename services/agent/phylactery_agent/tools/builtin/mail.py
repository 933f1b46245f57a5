"""The send_email tool: one message to one recipient over SMTP.

A server may accept a message only once it has received the line that ends it (RFC 5321, 4.1.1.4), so every earlier
failure is a plain failure. A durable note is written right before that line is sent, and another one records the
server's answer. A killed process is therefore in doubt only between the two notes: before the first nothing was sent,
after the second the message was sent. The Message-ID is derived from the effect's key, so a person searching for it and
a server that knows it find the same message.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from functools import cached_property
from typing import Final

import aiosmtplib
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.tools.builtin.journal import EffectJournal, JournalNote, JournalUnavailableError
from phylactery_agent.tools.contract import Invocation, Reconciled, ToolFailedError, arguments_of
from phylactery_agent.tools.network_policy import MailSettings
from phylactery_agent.tools.specs import SendEmailArguments

GOODBYE_SECONDS: Final = 1.0
"""Time limit for a server's goodbye after it accepted the message.

With both limits in the settings below the tool's own.
"""
_GO_ON: Final = 354
_TAKEN: Final = 250
_REFUSED: Final = 400
_FOR_GOOD: Final = 500
"""Codes from here on are permanent refusals; below, another attempt may succeed (RFC 5321, 4.2.1)."""
_POLICY: Final = SMTP_POLICY.clone(cte_type="7bit")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}")
_ENCODED: Final = "=?"
_STUFFED: Final = re.compile(rb"(?m)^\.")


class MailTools:
    """The send_email tool over one server."""

    def __init__(self, settings: MailSettings, journal: EffectJournal) -> None:
        self._settings, self._journal = settings, journal

    async def send_email(self, invocation: Invocation) -> str:
        """Hand the message over, once per effect key; return its Message-ID.

        Raises:
            ToolFailedError: ADDRESS_INVALID, RECIPIENT_REFUSED, MAIL_REFUSED, MAIL_UNAVAILABLE, NOT_NOTED: nothing was
            sent.
            MailUnknownError: The message was sent and the server's answer was lost.
        """
        args = arguments_of(invocation, SendEmailArguments)
        message = self._message(args, invocation.effect_key)
        before = await self.reconcile_mail(invocation)
        if before.state == "done":
            return before.output
        if before.state == "unknown":
            raise MailUnknownError
        client = self._client()
        try:
            await self._open(client, args.to)
            reach("agent.send_email.accepted")
            await self._hand_over(client, message, invocation.effect_key)
        finally:
            client.close()
        return str(message["Message-ID"])

    async def reconcile_mail(self, invocation: Invocation) -> Reconciled:
        """Return the outcome of an earlier attempt according to the notes: SMTP offers no way to ask the server."""
        try:
            note = await asyncio.to_thread(self._journal.read, invocation.effect_key)
        except JournalUnavailableError:
            return Reconciled("unknown")
        if note is None:
            return Reconciled("not_done")
        return Reconciled("done", note.after) if note.done else Reconciled("unknown")

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._settings.ca_file)

    def _client(self) -> aiosmtplib.SMTP:
        settings = self._settings
        return aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            use_tls=settings.tls == "tls",
            start_tls=False,  # done below, so that a server without it is refused by name
            tls_context=None if settings.tls == "none" else self._trust,
            timeout=settings.answer_seconds,
        )

    def _message(self, args: SendEmailArguments, effect_key: str) -> EmailMessage:
        settings = self._settings
        if _ADDRESS.fullmatch(args.to) is None or _ENCODED in args.to:
            raise ToolFailedError("ADDRESS_INVALID", "the recipient is not an e-mail address")
        _admit_subject(args.subject)
        message = EmailMessage(policy=_POLICY)
        domain = settings.sender.rpartition("@")[2]
        try:
            message["From"] = Address(addr_spec=settings.sender)
            message["To"] = Address(addr_spec=args.to)
            message["Subject"] = args.subject
            message["Date"] = format_datetime(datetime.now(UTC))
            message["Message-ID"] = f"<{hashlib.sha256(effect_key.encode()).hexdigest()}@{domain}>"
            message.set_content(args.body)
            message.as_bytes()
            same = (str(message["To"]), str(message["Subject"])) == (args.to, args.subject)
        except (ValueError, IndexError, UnicodeError, LookupError, MessageError):
            same = False
        if not same:
            raise ToolFailedError("ADDRESS_INVALID", "the address or the subject cannot stand in a message")
        return message

    async def _open(self, client: aiosmtplib.SMTP, to: str) -> None:
        """Run the SMTP dialog up to the recipient. On any failure nothing was sent; no server text is repeated."""
        settings = self._settings
        try:
            async with asyncio.timeout(settings.open_seconds):
                await client.connect()
                if settings.tls == "starttls":
                    await client.starttls(tls_context=self._trust)
                if settings.user:
                    await client.login(settings.user, settings.password)
                await client.mail(settings.sender)
                await client.rcpt(to)
        except aiosmtplib.SMTPResponseException as error:
            raise _refusal(error) from None
        except Exception as error:  # noqa: BLE001 - before the message, whatever it was, nothing was sent
            why = type(error).__name__
            raise ToolFailedError("MAIL_UNAVAILABLE", f"the mail server cannot be used ({why})") from None

    async def _hand_over(self, client: aiosmtplib.SMTP, message: EmailMessage, effect_key: str) -> None:
        """Send the message, note that its end is about to be sent, send the end, and note the server's answer."""
        note = JournalNote("", "", str(message["Message-ID"]), done=False)
        await self._send_text(client, message.as_bytes())
        await self._note(effect_key, note)
        reach("agent.send_email.noted")
        try:
            # The client's own timeout applies to each answer.
            async with asyncio.timeout(self._settings.answer_seconds):
                answer = await client.execute_command(b".")
        except (aiosmtplib.SMTPException, OSError, TimeoutError, ssl.SSLError):
            raise MailUnknownError from None
        if answer.code >= _REFUSED:
            with contextlib.suppress(JournalUnavailableError):
                await asyncio.to_thread(self._journal.remove, effect_key)
            raise _refusal(aiosmtplib.SMTPDataError(answer.code, ""))
        if answer.code != _TAKEN:
            raise MailUnknownError
        reach("agent.send_email.sent")
        with contextlib.suppress(JournalUnavailableError):  # it was accepted; the ledger records that next
            await asyncio.to_thread(self._journal.write, effect_key, replace(note, done=True))
        reach("agent.send_email.kept")
        with contextlib.suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):  # it was accepted; a failed goodbye does not change that
                await client.quit()

    async def _send_text(self, client: aiosmtplib.SMTP, text: bytes) -> None:
        """Send a message up to the line that ends it: without that line no server accepts it."""
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                answer = await client.execute_command(b"DATA")
                if answer.code == _GO_ON and client.protocol is not None:
                    client.protocol.write(_STUFFED.sub(b"..", text if text.endswith(b"\r\n") else text + b"\r\n"))
                    return
        except (aiosmtplib.SMTPException, OSError, TimeoutError, ssl.SSLError) as error:
            why = type(error).__name__
            raise ToolFailedError("MAIL_UNAVAILABLE", f"the mail server took no message ({why})") from None
        if answer.code >= _REFUSED:
            raise _refusal(aiosmtplib.SMTPDataError(answer.code, ""))
        raise ToolFailedError("MAIL_UNAVAILABLE", f"the mail server took no message ({answer.code})")

    async def _note(self, effect_key: str, note: JournalNote) -> None:
        try:
            await asyncio.to_thread(self._journal.write, effect_key, note)
        except JournalUnavailableError as error:
            raise ToolFailedError("NOT_NOTED", "the effect journal cannot be used") from error


def _admit_subject(subject: str) -> None:
    """Refuse a subject that a recipient would read differently: what is decided about is what is sent.

    An encoded word (RFC 2047) is displayed decoded, may contain a whole header, and has not been inspected.

    Raises:
        ToolFailedError: The subject contains an encoded word or an invisible character.
    """
    if _ENCODED in subject or not subject.isprintable():
        raise ToolFailedError(
            "ADDRESS_INVALID", "the subject holds “=?” or a character that cannot be seen; leave it out"
        )


class MailUnknownError(Exception):
    """Error for a sent message without confirmation that the server accepted it."""


def _refusal(error: aiosmtplib.SMTPResponseException) -> ToolFailedError:
    """Return the error for a server's refusal, without its text; a temporary one is not a refusal."""
    if error.code < _FOR_GOOD:
        return ToolFailedError("MAIL_UNAVAILABLE", f"the mail server takes nothing for the moment ({error.code})")
    if isinstance(error, aiosmtplib.SMTPRecipientRefused):
        return ToolFailedError("RECIPIENT_REFUSED", f"the mail server refuses the recipient ({error.code})")
    return ToolFailedError("MAIL_REFUSED", f"the mail server refuses ({error.code})")
