"""Calls of the Graph API: sending, typing, media. Redirects are never followed, and no error repeats a response."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Collection
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from phylactery_gateway.channels.messages import FETCHED_TYPES, Media
from phylactery_gateway.channels.port import Action, MediaError, MediaUnavailableError, SendError
from phylactery_gateway.whatsapp.errors import error_of_response

_OK, _SERVER_FAULTS, _TOO_MANY = 200, 500, 429
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_-]+")


class GraphApi:
    """The Graph API with one token."""

    def __init__(
        self,
        url: str,
        token: Callable[[], str],
        *,
        timeout: float,
        media_hosts: Collection[str],
        client: httpx.AsyncClient,
    ) -> None:
        """``url`` names the version, as in https://graph.facebook.com/v26.0; files come from media_hosts alone."""
        self._url, self._token, self._timeout = url.rstrip("/"), token, timeout
        self._media_hosts, self._client = frozenset(media_hosts), client

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post a call and return its response. Raise SendError."""
        return await self._post(path, json=body)

    async def upload(self, account: str, name: str, mime: str, data: bytes) -> str:
        """Upload a file of a number and return its media id. Raise SendError."""
        fields = {"messaging_product": "whatsapp", "type": mime}
        response = await self._post(f"{account}/media", data=fields, files={"file": (name, data, mime)})
        reference = response.get("id")
        if not isinstance(reference, str) or not reference:
            raise SendError(Action.UNCERTAIN, "response")
        return reference

    async def _post(self, path: str, **content: Any) -> dict[str, Any]:
        try:
            response = await self._client.post(
                f"{self._url}/{path}", headers=self._authorized(), timeout=self._timeout, **content
            )
        except httpx.ConnectError:
            raise SendError(Action.RETRY, "unreachable") from None
        except httpx.HTTPError as error:
            raise SendError(Action.UNCERTAIN, type(error).__name__) from None
        read = _json(response)
        if response.status_code != _OK:
            raise error_of_response(response.status_code, read, response.headers.get("retry-after", ""))
        if not isinstance(read, dict):
            raise SendError(Action.UNCERTAIN, "response")
        return read

    async def fetch(self, media: Media, limit: int) -> bytes:
        """Return a file: of an allowed host, type and size, with the hash that the message named. Raise MediaError."""
        if not any(media.mime.partition(";")[0].strip() == one for one in FETCHED_TYPES.get(media.kind, ())):
            raise MediaError("TYPE_NOT_ALLOWED")
        if not _REFERENCE.fullmatch(media.reference):
            raise MediaError("NOT_FOUND")  # an id that is a path or a query would ask something else, with our token
        try:
            response = await self._client.get(
                f"{self._url}/{media.reference}", headers=self._authorized(), timeout=self._timeout
            )
            described = _json(response)
            if response.status_code >= _SERVER_FAULTS or response.status_code == _TOO_MANY:
                raise MediaUnavailableError("GRAPH_API")
            if response.status_code != _OK or not isinstance(described, dict):
                raise MediaError("NOT_FOUND")
            return await self._download(media, described, limit)
        except httpx.HTTPError:
            raise MediaUnavailableError("GRAPH_API") from None
        except httpx.InvalidURL:
            raise MediaError("HOST_NOT_ALLOWED") from None

    async def _download(self, media: Media, described: dict[str, Any], limit: int) -> bytes:
        url, size = described.get("url"), described.get("file_size")
        if not isinstance(url, str) or not self._allowed(url):
            raise MediaError("HOST_NOT_ALLOWED")
        if isinstance(size, int) and size > limit:
            raise MediaError("TOO_LARGE")
        # identity: a compressed answer could hold a thousand times its size
        headers = {**self._authorized(), "accept-encoding": "identity"}
        content = bytearray()
        async with self._client.stream("GET", url, headers=headers, timeout=self._timeout) as response:
            if response.status_code != _OK:
                transient = response.status_code >= _SERVER_FAULTS
                raise MediaUnavailableError("DOWNLOAD") if transient else MediaError("DOWNLOAD")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise MediaError("COMPRESSED")
            if _essence(response.headers.get("content-type", "")) != _essence(media.mime):
                raise MediaError("TYPE_DIFFERS")
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > limit:
                    raise MediaError("TOO_LARGE")
        named = [one for one in (media.sha256, described.get("sha256")) if isinstance(one, str) and one]
        digest = hashlib.sha256(content).digest()
        if not named or not all(hmac.compare_digest(digest, _digest(one)) for one in named):
            raise MediaError("HASH_DIFFERS")
        return bytes(content)

    def _allowed(self, url: str) -> bool:
        """Return True for an address of an allowed host, by https; the base address's own host may be plain http."""
        try:
            parts, port, own = urlsplit(url), urlsplit(url).port, urlsplit(self._url)
        except ValueError:
            return False
        if parts.username or parts.password:
            return False
        if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
            return True
        return parts.scheme == "https" and port in (None, 443) and (parts.hostname or "") in self._media_hosts

    def _authorized(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token()}"}


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _essence(mime: str) -> str:
    return mime.partition(";")[0].strip().lower()


def _digest(named: str) -> bytes:
    """Return a hash written in hex or in base64: webhooks have the one, descriptions of files the other."""
    try:
        return bytes.fromhex(named)
    except ValueError:
        try:
            return base64.b64decode(named, validate=True)
        except ValueError:
            return b""
