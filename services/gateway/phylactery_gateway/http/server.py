"""Serves an ASGI application on a port that is known before the first request."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
from collections.abc import Callable, Iterator

import uvicorn
from phylactery_chassis.errors import StartError
from starlette.types import ASGIApp

from phylactery_gateway.http.connections import MAX_HEAD_BYTES, Connection, ConnectionLimits, Connections

_BACKLOG = 2_048


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


class HttpServer:
    """An HTTP server on one port."""

    def __init__(
        self,
        application: ASGIApp,
        host: str,
        port: int,
        *,
        grace: float,
        variable: str,
        limits: ConnectionLimits | None = None,
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Bind the port; 0 takes a free one. Raise StartError, which names the variables to change.

        Call ``refused`` with the reason for each connection that is ended early.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # with its protocol named, as asyncio sets TCP_NODELAY on no other: a response in two writes takes 40 ms without
        self._socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise StartError(f"{host}:{port} cannot be listened on ({error.strerror}); set {variable}") from None
        self.port: int = self._socket.getsockname()[1]
        self._connections = Connections(limits or ConnectionLimits(), refused)
        config = uvicorn.Config(
            application,
            interface="asgi3",
            http=functools.partial(Connection, self._connections),  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            proxy_headers=False,  # uvicorn would take a peer on this machine at its word about where a request is from
            access_log=False,
            lifespan="off",
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=max(1, round(grace)),
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept requests."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Finish running requests, then end. Connections whose clients take nothing any more are ended too."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._connections.hang_up()
        self._socket.close()
