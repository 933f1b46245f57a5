"""Entry point of the gateway: python -m phylactery_gateway."""

from __future__ import annotations

import asyncio
import sys

from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.rpc import server
from phylactery_chassis.settings import load
from phylactery_chassis.telemetry import logs, telemetry

from phylactery_gateway.app import serve
from phylactery_gateway.settings import GatewaySettings

_CANNOT_START = 2


def main() -> None:
    """Serve until SIGINT or SIGTERM, or migrate; an error is one sentence and exit code 2."""
    match sys.argv[1:]:
        case []:
            run()
        case ["migrate"]:
            server.migrate(GatewaySettings)
        case _:
            sys.stderr.write("usage: python -m phylactery_gateway [migrate]\n")
            raise SystemExit(_CANNOT_START)


def run() -> None:
    """Serve until a signal ends it."""
    try:
        settings = load(GatewaySettings)
        settings.prepare()
        logs.configure(settings.service, settings.log_level)
        end_telemetry = telemetry.configure(settings.service, settings.data_dir, settings.otlp_endpoint)
        try:
            asyncio.run(serve(settings))
        finally:
            end_telemetry()
    except (StartError, DomainError) as error:
        said = error.message if isinstance(error, DomainError) else str(error)
        sys.stderr.write(f"gateway: {' '.join(said.split())}\n")
        raise SystemExit(_CANNOT_START) from None


if __name__ == "__main__":
    main()
