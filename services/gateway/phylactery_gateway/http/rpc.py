"""The routes of the services' RPCs, of AuthZEN and of their description."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from phylactery_chassis.auth.identity import Authenticator, LoopbackAuthenticator
from phylactery_chassis.errors import DomainError, InvalidArgument, ResourceExhausted
from phylactery_chassis.rpc.server import IdentityWatch
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from phylactery_gateway.http.bodies import Bodies, NoRoomError, TooLargeError, TooSlowError
from phylactery_gateway.http.events import EventStream, end
from phylactery_gateway.rpc import authzen, openapi
from phylactery_gateway.rpc.admission import REQUEST_ID, Envelope, request_id_of
from phylactery_gateway.rpc.calls import JSON, Body, CallError, Calls, HungUpError
from phylactery_gateway.rpc.errors import DeadlineExceeded, Failure, failure_of
from phylactery_gateway.rpc.services import EVALUATE_ACCESS, Services

_METHODS: Final = ("POST", "OPTIONS")
_CORS_HEADERS: Final = (
    "Authorization",
    "Connect-Protocol-Version",
    "Connect-Timeout-Ms",
    "Content-Type",
    "Last-Event-ID",
    "Traceparent",
    "X-Phylactery-Subject",
    "X-Phylactery-Tenant",
    "X-Request-Id",
)
_CORS_SECONDS: Final = 600
_TEXT: Final = "text/plain; charset=utf-8"

_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_HUNG_UP: Final = 499
"""Nobody gets it; it is for what counts responses."""

Answer = Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
Endpoint = Callable[[Request], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True)
class Form:
    """How a path answers what is not a response of the service."""

    media_type: str
    wrong_type: int
    """The status for a body that is not JSON."""

    def body(self, failure: Failure) -> bytes:
        """Return a failure in this form."""
        return failure.body() if self.media_type == JSON else failure.message.encode()


_CONNECT: Final = Form(JSON, 415)
_AUTHZEN: Final = Form(_TEXT, 400)


class RpcRoutes:
    """HTTP before the calls: bodies, content types, responses, and clients that hang up."""

    def __init__(
        self,
        calls: Calls,
        services: Services,
        authenticator: Authenticator,
        *,
        base: Callable[[], str],
        origins: Sequence[str],
        bodies: Bodies,
        max_bytes: int,
    ) -> None:
        """Ask ``base`` for the URL under which clients reach the gateway, once it listens."""
        self._calls, self._services, self._authenticator = calls, services, authenticator
        self._base, self._origins = base, origins
        self._bodies, self._max_bytes = bodies, max_bytes
        self._stopping = asyncio.Event()
        self._identities: IdentityWatch | None = None

    def routes(self) -> list[Route]:
        """Return the routes; those of AuthZEN are there if its RPC is offered."""
        found = [
            self._route("/phylactery.{service}/{method}", self._rpc, *_METHODS),
            self._route(openapi.PATH, _document(self._description), "GET"),
        ]
        if self._services.find(EVALUATE_ACCESS) is not None:
            found += [
                self._route(authzen.EVALUATION, self._access(authzen.evaluation), *_METHODS),
                self._route(authzen.EVALUATIONS, self._access(authzen.evaluations), *_METHODS),
                self._route(authzen.METADATA, _document(lambda: authzen.metadata(self._base())), "GET"),
            ]
        return found

    def follow_identities(self) -> None:
        """Follow the file of tokens."""
        self._identities = IdentityWatch(self._authenticator, lambda: None)

    def end_streams(self) -> None:
        """End the streams, so that their clients go on elsewhere and nobody waits for them."""
        self._stopping.set()

    async def close(self) -> None:
        """Close the channels to the services and end the threads."""
        if self._identities is not None:
            await self._identities.end()
        await self._services.close()
        self._calls.close()

    def _description(self) -> dict[str, Any]:
        tokens = not isinstance(self._authenticator, LoopbackAuthenticator)
        return openapi.document(self._services.methods, self._base(), tokens=tokens)

    def _route(self, path: str, endpoint: Endpoint, *methods: str) -> Route:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=tuple(self._origins),
            allow_methods=("GET", "POST"),
            allow_headers=_CORS_HEADERS,
            expose_headers=(REQUEST_ID,),
            max_age=_CORS_SECONDS,
        )
        return Route(path, endpoint, methods=list(methods), middleware=[cors])

    async def _rpc(self, request: Request) -> ASGIApp:
        async def serve(envelope: Envelope, request_id: str, body: Body) -> ASGIApp:
            method = self._calls.find(request.scope["path"])
            if method.streams:
                messages = self._calls.stream(method, envelope, request_id, body)
                headers = ((REQUEST_ID.encode(), request_id.encode()),)
                return await EventStream(messages, self._stopping, headers).accepted()
            return _answer(await self._calls.unary(method, envelope, request_id, body), request_id)

        return await self._respond(request, _CONNECT, serve)

    def _access(self, answer: Answer) -> Endpoint:
        async def endpoint(request: Request) -> ASGIApp:
            async def serve(envelope: Envelope, request_id: str, body: Body) -> ASGIApp:
                method = self._calls.find(EVALUATE_ACCESS)
                return _answer(await self._calls.ask(method, envelope, request_id, body, answer=answer), request_id)

            return await self._respond(request, _AUTHZEN, serve)

        return endpoint

    async def _respond(
        self, request: Request, form: Form, serve: Callable[[Envelope, str, Body], Coroutine[Any, Any, ASGIApp]]
    ) -> ASGIApp:
        """Return the response of a call. A call whose client hangs up is cancelled."""
        if request.method != "POST":
            return Response(status_code=405, headers={"allow": "POST"})
        headers = dict(_HEADERS)
        try:
            envelope = _envelope(request)
            headers[REQUEST_ID] = request_id_of(envelope)
            if _media_type(request) != JSON:
                wrong = failure_of(InvalidArgument("INVALID_REQUEST", f"Content-Type is not {JSON}"))
                return Response(form.body(wrong), form.wrong_type, {**headers, "accept-post": JSON}, form.media_type)
            received = asyncio.Event()

            body = functools.partial(self._body, request, received)
            return await _unless_gone(request, received, serve(envelope, headers[REQUEST_ID], body))
        except HungUpError:
            return Response(status_code=_HUNG_UP)
        except CallError as error:
            failure = error.failure
        except DomainError as error:
            failure = failure_of(error)
        return Response(form.body(failure), failure.status, headers, form.media_type)

    @asynccontextmanager
    async def _body(self, request: Request, received: asyncio.Event) -> AsyncIterator[bytes]:
        try:
            async with self._bodies.read(request, self._max_bytes) as body:
                received.set()
                yield body
        except TooLargeError:
            raise ResourceExhausted(
                "MESSAGE_TOO_LARGE", f"the body is larger than {self._max_bytes} bytes, the limit of this gateway"
            ) from None
        except TooSlowError:
            raise DeadlineExceeded(
                "BODY_TOO_SLOW", f"the body did not arrive within {self._bodies.seconds:.0f} seconds"
            ) from None
        except NoRoomError:
            raise ResourceExhausted(
                "TOO_MANY_CALLS", "too much is being received at once; try again in a moment"
            ) from None
        except ClientDisconnect:
            raise HungUpError from None


async def _unless_gone(request: Request, received: asyncio.Event, work: Coroutine[Any, Any, ASGIApp]) -> ASGIApp:
    """Return what the work returns. Raise HungUpError if the client hangs up before, once its body was received."""

    async def gone() -> None:
        await received.wait()
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise HungUpError
        return tasks[0].result()
    finally:
        for task in tasks:
            await end(task)


def _answer(body: bytes, request_id: str) -> Response:
    return Response(body, 200, {**_HEADERS, REQUEST_ID: request_id}, JSON)


def _envelope(request: Request) -> Envelope:
    headers = [(key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in request.headers.raw]
    peer = request.client.host if request.client is not None else ""
    return Envelope(headers, peer, request.scope["http_version"])


def _media_type(request: Request) -> str:
    name, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    return name.strip().lower() if charset in {"", "charset=utf-8"} else ""


def _document(make: Callable[[], Any]) -> Endpoint:
    """Return what answers with a document, which is made when it is asked for first."""
    made = functools.cache(lambda: json.dumps(make(), ensure_ascii=False).encode())

    async def endpoint(_request: Request) -> ASGIApp:
        return Response(made(), media_type=JSON, headers={"cache-control": "max-age=300"})

    return endpoint
