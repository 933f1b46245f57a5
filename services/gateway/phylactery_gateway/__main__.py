"""Entry point of the gateway: python -m phylactery_gateway."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from phylactery_chassis.auth.tokens import parse_expiry
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import scrub_removed
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.rpc import server
from phylactery_chassis.settings import load, read_secret
from phylactery_chassis.telemetry import logs, telemetry
from phylactery_chassis.util.clock import SystemClock
from phylactery_chassis.util.version import version_line
from phylactery_client import PhylacteryClient
from phylactery_client.errors import PhylacteryError

from phylactery_gateway import lifting
from phylactery_gateway.app import serve
from phylactery_gateway.settings import GatewaySettings
from phylactery_gateway.store.erasure import erase
from phylactery_gateway.store.former_texts import forget_sealed
from phylactery_gateway.store.lifts import identity_of

T = TypeVar("T")
_CANNOT_START = 2
_USAGE = """usage: python -m phylactery_gateway [COMMAND]
  (none)                       serve
  migrate                      bring the database up to date
  erase CHANNEL ID             erase what the gateway holds about a person
  lift CHANNEL ID [--until T]  let a person do what any user may; until 30d, 12h or 2027-01-31T12:00:00Z
  revoke CHANNEL ID            make that person a guest again, from their next call on
  lifted                       list who is lifted, until when, and by whom
  forget-sealed                give up what is sealed with a key that is lost, while no gateway runs
  --version
CHANNEL is whatsapp or telegram, ID the channel's own: a phone number, a business-scoped id, a chat id. lift, revoke and
lifted take --token-file FILE, the token of an operator at the agent, where the agent has identities.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, or do what the arguments say; exit with 2 on an error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        token_file, until = _option(given, "--token-file"), _option(given, "--until")
        ends = parse_expiry(until)
    except ValueError as error:
        sys.stderr.write(f"gateway: {error}\n")
        raise SystemExit(_CANNOT_START) from None
    if (token_file or until) and given[:1] not in (["lift"], ["revoke"], ["lifted"]):
        given = ["--help"]
    match given:
        case []:
            run()
        case ["migrate"]:
            server.migrate(GatewaySettings)
        case ["erase", channel, value]:
            erase_person(channel, value)
        case ["lift", channel, value]:
            with _one_sentence():
                _say(_ask(token_file, lambda own, agent: lifting.lift(own, agent, channel, value, ends)).line)
        case ["revoke", channel, value] if not until:
            with _one_sentence():
                subjects = _ask(token_file, lambda own, agent: lifting.revoke(own, agent, channel, value))
                _say(f"{channel} {value} is a guest again ({', '.join(subjects)})")
        case ["lifted"] if not until:
            with _one_sentence():
                for one in _ask(token_file, lifting.lifted):
                    _say(one.line)
        case ["forget-sealed"]:
            with _one_sentence(), lifting.open_database() as database:
                lost = forget_sealed(database)
                asyncio.run(scrub_removed(database))
                _say(f"{lost} messages that were not delivered yet are given up; the next start takes a new key")
        case ["--version"]:
            sys.stdout.write(f"{version_line('phylactery-gateway')}\n")
        case _:
            sys.stderr.write(_USAGE)
            raise SystemExit(_CANNOT_START)


def _option(given: list[str], name: str) -> str:
    """Take an option with its value out of the arguments; empty if it is absent. Raise ValueError without a value."""
    if name not in given:
        return ""
    at = given.index(name)
    if at + 1 == len(given):
        raise ValueError(f"{name} needs a value")
    value = given[at + 1]
    del given[at : at + 2]
    return value


def _ask(token_file: str, work: Callable[[Database, PhylacteryClient], Awaitable[T]]) -> T:
    """Return what a call does with the gateway's database and the agent, as an operator."""
    settings = load(lifting.OperatorSettings)
    try:
        token = read_secret(Path(token_file), "--token-file") if token_file else settings.agent_token()()
    except ValueError as error:
        raise StartError(str(error)) from None

    async def run(database: Database) -> T:
        async with PhylacteryClient(settings.agent_target, token=token, retry_seconds=0, timeout=20) as agent:
            return await work(database, agent)

    try:
        with lifting.open_database() as database:
            return asyncio.run(run(database))
    except PhylacteryError as error:
        raise StartError(f"the agent at {settings.agent_target} did not do it: {error}") from None


def _say(line: str) -> None:
    sys.stdout.write(f"gateway: {line}\n")


def erase_person(channel: str, value: str) -> None:
    """Erase what the gateway holds about a person, and say how the agent knows them."""
    with _one_sentence(), lifting.open_database() as database:
        identity_of(channel, value)  # without its country a number would be somebody else's
        done = asyncio.run(erase(database, channel, value, SystemClock().now_us()))
    sys.stdout.write(f"gateway: {done.received} received and {done.sent} sent message erased\n")
    for subject in done.subjects:
        sys.stdout.write(f"gateway: the rest is erased by: phylactery erase {subject}\n")


def run() -> None:
    """Serve until a signal ends it."""
    with _one_sentence():
        settings = load(GatewaySettings)
        settings.prepare()
        logs.configure(settings.service, settings.log_level)
        observed = telemetry.configure(
            settings.service, settings.data_dir, settings.otlp_endpoint, scraped=settings.metrics_port is not None
        )
        try:
            server.allow_many_connections()
            asyncio.run(serve(settings, observed.page))
        finally:
            observed.end()


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
