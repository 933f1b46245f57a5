"""The connection shared by all clients: deadlines, identity, trace context, retries, typed errors."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc
from grpc import aio

from phylactery_client.errors import UnavailableError, error_of

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
_MAX_PAUSE_SECONDS = 2.0
_MAX_RECEIVED_BYTES = 16 * 1024 * 1024
_AUTHORIZATION, _SUBJECT, _TENANT = "authorization", "x-phylactery-subject", "x-phylactery-tenant"
_STORE_OUTPUT = {"service": "phylactery.memory.v1.OutputService", "method": "StoreOutput"}
"""The stream may be too long for gRPC to resend, so MemoryClient retries it itself."""
_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": MAX_ATTEMPTS,
                    "initialBackoff": f"{FIRST_BACKOFF}s",
                    "maxBackoff": "1s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            },
            {"name": [_STORE_OUTPUT]},
        ]
    }
)

Response = TypeVar("Response")


def new_request_id() -> str:
    """Return a random 128-bit id that makes a call idempotent."""
    return f"req_{secrets.token_hex(16)}"


class ServiceClient:
    """A connection to one service. Create it inside a running event loop and close it; it is a context manager.

    target is host:port. token is a bearer token, empty for none. subject and tenant name the end user a delegate acts
    for, empty for none. timeout in seconds applies to calls without their own. credentials enables TLS; without them
    the connection is plain text, suitable for loopback and private networks.
    """

    def __init__(
        self,
        target: str,
        *,
        token: str = "",
        subject: str = "",
        tenant: str = "",
        timeout: float | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        named = ((_AUTHORIZATION, f"Bearer {token}" if token else ""), (_SUBJECT, subject), (_TENANT, tenant))
        self._identity = [(key, value) for key, value in named if value]
        self._timeout = timeout
        options: Sequence[tuple[str, Any]] = [
            ("grpc.service_config", _SERVICE_CONFIG),
            ("grpc.enable_retries", 1),
            ("grpc.max_receive_message_length", _MAX_RECEIVED_BYTES),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        self._channel = (
            aio.insecure_channel(target, options=options)
            if credentials is None
            else aio.secure_channel(target, credentials, options=options)
        )

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
        await self._channel.close()

    async def _call(self, method: Callable[..., Awaitable[Response]], request: Any, timeout: float | None) -> Response:
        """Return the response. Raise the PhylacteryError of its code."""
        try:
            return await method(request, timeout=self._seconds(timeout), metadata=self._metadata())
        except aio.AioRpcError as failure:
            raise error_of(failure, getattr(request, "request_id", "")) from None

    async def _stream(
        self, method: Callable[..., aio.UnaryStreamCall[Any, Response]], request: Any, timeout: float | None
    ) -> AsyncGenerator[Response]:
        """Yield the responses. Raise the PhylacteryError of its code; disconnect when left early.

        An infinite timeout means no deadline.
        """
        seconds = self._seconds(timeout)
        call = method(request, timeout=None if math.isinf(seconds) else seconds, metadata=self._metadata())
        try:
            async for response in call:
                yield response
        except aio.AioRpcError as failure:
            raise error_of(failure, getattr(request, "request_id", "")) from None
        finally:
            call.cancel()

    async def _outliving(
        self,
        stream: Callable[[float], AsyncGenerator[Response]],
        timeout: float,
        resumable: Callable[[], bool],
    ) -> AsyncGenerator[Response]:
        """Yield a stream's messages, and reopen it if the service stops or the connection breaks.

        ``stream`` opens it at the position where it was cut, with the remaining seconds; ``resumable`` says whether
        that is possible. A stream that never received a response is not reopened, because the target may not exist.
        """
        until, stood, pause = time.monotonic() + timeout, False, FIRST_BACKOFF
        while True:
            connected = asyncio.create_task(self._channel.channel_ready())
            try:
                async with aclosing(stream(max(until - time.monotonic(), 0.0))) as responses:
                    async for response in responses:
                        stood, pause = True, FIRST_BACKOFF
                        yield response
            except UnavailableError as error:
                stood = stood or (connected.done() and not error.reason)
                if not (stood and resumable()):
                    raise
            else:
                stood = True
                if not resumable():
                    return
            finally:
                connected.cancel()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    def _seconds(self, timeout: float | None, usual: float = DEFAULT_TIMEOUT) -> float:
        """Return the timeout of a call: its own, else the client's, else ``usual``."""
        given = self._timeout if timeout is None else timeout
        return usual if given is None else given

    def _metadata(self) -> aio.Metadata:
        metadata = aio.Metadata(*self._identity)
        if _propagator is not None:
            carrier: dict[str, str] = {}
            _propagator.inject(carrier)
            for key, value in carrier.items():
                metadata.add(key, value)
        return metadata
