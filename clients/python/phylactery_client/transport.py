"""What the clients need of gRPC: here over asyncio, in ``sync.transport`` under the same names over threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import grpc
from grpc import aio

from phylactery_client.proxies import proxy_options

Response = TypeVar("Response")

Channel: TypeAlias = aio.Channel
Failure = aio.AioRpcError
Refusal = aio.UsageError
"""What gRPC raises of a call on a closed channel."""
HungUp = asyncio.CancelledError
"""What gRPC raises of a call whose channel is closed while it runs, as where its task is cancelled."""
Unary: TypeAlias = Callable[..., Awaitable[Response]]
Streaming: TypeAlias = Callable[..., aio.UnaryStreamCall[Any, Response]]

closing = contextlib.aclosing
sleep = asyncio.sleep


def open_channel(
    target: str, credentials: grpc.ChannelCredentials | None, options: Sequence[tuple[str, Any]]
) -> Channel:
    """Return a channel to host:port; without credentials it is plain text."""
    options = [*options, *proxy_options(target)]
    if credentials is None:
        return aio.insecure_channel(target, options=options)
    return aio.secure_channel(target, credentials, options=options)


def connecting(channel: Channel) -> asyncio.Task[None]:
    """Return what is done once the channel is connected; cancel it when it is not needed any more."""
    return asyncio.create_task(channel.channel_ready())


def is_cancelled() -> bool:
    """Return True if somebody cancels the running task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
