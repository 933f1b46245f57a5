"""Whether the process lives, and whether it can work. Neither asks the database, so that no stranger fills it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from phylactery_gateway.delivery.loops import Loop

_LOOK_SECONDS: Final = 1.0


class Health:
    """The health of the gateway: it looks at the database each second, and whoever asks gets what was seen last."""

    def __init__(self, probe: Callable[[], Awaitable[bool]]) -> None:
        """``probe`` returns True if the database takes writes."""
        self._probe, self._ready = probe, True
        self.loop = Loop("health", self._look, _LOOK_SECONDS)

    def routes(self) -> list[Route]:
        """Return the routes: /healthz says that the process lives, /readyz that its database takes writes."""
        return [Route("/healthz", self._lives, methods=["GET"]), Route("/readyz", self._works, methods=["GET"])]

    async def _look(self) -> None:
        self._ready = await self._probe()

    async def _lives(self, _request: Request) -> Response:
        return _answer(well=True)

    async def _works(self, _request: Request) -> Response:
        return _answer(well=self._ready)


def _answer(*, well: bool) -> Response:
    return JSONResponse({"status": "SERVING" if well else "NOT_SERVING"}, status_code=200 if well else 503)
