"""Health check for images and scripts.

``python -m phylactery_chassis.rpc.healthcheck HOST:PORT`` exits with code 0 if the service is SERVING.
"""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from phylactery_chassis.rpc.proxies import proxy_options

_SECONDS = 3.0


def serving(target: str, *, timeout: float = _SECONDS) -> bool:
    """Return True if the server at target answers SERVING within timeout seconds."""
    with grpc.insecure_channel(target, options=proxy_options(target)) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=timeout)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def main() -> int:
    """Return the exit code for the command line."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and its one argument
        sys.stderr.write("usage: python -m phylactery_chassis.rpc.healthcheck HOST:PORT\n")
        return 2
    return 0 if serving(sys.argv[1]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
