"""Entry point of the gateway: python -m phylactery_gateway."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.rpc import server
from phylactery_chassis.settings import load
from phylactery_chassis.telemetry import logs, telemetry
from phylactery_chassis.util.clock import SystemClock
from phylactery_chassis.util.version import version_line

from phylactery_gateway.app import PACKAGE, serve
from phylactery_gateway.settings import GatewaySettings
from phylactery_gateway.store.erasure import erase

_CANNOT_START = 2


def main() -> None:
    """Serve until SIGINT or SIGTERM, migrate, erase a person or print the version; exit with 2 on an error."""
    match sys.argv[1:]:
        case []:
            run()
        case ["migrate"]:
            server.migrate(GatewaySettings)
        case ["erase", channel, value]:
            erase_person(channel, value)
        case ["--version"]:
            sys.stdout.write(f"{version_line('phylactery-gateway')}\n")
        case _:
            sys.stderr.write(
                "usage: python -m phylactery_gateway [migrate | erase <channel> <number or id> | --version]\n"
            )
            raise SystemExit(_CANNOT_START)


def erase_person(channel: str, value: str) -> None:
    """Erase what the gateway holds about a person, and say how the agent knows them."""
    with _one_sentence():
        settings = load(GatewaySettings)
        settings.prepare()
        database = Database(settings.url)
        try:
            database.migrate_at_start(PACKAGE)
            done = asyncio.run(erase(database, channel, value, SystemClock().now_us()))
        finally:
            database.close()
    sys.stdout.write(f"gateway: {done.received} received and {done.sent} sent message erased\n")
    for subject in done.subjects:
        sys.stdout.write(f"gateway: the rest is erased by: phylactery erase --user {subject}\n")


def run() -> None:
    """Serve until a signal ends it."""
    with _one_sentence():
        settings = load(GatewaySettings)
        settings.prepare()
        logs.configure(settings.service, settings.log_level)
        end_telemetry = telemetry.configure(settings.service, settings.data_dir, settings.otlp_endpoint)
        try:
            asyncio.run(serve(settings))
        finally:
            end_telemetry()


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Exit with one sentence and code 2 if the block raises StartError or DomainError."""
    try:
        yield
    except (StartError, DomainError) as error:
        said = error.message if isinstance(error, DomainError) else str(error)
        sys.stderr.write(f"gateway: {' '.join(said.split())}\n")
        raise SystemExit(_CANNOT_START) from None


if __name__ == "__main__":
    main()
