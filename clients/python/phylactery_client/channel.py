"""The connection shared by all clients: deadlines, identity, trace context, retries, typed errors."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

import grpc

from phylactery_client.errors import CancelledByServerError, ClosedError, UnavailableError, error_of
from phylactery_client.transport import (
    Failure,
    HungUp,
    Refusal,
    Response,
    Streaming,
    Unary,
    closing,
    connecting,
    is_cancelled,
    open_channel,
    sleep,
)

try:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:  # OpenTelemetry is optional; without it there is no context to propagate
    _propagator = None
else:
    _propagator = TraceContextTextMapPropagator()

DEFAULT_TIMEOUT: Final = 30.0
TURN_TIMEOUT: Final = 930.0
"""The timeout of a turn. The agent's own limit (AGENT_ACTIVE_SECONDS, 900) ends a turn earlier."""
EFFECT_TIMEOUT: Final = 90.0
"""The timeout of a call that waits for a running effect: the agent gives it 30 seconds, then more to settle."""
MAX_ATTEMPTS: Final = 4
FIRST_BACKOFF: Final = 0.05
RETRY_SECONDS: Final = 10.0
"""How long a call is repeated while nobody answers: longer than a service needs to start again."""
_MAX_PAUSE_SECONDS = 2.0
_MAX_RECEIVED_BYTES = 16 * 1024 * 1024
_AUTHORIZATION, _SUBJECT, _TENANT = "authorization", "x-phylactery-subject", "x-phylactery-tenant"
_STORE_OUTPUT = {"service": "phylactery.memory.v1.OutputService", "method": "StoreOutput"}
"""The stream may be too long for gRPC to resend, so the client makes and sends it again itself."""
_MADE_ONCE = (
    {"service": "phylactery.agent.v1.FormService", "method": "StartForm"},
    {"service": "phylactery.memory.v1.MemoryService", "method": "ForgetMemory"},
    {"service": "phylactery.memory.v1.MemoryService", "method": "SetProfileFields"},
    {"service": "phylactery.riskgate.v1.AuditService", "method": "EraseValues"},
)
"""Calls without an id: made again, they could undo or erase what came in between, or open another thread."""
_NOT_SURE = tuple(
    {"service": f"phylactery.{service}", "method": method}
    for service, method in (
        ("agent.v1.EscalationService", "RenewClaim"),
        ("agent.v1.GuestService", "EndLift"),
        ("agent.v1.GuestService", "Lift"),
        ("memory.v1.MemoryService", "UpdateMemory"),
        ("riskgate.v1.ControlService", "RevokeDecision"),
        ("riskgate.v1.ControlService", "Unfreeze"),
        ("riskgate.v1.PolicyService", "RollbackBundle"),
    )
)
"""Calls whose contract does not say that a repetition is harmless. One that was cancelled may have had an effect."""


def _retried(*codes: str) -> dict[str, Any]:
    return {
        "retryPolicy": {
            "maxAttempts": MAX_ATTEMPTS,
            "initialBackoff": f"{FIRST_BACKOFF}s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": codes,
        }
    }


_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {"name": [{}], **_retried("UNAVAILABLE", "CANCELLED")},  # a server with too many calls cancels some
            {"name": _NOT_SURE, **_retried("UNAVAILABLE")},
            {"name": [_STORE_OUTPUT, *_MADE_ONCE]},
        ]
    }
)


def new_request_id() -> str:
    """Return a random 128-bit id that makes a call idempotent."""
    return f"req_{secrets.token_hex(16)}"


