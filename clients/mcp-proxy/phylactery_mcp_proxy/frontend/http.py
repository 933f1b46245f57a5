"""Serving clients over streamable HTTP: on loopback for one principal, elsewhere each client with its own token."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from phylactery_mcp_proxy.settings import ConfigError, is_this_machine

PATH: Final = "/mcp"
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
MAX_SESSIONS: Final = 100
_IDLE_SECONDS: Final = 1_800.0
_STOP_SECONDS: Final = 15
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_.:@-]{1,128}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_CLIENTS_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. hosts are further names under which clients reach it, such as that of a proxy before it."""

    host: str
    port: int
    hosts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, hosts: tuple[str, ...] = ()) -> Address:
        """Return the address of HOST:PORT. Raise ConfigError."""
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - TCP's
            raise ConfigError("--http takes HOST:PORT; port 0 takes a free one")
        return cls(host.strip("[]"), int(port), hosts)


@dataclass(frozen=True, slots=True)
class Clients(TokenVerifier):
    """The clients that may connect: their subjects by the hashes of their tokens."""

    subjects: Mapping[str, str] = field(repr=False)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, None for an unknown one."""
        subject = self.subjects.get(token_hash(token))
        if subject is None:
            return None
        return AccessToken(token="", client_id=subject, scopes=[], subject=subject)


def token_hash(token: str) -> str:
    """Return the stored form of a token. Tokens are random, so a plain SHA-256 is enough."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def read_clients(path: Path) -> Clients:
    """Read a clients file: one JSON object of subjects and the hashes of their tokens. Raise ConfigError."""
    try:
        if path.stat().st_size > _MAX_CLIENTS_BYTES:
            raise ConfigError(f"--clients: {path} is too long")
        kept = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"--clients: {path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"--clients: {path} is not JSON") from None
    valid = isinstance(kept, dict) and all(
        _SUBJECT.fullmatch(subject) and isinstance(known, str) and _HASH.fullmatch(known)
        for subject, known in kept.items()
    )
    if not valid or not kept or len(set(kept.values())) < len(kept):
        raise ConfigError(
            f'--clients: {path} is not {{"subject": "sha256:…", …}} with a token of its own for each subject'
        )
    return Clients({known: subject for subject, known in kept.items()})


def current_subject() -> str:
    """Return the subject of the client that is served, empty where clients have no tokens."""
    token = get_access_token()
    return (token.subject or "") if token is not None else ""


async def serve_http(
    server: Server[Any], address: Address, clients: Clients | None, on_ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM. on_ready gets the URL once it is served.

    Raises:
        ConfigError: The address is not this machine's loopback and clients have no tokens, or cannot be bound.
    """
    if clients is None and not is_this_machine(address.host):
        raise ConfigError("--http beyond loopback needs --clients: who connects there is not known otherwise")
    listening = _bound(address)
    shown = f"[{address.host}]" if ":" in address.host else address.host
    url = f"http://{shown}:{listening.getsockname()[1]}{PATH}"
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
        session_idle_timeout=_IDLE_SECONDS,
        transport_security=_rebinding(address, shown),
        auth=None if clients is None else AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None),
        token_verifier=clients,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="on",
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_SESSIONS * 4,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    served = uvicorn.Server(config)
    telling = asyncio.create_task(_tell(served, lambda: on_ready(url)))
    serving = asyncio.create_task(served.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        served.should_exit = True  # it lets go of its sockets, and ends what runs
        await serving
        raise
    finally:
        telling.cancel()
        listening.close()


def _rebinding(address: Address, shown: str) -> TransportSecuritySettings:
    """Return which Host and Origin are answered: a page in a browser reaches loopback by names of its own."""
    names = [f"{shown}:*", *address.hosts]
    if is_this_machine(address.host):
        names += ["127.0.0.1:*", "localhost:*", "[::1]:*"]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins)


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"--http: {address.host}:{address.port} cannot be bound ({error.strerror})") from None
    return listening


async def _tell(served: uvicorn.Server, tell: Callable[[], None]) -> None:
    while not served.started:  # noqa: ASYNC110 - uvicorn sets no event
        await asyncio.sleep(0.01)
    tell()
