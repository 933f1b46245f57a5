"""The http_get tool: one page of an allowed host, fetched over a connection to the very address that was checked.

Names are resolved once per hop, every address they have is checked, and the connection goes to one of those, so a name
that resolves differently a moment later is not looked up again. Redirects are followed here and checked like the first
URL. No proxy, cookies or credentials are taken from the environment.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cached_property
from typing import Final
from urllib.parse import urljoin

import httpx

from phylactery_agent.tools.contract import Invocation, ToolFailedError, arguments_of
from phylactery_agent.tools.network_policy import AllowedHost, Url, UrlError, WebSettings, address_of, read_url
from phylactery_agent.tools.specs import HttpGetArguments

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_FIRST_ERROR: Final = 400
_FIRST_FAULT: Final = 500
_PASSING: Final = frozenset({408, 425, 429})
"""Transient status codes, in addition to server errors."""
_HEADERS: Final = {
    "user-agent": "phylactery",
    "accept": "text/*, application/json, application/xml;q=0.9, */*;q=0.1",
    "accept-encoding": "gzip",
}
_TEXT_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/x-ndjson", "application/yaml"}
)
_CHARSETS: Final = frozenset({"utf-8", "us-ascii", "ascii", "utf-16", "iso-8859-1", "iso-8859-15", "windows-1252"})
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return every address the system resolver has for a name. Raise OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class WebTools:
    """The http_get tool under one allow-list."""

    def __init__(self, settings: WebSettings, resolve: Resolve = system_resolve) -> None:
        self._settings, self._resolve = settings, resolve

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """Return the TLS context, created lazily because loading the certificates takes a while."""
        return (
            ssl.create_default_context(cafile=self._settings.ca_file)
            if self._settings.ca_file
            else (httpx.create_ssl_context(trust_env=False))
        )

    async def http_get(self, invocation: Invocation) -> str:
        """Return a line with status, type and final URL, and below it the body as text.

        Raises:
            ToolFailedError: URL_REFUSED, HOST_NOT_ALLOWED, ADDRESS_REFUSED, HTTP_UNREACHABLE, HTTP_STATUS,
            HTTP_REFUSED,
                TOO_MANY_REDIRECTS, RESPONSE_TOO_LARGE, CONTENT_TYPE_REFUSED, TIMEOUT.
        """
        args = arguments_of(invocation, HttpGetArguments)
        try:
            async with asyncio.timeout(self._settings.seconds):
                return await self._follow(_read(args.url))
        except TimeoutError:
            raise ToolFailedError("TIMEOUT", f"no whole answer within {self._settings.seconds:g} seconds") from None

    async def _follow(self, url: Url) -> str:
        for _ in range(MAX_REDIRECTS + 1):
            entry = self._entry(url)
            answer = await self._ask(url, await self._addresses(entry, url))
            if isinstance(answer, str):
                return answer
            url = answer
        raise ToolFailedError("TOO_MANY_REDIRECTS", f"it redirects more than {MAX_REDIRECTS} times")

    def _entry(self, url: Url) -> AllowedHost:
        entry = next((one for one in self._settings.allowed if one.covers(url)), None)
        if entry is None:
            raise ToolFailedError(
                "HOST_NOT_ALLOWED", f"{url.scheme}://{url.host}:{url.port} is not in AGENT_HTTP_ALLOW"
            )
        return entry

    async def _addresses(self, entry: AllowedHost, url: Url) -> Sequence[str]:
        """Return the addresses to connect to, all of them checked; a refused address refuses the host."""
        try:
            found = [url.host] if address_of(url.host) else list(dict.fromkeys(await self._resolve(url.host, url.port)))
        except (OSError, UnicodeError):
            raise ToolFailedError("HTTP_UNREACHABLE", f"{url.host} has no address") from None
        addresses = [address_of(one) for one in found]
        if not addresses or any(one is None or not entry.reaches(one) for one in addresses):
            raise ToolFailedError("ADDRESS_REFUSED", f"{url.host} is a private address, or none")
        return found

    async def _ask(self, url: Url, addresses: Sequence[str]) -> str | Url:
        """Return the page or the redirect target. If an address does not accept a connection, the next one is tried."""
        for address in addresses:
            try:
                return await self._ask_at(url, address)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
            except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
                why = type(error).__name__
                raise ToolFailedError("HTTP_UNREACHABLE", f"the connection to {url.host} failed ({why})") from None
        raise ToolFailedError("HTTP_UNREACHABLE", f"{url.host} takes no connection, or its certificate is not trusted")

    async def _ask_at(self, url: Url, address: str) -> str | Url:
        literal = f"[{address}]" if ":" in address else address
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self._settings.seconds)
        request = httpx.Request(
            "GET",
            f"{url.scheme}://{literal}:{url.port}{url.target}",
            headers={**_HEADERS, "host": url.authority},
            extensions={"sni_hostname": url.host, "timeout": limits},
        )
        # Only the transport is used: a client would apply redirects, cookies and the environment.
        async with httpx.AsyncHTTPTransport(verify=self._trust, trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                return await self._answer(url, response)
            finally:
                await response.aclose()

    async def _answer(self, url: Url, response: httpx.Response) -> str | Url:
        if response.status_code in _REDIRECTS and "location" in response.headers:
            return _read(response.headers["location"], base=str(url))
        if response.status_code >= _FIRST_ERROR:
            passing = response.status_code in _PASSING or response.status_code >= _FIRST_FAULT
            code = "HTTP_STATUS" if passing else "HTTP_REFUSED"
            raise ToolFailedError(code, f"{url.host} answers {response.status_code}")
        kind, charset = _type_of(response)
        text = (await self._body(response)).decode(charset, "replace")
        return f"[{response.status_code} {kind}; {url}]\n{text}"

    async def _body(self, response: httpx.Response) -> bytes:
        """Return the decompressed body; both the received and the decompressed size are limited."""
        packed = response.headers.get("content-encoding", "identity").lower()
        if packed not in {"identity", "gzip", "x-gzip", "deflate"}:
            raise ToolFailedError("CONTENT_TYPE_REFUSED", "it is packed in a way that is not understood")
        most, body = self._settings.max_bytes, bytearray()
        parts = response.aiter_raw() if packed == "identity" else _unpacked(response.aiter_raw(), most)
        async for part in parts:
            body += part
            if len(body) > most:
                raise ToolFailedError("RESPONSE_TOO_LARGE", f"the answer is larger than {most} bytes")
        return bytes(body)


async def _unpacked(parts: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """Yield the decompressed parts, never much more than the limit at once."""
    unpacking, came = zlib.decompressobj(_GZIP_OR_ZLIB), 0
    async for part in parts:
        came += len(part)
        if came > most:
            raise ToolFailedError("RESPONSE_TOO_LARGE", f"the answer is larger than {most} bytes")
        try:
            yield unpacking.decompress(part, most + 1)
        except zlib.error:
            raise ToolFailedError("CONTENT_TYPE_REFUSED", "it does not unpack") from None
        if unpacking.unconsumed_tail:
            raise ToolFailedError("RESPONSE_TOO_LARGE", f"the answer unpacks to more than {most} bytes")
    if not unpacking.eof:
        raise ToolFailedError("HTTP_UNREACHABLE", "the answer ends in the middle")


def _type_of(response: httpx.Response) -> tuple[str, str]:
    """Return the type and the charset of a text body. Raise ToolFailedError for any other type."""
    header = response.headers.get("content-type", "text/plain")
    kind, *parameters = [part.strip().lower() for part in header.split(";")]
    if not kind.isascii() or not (kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))):
        raise ToolFailedError("CONTENT_TYPE_REFUSED", "the answer is not text")
    named = next((one.removeprefix("charset=").strip("\"'") for one in parameters if one.startswith("charset=")), "")
    return kind, named if named in _CHARSETS else "utf-8"


def _read(text: str, base: str = "") -> Url:
    try:
        return read_url(urljoin(base, text) if base else text)
    except UrlError as error:
        raise ToolFailedError("URL_REFUSED", str(error)) from None
    except ValueError:
        raise ToolFailedError("URL_REFUSED", "it redirects to something that is not a URL") from None
