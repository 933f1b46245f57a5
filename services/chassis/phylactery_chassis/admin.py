"""The admin port: channelz, health and reflection on loopback, and nothing of the service itself.

It asks for no identity, so it listens on 127.0.0.1 and nowhere else, whatever the service's own address is: whoever is
on the machine sees addresses, connections and counts of calls, never a message.
"""

from __future__ import annotations

from dataclasses import dataclass

from grpc import aio
from grpc_channelz.v1 import channelz, channelz_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from phylactery_chassis.listening import add_reflection, bind
from phylactery_chassis.open_calls import OpenToAll

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class AdminServer:
    """The admin port of a running service; port is None where it has none."""

    port: int | None
    _server: aio.Server | None

    async def stop(self) -> None:
        """Ends it at once: it serves nothing that has to be finished."""
        if self._server is not None:
            await self._server.stop(None)


async def start_admin(service: str, health: health_aio.HealthServicer, port: int | None, variable: str) -> AdminServer:
    """Serves the admin port of a service: none for None, a free one for 0. Raises StartError where it is taken."""
    if port is None:
        return AdminServer(None, None)
    server = aio.server(interceptors=[OpenToAll(service)], options=[("grpc.so_reuseport", 0)])
    channelz.add_channelz_servicer(server)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    described = (channelz_pb2.DESCRIPTOR.services_by_name["Channelz"], health_pb2.DESCRIPTOR.services_by_name["Health"])
    add_reflection(server, [one.full_name for one in described])
    bound = bind(server, _LOOPBACK, port, variable)
    await server.start()
    return AdminServer(bound, server)
