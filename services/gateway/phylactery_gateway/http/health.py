"""Whether the process lives, and whether it can work. Neither asks the database, so that no stranger fills it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from phylactery_gateway.delivery.loops import Loop

_LOOK_SECONDS: Final = 1.0
_STALE_LOOKS: Final = 5
"""After as many looks that gave nothing, what was seen before them says nothing any more: the database hangs."""


class Health:
    """The health of the gateway: it looks at the database each second, and whoever asks gets what was seen last."""

    def __init__(self, probe: Callable[[], Awaitable[bool]], look_seconds: float = _LOOK_SECONDS) -> None:
        """``probe`` returns True if the database takes writes; it is asked every ``look_seconds``."""
        self._probe, self._ready, self._looked = probe, True, time.monotonic()
        self._stale_seconds = _STALE_LOOKS * look_seconds
        self.loop = Loop("health", self._look, look_seconds)

    def routes(self) -> list[Route]:
        """Return the routes: /healthz says that the process lives, /readyz that its database takes writes."""
        return [Route("/healthz", self._lives, methods=["GET"]), Route("/readyz", self._works, methods=["GET"])]

    async def _look(self) -> None:
        self._ready = await self._probe()
        self._looked = time.monotonic()

    async def _lives(self, _request: Request) -> Response:
        return _answer(well=True)

    async def _works(self, _request: Request) -> Response:
        return _answer(well=self._ready and time.monotonic() - self._looked < self._stale_seconds)


def _answer(*, well: bool) -> Response:
    return JSONResponse({"status": "SERVING" if well else "NOT_SERVING"}, status_code=200 if well else 503)
