"""notices.yaml: the sinks, what each is told, and of which calls. A wrong file is refused with its line."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from phylactery_chassis.settings import FollowedSecret
from pydantic import BaseModel, ConfigDict, Field, model_validator

from phylactery_riskgate.domain.bundle.bundle import Identifier, Name
from phylactery_riskgate.domain.documents import BundleError, Document, Faults, Place, read_document
from phylactery_riskgate.notices.model import OF_APPROVALS, Event
from phylactery_riskgate.notices.signing import SecretError, secrets_of

NOTICES_FILE: Final = "notices.yaml"
MAX_FILE_BYTES: Final = 256 * 1024
_MAX_URL: Final = 2_000
_TARGET = re.compile(r"[\x21-\x7e]+")
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")

EventName = Literal[
    "approval.waiting",
    "approval.reminder",
    "approval.decided",
    "approval.expired",
    "calls.frozen",
    "calls.unfrozen",
    "limit.reached",
    "effect.in_doubt",
    "bundle.activated",
]
ALL_EVENTS: Final[tuple[EventName, ...]] = EventName.__args__  # type: ignore[attr-defined]
Level = Literal["low", "medium", "high", "critical"]
Language = Literal["en", "es"]
Address = Annotated[str, Field(pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,190}$")]
FileName = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[^\x00]*$")]


class _Strict(BaseModel):
    # a URL or a token may be a secret, so no error repeats it
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class RetryEntry(_Strict):
    """When a notice that a sink did not take is sent again; the pause doubles with each try."""

    first_seconds: Annotated[float, Field(ge=0.05, le=3_600, description="pause after the first try")] = 5.0
    longest_seconds: Annotated[float, Field(ge=0.05, le=86_400, description="longest pause")] = 3_600.0
    give_up_hours: Annotated[float, Field(gt=0, le=168, description="after this long it is not sent again")] = 24.0


class SinkEntry(_Strict):
    """What every sink has: what it is told, and of which calls."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$", description="name in status, logs and metrics")]
    events: Annotated[list[EventName], Field(min_length=1, description="what it is told; none named: everything")] = (
        list(ALL_EVENTS)
    )
    tenants: Annotated[list[Identifier], Field(max_length=200, description="of which tenants; none named: all")] = []
    classes: Annotated[
        list[Name],
        Field(max_length=20, description="approvals of which classes; none named: those that another person answers"),
    ] = []
    groups: Annotated[
        list[Name],
        Field(max_length=20, description="approvals that members of one of these groups may answer; none named: all"),
    ] = []
    stakes: Annotated[list[Level], Field(description="calls of which stakes; none named: all")] = []
    risks: Annotated[list[Level], Field(description="calls of tools of which risk; none named: all")] = []
    reminders: Annotated[
        list[Annotated[int, Field(ge=1, le=99)]],
        Field(max_length=5, description="at how many per cent of an approval's time it is reminded"),
    ] = [50, 90]
    language: Annotated[Language, Field(description="language of its texts")] = "en"
    show: Annotated[
        Literal["names", "arguments"],
        Field(description="arguments: also the control arguments of a call, as a card shows them"),
    ] = "names"
    allow_private: Annotated[
        bool, Field(description="it may be on this machine or a private network, and speak plain HTTP or SMTP")
    ] = False
    ca_file: Annotated[FileName, Field(description="certificates to trust instead of the system's")] | None = None
    timeout_seconds: Annotated[float, Field(ge=0.1, le=60, description="how long one delivery may take")] = 10.0
    retry: RetryEntry = RetryEntry()


class HttpEntry(SinkEntry):
    """A sink that takes notices as HTTP posts."""

    url: Annotated[str, Field(max_length=_MAX_URL, description="where to post; url_file keeps it out of here")] = ""
    url_file: Annotated[FileName, Field(description="file that holds the URL, which is a secret of chats")] | None = (
        None
    )
    token_file: Annotated[FileName, Field(description="file with a bearer token for the URL")] | None = None

    @model_validator(mode="after")
    def _one_url(self) -> Self:
        if bool(self.url) == (self.url_file is not None):
            raise ValueError("url or url_file names the place: give one of the two")
        if self.url:
            read_url(self.url, private=self.allow_private)
        return self


class WebhookEntry(HttpEntry):
    """A webhook after Standard Webhooks: JSON, signed."""

    kind: Literal["webhook"]
    secret_file: Annotated[
        FileName, Field(description="file with the secret, whsec_…; a second line is another one, to rotate")
    ]


class SlackEntry(HttpEntry):
    """An incoming webhook of Slack."""

    kind: Literal["slack"]


class TeamsEntry(HttpEntry):
    """A workflow of Teams that posts adaptive cards."""

    kind: Literal["teams"]


