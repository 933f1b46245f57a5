"""One delivery: a connection to an address that was checked, and a post or a mail over it.

A name is resolved once, every address it has is checked, and the connection goes to one of those: a name that resolves
differently a moment later is not looked up again. No proxy is used and no redirect followed. What a sink answers is
never read beyond its head, and never logged. A delivery ends at its time, whatever its peer does meanwhile.
"""

from __future__ import annotations

import contextlib
import http.client
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from phylactery_chassis.util.addresses import is_never_a_peer, is_public

from phylactery_riskgate.notices.config import EmailEntry, Sink, Url

_MAX_RETRY_AFTER: Final = 3_600.0
_REDIRECTS: Final = range(300, 400)
_TAKEN: Final = range(200, 300)
_PAUSED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class SinkError(Exception):
    """A delivery that failed: a code of a closed list, and a sentence without anything the sink said.

    ``retry_after`` is how many seconds the sink wants to be left alone. ``gone`` says that it will never take any.
    """

    def __init__(self, code: str, told: str, *, retry_after: float = 0.0, gone: bool = False) -> None:
        super().__init__(told)
        self.code, self.told, self.retry_after, self.gone = code, told, retry_after, gone


@dataclass(frozen=True, slots=True)
class Post:
    """What an HTTP sink is sent."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = field(default="", repr=False)
    """In place of the URL's own path."""


