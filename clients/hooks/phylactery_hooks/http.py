"""Hooks over HTTP: the events of hosts that post them, on loopback, each with a bearer token.

The body is what a command hook gets on standard input, and the answer what it prints. A host takes a status that is no
success, and a connection that fails, for a yes. So whatever comes for a host is answered 200 with a refusal in the
host's own words; against a server that is away the host's settings alone help.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from phylactery_hooks import hosts
from phylactery_hooks.hook import HOSTS, MAX_BYTES
from phylactery_hooks.service import EventService
from phylactery_hooks.settings import PATH, TOKEN_FILE, TOKEN_VARIABLE, SettingsError, write_private

_LOOPBACK: Final = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}
_MAX_DRAINED: Final = 64 * 1024 * 1024
"""How much of a body that is too large is read and dropped: who still sends does not read an answer."""
_STOP_SECONDS: Final = 15
_NAME: Final = re.compile(r"[A-Za-z0-9_.:@-]{1,128}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_CLIENTS_BYTES: Final = 1024 * 1024
_TOO_LARGE: Final = hosts.refused(f"the event has more than {MAX_BYTES} bytes.")
_NO_TOKEN: Final = hosts.refused(
    f"the token of this hook is missing or not known. Export {TOKEN_VARIABLE} where the agent starts."
)


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Whose events come with a token: a subject for which the helper's own token acts as delegate."""

    token_hash: str
    subject: str
    tenant: str


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where to listen, the token of the helper's own user, and further clients."""

    host: str
    port: int
    token_hash: str
    clients: tuple[HttpClient, ...] = ()


def http_options(folder: Path, address: str, clients: Path | None) -> HttpOptions:
    """Return the options for a folder; make its token if there is none. Raise SettingsError or OSError."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if host not in _LOOPBACK or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - TCP's
        raise SettingsError("--listen takes 127.0.0.1:PORT or [::1]:PORT: it has to see the files that the agent sees")
    own = hash_of(own_token(folder))
    found = read_clients(clients) if clients else ()
    if any(one.token_hash == own for one in found):
        raise SettingsError(
            f"--clients: {clients} lists the token in {folder / TOKEN_FILE}, which is somebody's already"
        )
    return HttpOptions(host, int(port), own, found)


def own_token(folder: Path) -> str:
    """Return the token of the helper's own user; make one if there is none. Raise OSError or SettingsError."""
    path = folder / TOKEN_FILE
    with contextlib.suppress(FileNotFoundError):
        found = path.read_text(encoding="utf-8").strip()
        if len(found) < 32:  # noqa: PLR2004 - as long as it has to be not to be guessed
            raise SettingsError(f"token file '{path}' holds no token of ours; remove it to have a new one made")
        return found
    write_private(path, secrets.token_urlsafe(32) + "\n")
    return path.read_text(encoding="utf-8").strip()


def hash_of(token: str) -> str:
    """Return the stored form of a token. Tokens are random, so a plain SHA-256 is enough."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def read_clients(path: Path) -> tuple[HttpClient, ...]:
    """Return the clients that a file lists, each with the hash of its token. Raise SettingsError."""
    try:
        if path.stat().st_size > _MAX_CLIENTS_BYTES:
            raise SettingsError(f"--clients: {path} is too long")
        kept = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"--clients: {path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"--clients: {path} is not JSON") from None
    found = tuple(_clients_of(kept))
    if not found or len({one.token_hash for one in found}) < len(found):
        raise SettingsError(
            f'--clients: {path} is not [{{"subject": "…", "tenant": "…", "token": "sha256:…"}}, …] with a token of its '
            "own for each"
        )
    return found


def _clients_of(kept: Any) -> Iterator[HttpClient]:
    """Yield the clients in a file's content, none if one of them is not of the form."""
    valid = isinstance(kept, list) and all(
        isinstance(one, dict)
        and one.keys() == {"subject", "tenant", "token"}
        and all(isinstance(value, str) for value in one.values())
        and _NAME.fullmatch(one["subject"])
        and _NAME.fullmatch(one["tenant"])
        and _HASH.fullmatch(one["token"])
        for one in kept
    )
    for one in kept if valid else []:
        yield HttpClient(one["token"], one["subject"], one["tenant"])


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handlers: the helper has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


class HookServer:
    """Serves hooks over HTTP while its block is open, whose value is its address."""

    def __init__(self, options: HttpOptions, services: Mapping[str, EventService], seconds: float) -> None:
        self._options, self._services, self._seconds = options, services, seconds

    async def __aenter__(self) -> str:
        """Listen, and return the address. Raise SettingsError if it is taken."""
        self._socket = self._bound()
        routes = [Route(f"{PATH}{{host}}", self._posted, methods=["POST"])]
        config = uvicorn.Config(
            Starlette(routes=routes),
            http="h11",
            ws="none",
            log_config=None,
            lifespan="off",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        self._server = _Uvicorn(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn sets no event
            await asyncio.sleep(0.01)
        host, port = self._socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def __aexit__(self, *_: object) -> None:
        """Finish what is served, and stop."""
        self._server.should_exit = True
        await self._task
        self._socket.close()

    def _bound(self) -> socket.socket:
        found = socket.socket(_LOOPBACK[self._options.host], socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((self._options.host, self._options.port))
        except OSError as error:
            found.close()
            raise SettingsError(
                f"{self._options.host}:{self._options.port} cannot be listened on ({error.strerror})"
            ) from None
        return found

    async def _posted(self, request: Request) -> Response:
        host = request.path_params["host"]
        if host not in HOSTS:
            return Response(f"host not found; one of {', '.join(HOSTS)}\n", 404)
        service = self._service_of(request)
        event: hosts.Event | None = None
        payload = b""
        try:
            async with asyncio.timeout(self._seconds):
                payload = await _body(request)
        except TimeoutError:
            answer = hosts.refused("the event did not come in time.")
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        else:
            if len(payload) > MAX_BYTES:
                answer = _TOO_LARGE
            elif service is None:
                answer = _NO_TOKEN
            else:
                event, answer = await service.answer(host, "", "", payload)
        if service is not None and await request.is_disconnected():
            await service.undelivered(event)
        body = hosts.over_http(host, payload if len(payload) <= MAX_BYTES else b"", answer)
        return Response(body, media_type="application/json", headers={"cache-control": "no-store"})

    def _service_of(self, request: Request) -> EventService | None:
        """Return the service of whom the request's token names, None for nobody."""
        given = request.headers.getlist("authorization")
        if len(given) != 1:
            return None
        scheme, _, token = given[0].partition(" ")
        return self._services.get(hash_of(token.strip())) if scheme.lower() == "bearer" else None


async def _body(request: Request) -> bytes:
    """Return a request's body; of one that is too large, a part that is too large as well."""
    body = bytearray()
    dropped = 0
    async for piece in request.stream():
        if len(body) <= MAX_BYTES:
            body += piece
        else:
            dropped += len(piece)
            if dropped > _MAX_DRAINED:
                break
    return bytes(body)