class DiscordEntry(HttpEntry):
    """A webhook of a Discord channel."""

    kind: Literal["discord"]


class NtfyEntry(HttpEntry):
    """A topic of an ntfy server; the URL is that of the topic."""

    kind: Literal["ntfy"]

    @model_validator(mode="after")
    def _topic(self) -> Self:
        if self.url and not _TOPIC.fullmatch(read_url(self.url, private=self.allow_private).path.rpartition("/")[2]):
            raise ValueError("url ends with the topic, as in https://ntfy.sh/my-topic")
        return self


class EmailEntry(SinkEntry):
    """An SMTP server and who gets the mail."""

    kind: Literal["email"]
    server: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:_-]+$", description="its host")]
    port: Annotated[int, Field(ge=1, le=65_535, description="its port")] = 587
    tls: Annotated[
        Literal["starttls", "tls", "none"], Field(description="none needs allow_private, and takes no password")
    ] = "starttls"
    user: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="name to sign in with")] = ""
    password_file: Annotated[FileName, Field(description="file with the password")] | None = None
    sender: Annotated[Address, Field(description="address in From")]
    to: Annotated[list[Address], Field(min_length=1, max_length=50, description="who gets the mail")]

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if bool(self.user) != (self.password_file is not None):
            raise ValueError("user and password_file go together")
        if self.tls == "none" and (self.user or not self.allow_private):
            raise ValueError("tls: none would send mail in clear; it needs allow_private: true, and no password")
        return self


Entry = WebhookEntry | SlackEntry | TeamsEntry | DiscordEntry | NtfyEntry | EmailEntry
_KINDS: Final = frozenset({"webhook", "slack", "teams", "discord", "ntfy", "email"})


class NoticesFile(_Strict):
    """The contents of notices.yaml."""

    link: Annotated[
        str,
        Field(
            max_length=_MAX_URL,
            description="address of an approval for people, with {approval_id} in it; none: no link",
        ),
    ] = ""
    sinks: Annotated[list[Annotated[Entry, Field(discriminator="kind")]], Field(max_length=50)]

    @model_validator(mode="after")
    def _linked(self) -> Self:
        if self.link and (
            not self.link.startswith(("https://", "http://"))
            or "{approval_id}" not in self.link
            or not _TARGET.fullmatch(self.link)
        ):
            raise ValueError("link is an address with {approval_id} in it, as in https://gate.example/a/{approval_id}")
        return self


@dataclass(frozen=True, slots=True)
class Url:
    """Where to post. The path may be a secret: only ``place`` is ever shown."""

    tls: bool
    host: str
    port: int
    path: str = field(repr=False)

    @property
    def place(self) -> str:
        """Return scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def read_url(text: str, *, private: bool) -> Url:
    """Parse the URL of a sink. Raise ValueError, which does not repeat it."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("url is no URL; it begins with https:// and a host") from None
    if parts.scheme not in ("https", "http") or not host or not _TARGET.fullmatch(text):
        raise ValueError("url must be one https URL with a host, as in https://hooks.example/T/B")
    if parts.username is not None or parts.password is not None:
        raise ValueError("url holds credentials; put a token into token_file")
    if parts.fragment:
        raise ValueError("url holds a fragment, which no server sees")
    if parts.scheme == "http" and not private:
        raise ValueError("url is plain http, which anybody between can read; use https, or say allow_private: true")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(parts.scheme == "https", host, port or (443 if parts.scheme == "https" else 80), target)