class Line:
    """The connection of one delivery; it is cut at its end, or when the process stops."""

    def __init__(self, seconds: float, *, private: bool) -> None:
        """``private`` says that the peer may be on this machine or a private network."""
        self._end, self._private = time.monotonic() + seconds, private
        self._lock, self._cut = threading.Lock(), False
        self._socket: socket.socket | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[Line]:
        """Cut the connection at its time, and turn every failure within the block into a SinkError."""
        timer = threading.Timer(self._left, self.cut)
        timer.daemon = True
        timer.start()
        try:
            yield self
        except SinkError as error:
            raise (self._late() if self._over and error.code == "UNREACHABLE" else error) from None
        except ssl.SSLCertVerificationError as error:
            raise SinkError("CERTIFICATE", f"its certificate is not trusted: {error.verify_message}") from None
        except smtplib.SMTPResponseException as error:
            raise SinkError(f"SMTP_{error.smtp_code}", f"the mail server answered {error.smtp_code}") from None
        except smtplib.SMTPRecipientsRefused as error:
            code = next((one[0] for one in error.recipients.values()), 550)
            raise SinkError(f"SMTP_{code}", f"the mail server refused every recipient ({code})") from None
        except smtplib.SMTPNotSupportedError:
            raise SinkError("TLS", "the mail server offers no STARTTLS, or no way to sign in") from None
        except (OSError, smtplib.SMTPException, http.client.HTTPException, ssl.SSLError) as error:
            if self._over or isinstance(error, TimeoutError):
                raise self._late() from None
            if isinstance(error, ssl.SSLError):
                raise SinkError("TLS", "no TLS connection could be made") from None
            raise SinkError("BROKEN", f"the connection ended early ({type(error).__name__})") from None
        finally:
            timer.cancel()
            with self._lock:
                if self._socket is not None:
                    self._socket.close()
                    self._socket = None

    def cut(self) -> None:
        """End the connection, whatever is read or written on it."""
        with self._lock:
            self._cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def open(self, host: str, port: int) -> socket.socket:
        """Return a connection to a checked address of a host. Raise SinkError."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise SinkError("UNRESOLVED", f"{host} has no address") from None
        for entry in found:
            self._check(host, str(entry[4][0]))
        why = "no address"
        for family, kind, protocol, _, address in found:
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(max(0.01, self._left))
            try:
                connection.connect(address)
                self._hold(connection)
            except OSError as error:
                connection.close()
                why = type(error).__name__
            else:
                return connection
        raise SinkError("UNREACHABLE", f"{host}:{port} takes no connection ({why})")

    def check_time(self) -> None:
        """Raise SinkError if the time is over."""
        if self._over:
            raise self._late()

    def _check(self, host: str, text: str) -> None:
        address = ip_address(text.partition("%")[0])
        if is_never_a_peer(address):
            raise SinkError("ADDRESS_REFUSED", f"{host} is a link-local, metadata or multicast address, or none")
        if not self._private and not is_public(address):
            told = f"{host} is on this machine or a private network; if that is meant, say allow_private: true"
            raise SinkError("ADDRESS_REFUSED", told)

    def _hold(self, connection: socket.socket) -> None:
        """Keep a second handle: TLS takes over the first one, and cutting must not disturb its state."""
        with self._lock:
            if self._cut:
                raise TimeoutError
            self._socket = connection.dup()

    @property
    def _left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def _over(self) -> bool:
        return self._cut or self._left <= 0

    def _late(self) -> SinkError:
        return SinkError("TIMEOUT", "it did not answer in time")


@lru_cache(maxsize=64)
def _trust(ca_file: str | None, _stamp: tuple[int, ...]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _context(sink: Sink) -> ssl.SSLContext:
    """Return what is trusted, read anew where the file has changed."""
    try:
        seen = None if sink.ca_file is None else Path(sink.ca_file).stat()
        return _trust(sink.ca_file, () if seen is None else (seen.st_ino, seen.st_size, seen.st_mtime_ns))
    except (OSError, ssl.SSLError):
        raise SinkError("CERTIFICATE", f"ca_file {sink.ca_file} holds no certificates that can be read") from None


def post(line: Line, sink: Sink, url: Url, message: Post) -> None:
    """Post a notice; a 2xx status says that it was taken. Raise SinkError."""
    with line.held():
        connection = line.open(url.host, url.port)
        made: http.client.HTTPConnection
        if url.tls:
            context = _context(sink)
            connection = context.wrap_socket(connection, server_hostname=url.host)
            made = http.client.HTTPSConnection(url.host, url.port, context=context)
        else:
            made = http.client.HTTPConnection(url.host, url.port)
        made.sock, made.auto_open = connection, 0
        headers = {"user-agent": "phylactery-riskgate", "connection": "close", **message.headers}
        try:
            made.request("POST", message.path or url.path, message.body, headers)
            response = made.getresponse()
            status, retry_after = response.status, response.headers.get("retry-after", "")
        finally:
            connection.close()
        line.check_time()  # a head that was cut short reads like a whole one
        _judge(status, retry_after)


def _judge(status: int, retry_after: str) -> None:
    if status in _TAKEN:
        return
    code = f"HTTP_{status}" if 100 <= status < 600 else "HTTP_OTHER"  # noqa: PLR2004 - what HTTP has
    if status == HTTPStatus.GONE:
        raise SinkError(code, "it said that it is gone (410), and gets no more notices", gone=True)
    if status in _REDIRECTS:
        raise SinkError(code, f"it redirects ({status}), which is not followed; name the place it moved to")
    seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 8 else 0.0  # noqa: PLR2004
    pause = min(seconds, _MAX_RETRY_AFTER) if status in _PAUSED else 0.0
    raise SinkError(code, f"it answered {status}", retry_after=pause)


class _Mail(smtplib.SMTP):
    """An SMTP client over a connection that was checked; with ``context`` it begins with TLS."""

    def __init__(self, line: Line, entry: EmailEntry, context: ssl.SSLContext | None) -> None:
        self._line, self._context = line, context
        super().__init__(entry.server, entry.port, local_hostname="riskgate", timeout=entry.timeout_seconds)

    def _get_socket(self, host: str, port: int, timeout: Any) -> socket.socket:  # noqa: ARG002 - the line has its own
        opened = self._line.open(host, port)
        return opened if self._context is None else self._context.wrap_socket(opened, server_hostname=host)


def mail(line: Line, sink: Sink, message: EmailMessage) -> None:
    """Send a mail; at least one recipient was accepted. Raise SinkError."""
    entry = sink.entry
    assert isinstance(entry, EmailEntry), "only these send mail"
    with line.held():
        context = None if entry.tls == "none" else _context(sink)
        client = _Mail(line, entry, context if entry.tls == "tls" else None)
        try:
            if entry.tls == "starttls":
                client.starttls(context=context)
            if entry.user:
                client.login(entry.user, sink.secret("password_file"))
            client.send_message(message)
            with contextlib.suppress(OSError, smtplib.SMTPException):
                client.quit()
        finally:
            client.close()