class ServiceClient:
    """A connection to one service. Create it inside a running event loop and close it; it is a context manager.

    target is host:port. token is a bearer token, empty for none. subject and tenant name the end user a delegate acts
    for, empty for none. timeout in seconds applies to calls without their own. A call that nobody answers is repeated
    for up to retry_seconds from then, within its timeout, so that it outlasts a restart of the service: such calls are
    idempotent by their ids, and a request_id that the client generated is in the error. Those that are not
    (erase_values, forget_memory, set_profile_fields, and start of a form) are made once. credentials enables TLS;
    without them the connection is plain text, suitable for loopback and private networks.
    """

    def __init__(
        self,
        target: str,
        *,
        token: str = "",
        subject: str = "",
        tenant: str = "",
        timeout: float | None = None,
        retry_seconds: float = RETRY_SECONDS,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        named = ((_AUTHORIZATION, f"Bearer {token}" if token else ""), (_SUBJECT, subject), (_TENANT, tenant))
        self._identity = [(key, value) for key, value in named if value]
        self._timeout = timeout
        self._retry_seconds = retry_seconds
        options: Sequence[tuple[str, Any]] = [
            ("grpc.service_config", _SERVICE_CONFIG),
            ("grpc.enable_retries", 1),
            ("grpc.max_receive_message_length", _MAX_RECEIVED_BYTES),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        self._channel = open_channel(target, credentials, options)
        self._closed = threading.Event()  # shared with the clients that act for others

    def acting_for(self, subject: str, tenant: str = "") -> Self:
        """Return a client that acts for another subject over the same connection, which closes with this one.

        The token's identity needs the role delegate. The tenant is this client's unless another is named.
        """
        other = copy.copy(self)
        named = {_SUBJECT: subject, **({_TENANT: tenant} if tenant else {})}
        kept = [(key, value) for key, value in self._identity if key not in named]
        other._identity = [*kept, *((key, value) for key, value in named.items() if value)]  # noqa: SLF001 - one of us
        return other

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; running calls are cancelled."""
        self._closed.set()
        await self._channel.close()

    @contextlib.contextmanager
    def _open(self, request_id: str = "") -> Iterator[None]:
        """Raise ClosedError where a call begins on a closed connection, or the connection is closed while it runs."""
        try:
            yield
        except (Refusal, HungUp):
            if is_cancelled() or not self._closed.is_set():
                raise
            raise ClosedError(grpc.StatusCode.CANCELLED, "this client is closed", request_id=request_id) from None

    async def _call(
        self, method: Unary[Response], request: Any, timeout: float | None, *, repeat: bool = True
    ) -> Response:
        """Return the response; a request that is a stream is given as the function that makes it.

        Without ``repeat`` the call is made once: whether it had an effect is unknown when it fails as unavailable.
        Raise the PhylacteryError of its code.
        """
        broke, pause, attempt = math.inf, FIRST_BACKOFF, 1
        until = time.monotonic() + self._seconds(timeout)
        while True:
            try:
                with self._open(getattr(request, "request_id", "")):
                    return await method(
                        request() if callable(request) else request,
                        timeout=max(until - time.monotonic(), 0.0),
                        metadata=self._metadata(),
                    )
            except Failure as failure:
                error = error_of(failure, getattr(request, "request_id", ""))
                # where the service answered, gRPC has made all attempts already, except of a stream
                enough = bool(error.reason) and (not callable(request) or attempt == MAX_ATTEMPTS)
                now = time.monotonic()
                broke = min(broke, now)  # a turn may have been silent for minutes before that
                late = now + pause >= min(broke + self._retry_seconds, until)
                if enough or late or not repeat or not isinstance(error, UnavailableError):
                    raise error from None
            await sleep(pause)
            pause, attempt = min(2 * pause, _MAX_PAUSE_SECONDS), attempt + 1

    async def _stream(
        self, method: Streaming[Response], request: Any, timeout: float | None
    ) -> AsyncGenerator[Response]:
        """Yield the responses. Raise the PhylacteryError of its code; disconnect when left early.

        An infinite timeout means no deadline.
        """
        seconds = self._seconds(timeout)
        with self._open(getattr(request, "request_id", "")):
            call = method(request, timeout=None if math.isinf(seconds) else seconds, metadata=self._metadata())
            try:
                async for response in call:
                    yield response
            except Failure as failure:
                raise error_of(failure, getattr(request, "request_id", "")) from None
            finally:
                call.cancel()

    async def _outliving(
        self,
        stream: Callable[[float], AsyncGenerator[Response]],
        timeout: float,
        resumable: Callable[[], bool],
        *,
        endless: bool = True,
    ) -> AsyncGenerator[Response]:
        """Yield a stream's messages, and reopen it if the service stops or the connection breaks.

        ``stream`` opens it at the position where it was cut, with the remaining seconds; ``resumable`` says whether
        that is possible. A stream that never received a response is not reopened, because the target may not exist. An
        endless stream is reopened where the service ends it, too, and as often as it takes; another is given up when
        the service says why it is unavailable, and when nobody answers for retry_seconds.
        """
        until, stood, pause = time.monotonic() + timeout, False, FIRST_BACKOFF
        broke = math.inf
        while True:
            connected = connecting(self._channel)
            try:
                async with closing(stream(max(until - time.monotonic(), 0.0))) as responses:
                    async for response in responses:
                        stood, pause, broke = True, FIRST_BACKOFF, math.inf
                        yield response
            except (UnavailableError, CancelledByServerError) as error:
                stood = stood or (connected.done() and not error.reason)
                broke = min(broke, time.monotonic())
                given_up = not endless and (error.reason or time.monotonic() - broke >= self._retry_seconds)
                if given_up or not (stood and resumable()):
                    raise
            else:
                stood = True
                if not (endless and resumable()):
                    return
            finally:
                connected.cancel()
            await sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    def _seconds(self, timeout: float | None, usual: float = DEFAULT_TIMEOUT) -> float:
        """Return the timeout of a call: its own, else the client's, else ``usual``."""
        given = self._timeout if timeout is None else timeout
        return usual if given is None else given

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        carrier: dict[str, str] = {}
        if _propagator is not None:
            _propagator.inject(carrier)
        return (*self._identity, *carrier.items())