def _check_certificates(path: Path) -> None:
    """Raise ValueError for a file in which there is no certificate to trust."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f"ca_file: {path} holds no certificate; name a file with certificates in PEM") from None
    except OSError:
        raise ValueError(f"ca_file: {path} cannot be read; name a file that can") from None


@dataclass(frozen=True, slots=True)
class Called:
    """What sinks choose notices by; what is not known of an event matches every sink."""

    tenant: str
    approval_class: str = ""
    by_requester: bool = False
    stakes: str = ""
    risk: str = ""
    groups: frozenset[str] = frozenset()
    """Whose members may answer; empty where anybody who answers approvals may, or nobody does."""


class Sink:
    """A sink with its secrets, whose files are read again when they change, so that rotation needs no restart."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        """Read the files it names, relative to ``folder``. Raise ValueError."""
        self.entry, self.name, self.kind = entry, entry.name, entry.kind
        self.ca_file = None if entry.ca_file is None else str(folder / entry.ca_file)
        if self.ca_file is not None:
            _check_certificates(Path(self.ca_file))
        names = ("url_file", "token_file", "secret_file", "password_file")
        given = {name: getattr(entry, name, None) for name in names}
        self._secrets = {name: FollowedSecret(folder / file, name) for name, file in given.items() if file is not None}
        empty = next((name for name, secret in self._secrets.items() if not secret()), "")
        if empty:
            raise ValueError(f"{empty}: the file is empty")
        if isinstance(entry, WebhookEntry):
            _ = self.signing_keys
        if isinstance(entry, HttpEntry):
            url = self.url
            if entry.kind == "ntfy" and not _TOPIC.fullmatch(url.path.rpartition("/")[2]):
                raise ValueError("url_file: the URL ends with the topic")

    @property
    def url(self) -> Url:
        """Return where an HTTP sink takes posts. Raise ValueError if its file holds no URL now."""
        assert isinstance(self.entry, HttpEntry), "only these have one"
        if self.entry.url:
            return read_url(self.entry.url, private=self.entry.allow_private)
        try:
            return read_url(self.secret("url_file"), private=self.entry.allow_private)
        except ValueError as error:
            raise ValueError(f"url_file: {error}") from None

    @property
    def signing_keys(self) -> list[bytes]:
        """Return the keys of a webhook, each of which signs. Raise ValueError if its file holds none now."""
        try:
            return secrets_of(self.secret("secret_file"))
        except SecretError as error:
            raise ValueError(f"secret_file: {error}") from None

    def secret(self, name: str) -> str:
        """Return the text of a secret file, empty if the sink names none."""
        found = self._secrets.get(name)
        return "" if found is None else found()

    @property
    def place(self) -> str:
        """Return where it is, without what may be a secret."""
        entry = self.entry
        return f"smtp://{entry.server}:{entry.port}" if isinstance(entry, EmailEntry) else self.url.place

    @property
    def fingerprint(self) -> str:
        """Return the hash of its settings and its URL."""
        told = f"{self.entry.model_dump_json()}\n{self.secret('url_file')}"
        return "sha256:" + hashlib.sha256(told.encode()).hexdigest()

    def takes(self, event: Event, called: Called) -> bool:
        """Return True if the sink is told of an event; a freeze of every tenant has none, and concerns all."""
        entry = self.entry
        if str(event) not in entry.events or (entry.tenants and called.tenant and called.tenant not in entry.tenants):
            return False
        if event in OF_APPROVALS:
            wanted = called.approval_class in entry.classes if entry.classes else not called.by_requester
            if not wanted or (entry.groups and called.groups and called.groups.isdisjoint(entry.groups)):
                return False
        filters = ((entry.stakes, called.stakes), (entry.risks, called.risk))
        return all(not chosen or not value or value in chosen for chosen, value in filters)


@dataclass(frozen=True, slots=True)
class Notices:
    """The sinks of one file."""

    sinks: tuple[Sink, ...] = ()
    link: str = ""

    @property
    def by_name(self) -> Mapping[str, Sink]:
        """Return the sinks by name."""
        return {one.name: one for one in self.sinks}


NO_NOTICES: Final = Notices()


def read_notices(path: Path) -> Notices:
    """Read a file of sinks.

    Raises:
        BundleError: it cannot be read or is wrong; lists every fault, with file and line.
    """
    try:
        data = path.read_bytes()[: MAX_FILE_BYTES + 1]
        text = data.decode()
    except OSError as error:
        raise BundleError(str(path), 0, f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BundleError(str(path), line, "is not UTF-8 text") from None
    if len(data) > MAX_FILE_BYTES:
        raise BundleError(str(path), 0, f"is larger than {MAX_FILE_BYTES} bytes")
    document = read_document(str(path), text)
    parsed = document.parse(NoticesFile, _without_kind)
    faults, names = Faults(), set[str]()
    sinks = []
    for number, entry in enumerate(parsed.sinks):
        place = ("sinks", number)
        if entry.name in names:
            faults.add(document.error((*place, "name"), f"two sinks are named '{entry.name}'"))
        names.add(entry.name)
        sinks.append(faults.catch(partial(_sink, document, place, entry, path.parent)))
    faults.check()
    return Notices(tuple(one for one in sinks if one is not None), parsed.link)


def _sink(document: Document, place: Place, entry: Entry, folder: Path) -> Sink:
    try:
        return Sink(entry, folder)
    except ValueError as error:
        name = str(error).partition(":")[0]
        raise document.error((*place, name), str(error)) from None


def _without_kind(place: Place) -> Place:
    """Return where a fault is in the file: within a union pydantic puts the kind into the path."""
    return tuple(one for at, one in enumerate(place) if at != 2 or one not in _KINDS)  # noqa: PLR2004 - sinks/number/kind


def schema() -> dict[str, Any]:
    """Return the JSON Schema of notices.yaml."""
    found = NoticesFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": NOTICES_FILE, **found}
