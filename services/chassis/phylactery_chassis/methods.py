"""The methods of a server, found by name.

Generated code also registers each method by itself. grpc.aio then keeps a task waiting for every one of them, and looks
at all of these tasks at every call: a call of one service would cost more with every method of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Methods(grpc.GenericRpcHandler):
    """What generated code takes for a server, and a server for its one handler."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Passes over them: the same methods are added by name."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Adds the methods of a service."""
        self._handlers.update({f"/{service}/{name}": handler for name, handler in handlers.items()})

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """Answers the method that is called, None where there is none."""
        return self._handlers.get(handler_call_details.method)
