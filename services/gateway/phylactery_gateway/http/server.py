"""Serves an ASGI application on a port that is known before the first request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from phylactery_chassis.errors import StartError

_BACKLOG = 2_048


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


class HttpServer:
    """An HTTP server on one port."""

    def __init__(self, application: Any, host: str, port: int, *, grace: float, variable: str) -> None:
        """Bind the port; 0 takes a free one. Raise StartError, which names the variables to change."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise StartError(f"{host}:{port} cannot be listened on ({error.strerror}); set {variable}") from None
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=max(1, round(grace)),
            h11_max_incomplete_event_size=64 * 1024,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept requests."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Finish running requests, then end."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()
