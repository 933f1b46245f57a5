"""Targets that http_get and send_email may reach, from settings read once at start. Nothing here opens a connection."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from phylactery_chassis.util.addresses import Address, is_public

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Scheme = Literal["http", "https"]

MAX_URL_CHARS: Final = 2_000
SWITCHES: Final[dict[str, str]] = {"http_get": "AGENT_HTTP_ALLOW", "send_email": "AGENT_SMTP_HOST"}
"""The setting that switches each tool on."""
_PORTS: Final[dict[str, int]] = {"http": 80, "https": 443}
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL}){{0,126}}")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_URL: Final = re.compile(r"(https?)://([^/?#]*)(/[^?#]*)?(\?[^#]*)?(#.*)?", re.IGNORECASE)
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


class UrlError(ValueError):
    """Error for a URL or list entry that parsers could interpret differently, with the fault."""


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https URL in the one form it is fetched in; host has no brackets, target begins with a slash."""

    scheme: Scheme
    host: str
    port: int
    target: str = "/"

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return the URL."""
        return f"{self.scheme}://{self.authority}{self.target}"


def read_url(text: str) -> Url:
    """Parse an absolute URL strictly, refusing what two parsers could read as two hosts. Raise UrlError."""
    if len(text) > MAX_URL_CHARS:
        raise UrlError(f"a URL has at most {MAX_URL_CHARS} characters")
    if _PRINTABLE.fullmatch(text) is None:
        raise UrlError("a URL holds no spaces and nothing beyond ASCII; write a name in its xn-- form")
    if "\\" in text:
        raise UrlError("a URL holds no backslash")
    found = _URL.fullmatch(text)
    if found is None:
        raise UrlError("it is not an http:// or https:// URL")
    scheme: Scheme = "http" if found[1].lower() == "http" else "https"
    host, port = _authority(found[2], _PORTS[scheme])
    return Url(scheme, host, port, (found[3] or "/") + (found[4] or ""))


def _authority(text: str, default: int) -> tuple[str, int]:
    if "@" in text:
        raise UrlError("a URL holds no user and no password")
    if "%" in text:
        raise UrlError("a host holds no percent sign")
    bracketed = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?", text)
    plain = re.fullmatch(r"([^\[\]:]+)(?::([0-9]{1,5}))?", text)
    found = bracketed or plain
    if found is None:
        raise UrlError("it names no host")
    port = int(found[2]) if found[2] else default
    if not 1 <= port <= 65_535:  # noqa: PLR2004 - what a port is
        raise UrlError("there is no such port")
    return (str(_ipv6(found[1])) if bracketed else _host(found[1].lower())), port


def _ipv6(text: str) -> ipaddress.IPv6Address:
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        raise UrlError("there is no such IPv6 address") from None


def _host(text: str) -> str:
    """Return a name or a dotted-decimal IPv4 address; every other spelling of an address is refused."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        pass
    if len(text) > 253 or _NAME.fullmatch(text) is None or _NUMBER.fullmatch(text.rpartition(".")[2]):  # noqa: PLR2004
        raise UrlError("it names no host that everybody reads alike")
    return text


def address_of(host: str) -> Address | None:
    """Return the address a host denotes, or None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """One list entry: a scheme, a host or every host below a domain, a port, and permitted private networks.

    networks are the private addresses the name may resolve to; an address named directly is one of them.
    """

    scheme: Scheme
    host: str
    port: int
    below: bool = False
    networks: tuple[Network, ...] = ()

    def covers(self, url: Url) -> bool:
        """Return True if the entry covers a URL."""
        if (url.scheme, url.port) != (self.scheme, self.port):
            return False
        return url.host.endswith(f".{self.host}") if self.below else url.host == self.host

    def reaches(self, address: Address) -> bool:
        """Return True if the entry allows a connection to an address."""
        return any(address in network for network in self.networks) or is_public(address)


def read_allowed(entries: Sequence[str]) -> tuple[AllowedHost, ...]:
    """Parse [http://|https://]HOST[:PORT][=NETWORK,…]; *.DOMAIN is every host below a domain. Raise UrlError."""
    return tuple(_entry(entry.strip().lower()) for entry in entries)


def _entry(text: str) -> AllowedHost:
    place, _, networks = text.partition("=")
    place = place if "://" in place else f"https://{place}"
    below = "://*." in place
    try:
        url = read_url(place.replace("://*.", "://", 1))
        if url.target != "/" or "#" in place or "?" in place:
            raise UrlError("an entry ends with its host or port")
        named = address_of(url.host)
        if below and named is not None:
            raise UrlError("an address has no hosts below it")
        allowed = tuple(ipaddress.ip_network(one) for one in networks.split(",") if one)
    except ValueError as error:
        raise UrlError(f"{text[:100]!r}: {error}") from None
    own = (ipaddress.ip_network(named),) if named is not None else ()
    return AllowedHost(url.scheme, url.host, url.port, below, (*allowed, *own))


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The limits of http_get. max_bytes limits the decompressed body; seconds the whole call with redirects."""

    allowed: tuple[AllowedHost, ...]
    max_bytes: int = 1024 * 1024
    seconds: float = 15.0
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The SMTP server of send_email, and the sender."""

    host: str
    port: int
    sender: str
    tls: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: Path | None = None
    open_seconds: float = 20.0
    """Timeout for everything before the message itself."""
    answer_seconds: float = 30.0
    """Timeout for the server's answer to the message; together with open_seconds, below the tool's own timeout."""
