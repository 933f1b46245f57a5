"""What the clients need of gRPC, over threads: the twin of ``phylactery_client.transport``, written by hand."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import grpc

from phylactery_client.proxies import proxy_options

Response = TypeVar("Response")
Received_co = TypeVar("Received_co", covariant=True)

Channel: TypeAlias = grpc.Channel
Failure = grpc.RpcError
Refusal = ValueError
"""What gRPC raises of a call on a closed channel, and of others."""


class HungUp(Exception):
    """Never raised: over threads a call whose channel is closed while it runs fails, as one that is cancelled."""


Unary: TypeAlias = Callable[..., Response]
Streaming: TypeAlias = Callable[..., "Responses[Response]"]


class Responses(Protocol[Received_co]):
    """A stream of responses that can be cancelled; gRPC's own type has no public name."""

    def __iter__(self) -> Iterator[Received_co]:
        """Iterate over the responses."""
        ...

    def cancel(self) -> bool:
        """Cancel the call."""
        ...


closing = contextlib.closing
sleep = time.sleep


def open_channel(
    target: str, credentials: grpc.ChannelCredentials | None, options: Sequence[tuple[str, Any]]
) -> Channel:
    """Return a channel to host:port; without credentials it is plain text."""
    options = [*options, *proxy_options(target)]
    if credentials is None:
        return grpc.insecure_channel(target, options=options)
    return grpc.secure_channel(target, credentials, options=options)


class Unknown:
    """Whether a channel was ever connected, which gRPC tells over threads only by one that polls and outlives it."""

    def done(self) -> bool:
        """Return False."""
        return False

    def cancel(self) -> None:
        """Do nothing."""


def connecting(_channel: Channel) -> Unknown:
    """Return what is never done: a stream that breaks before its first response is not opened again."""
    return Unknown()


def is_cancelled() -> bool:
    """Return False: a thread is not cancelled."""
    return False
