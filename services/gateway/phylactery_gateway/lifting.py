"""What an operator does about guests: the gateway knows the channel's ids, the agent who is lifted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import NotFound, StartError
from phylactery_chassis.settings import load
from phylactery_chassis.util.clock import SystemClock
from phylactery_client import Lift, PhylacteryClient
from phylactery_client.errors import NotFoundError
from pydantic import model_validator

from phylactery_gateway.app import PACKAGE
from phylactery_gateway.settings import GatewaySettings
from phylactery_gateway.store import lifts


@dataclass(frozen=True, slots=True)
class Lifted:
    """A lifted person: the channel and its ids of them now, which are empty for a person of another gateway."""

    channel: str
    ids: tuple[str, ...]
    subject: str
    lifted_by: str
    lift_time: datetime
    end_time: datetime | None
    left: bool = False
    """True if the ids are somebody else's now; the lift is not."""

    @property
    def line(self) -> str:
        """Return the person in one line."""
        until = "without an end" if self.end_time is None else f"until {self.end_time.isoformat()}"
        name = " ".join((self.channel, *self.ids)) if self.ids else "a person of another gateway"
        name = f"whoever had {name} before" if self.left else name
        return f"{name} is lifted {until}, by {self.lifted_by} ({self.subject})"


class OperatorSettings(GatewaySettings):
    """Where the gateway and its agent are; the secrets of the channels are not needed to lift anybody."""

    @model_validator(mode="after")
    def _channels_are_whole(self) -> Self:
        return self


@contextlib.contextmanager
def open_database() -> Iterator[Database]:
    """Open the database of the gateway that the environment names, for the block. Raise StartError.

    A folder without one is refused: whoever were lifted in a new database would be somebody else for the gateway.
    """
    settings = load(OperatorSettings)
    own = settings.data_dir / f"{settings.service}.db"
    if not settings.database_url and not own.exists():
        raise StartError(f"{own} is missing; set GATEWAY_DATA_DIR or GATEWAY_DATABASE_URL to those of the gateway")
    settings.prepare()
    database = Database(settings.url)  # without a key: what is sealed is not read by an operator
    try:
        database.migrate_at_start(PACKAGE)
        yield database
    finally:
        database.close()


async def lift(
    database: Database, agent: PhylacteryClient, channel: str, value: str, until: datetime | None = None
) -> Lifted:
    """Lift whoever has an identity of a channel now. Raise InvalidArgument, NotFound, PhylacteryError."""
    subject, renamed = await lifts.to_lift(database, lifts.identity_of(channel, value), channel, SystemClock().now_us())
    lift = await agent.lift(subject, until=until)
    await lifts.note_told(database, subject, renamed)
    return await _shown(database, lift)


async def revoke(database: Database, agent: PhylacteryClient, channel: str, value: str) -> Sequence[str]:
    """End the lift of a person and return their subjects. Raise NotFound LIFT_NOT_FOUND, InvalidArgument."""
    ended = []
    for subject in await lifts.subjects_of(database, lifts.identity_of(channel, value), channel):
        with contextlib.suppress(NotFoundError):
            await agent.end_lift(subject)
            ended.append(subject)
    if not ended:
        raise NotFound("LIFT_NOT_FOUND", f"{channel} {value} is not lifted; `lifted` lists who is")
    return ended


async def lifted(database: Database, agent: PhylacteryClient) -> Sequence[Lifted]:
    """Return who is lifted, newest first."""
    return [await _shown(database, one) for one in await agent.list_lifts()]


async def _shown(database: Database, one: Lift) -> Lifted:
    known = await lifts.known_as(database, one.subject)
    channel, ids = ("", ()) if known is None else (known.channel, tuple(known.identities.values()))
    left = known is not None and known.left
    return Lifted(channel, ids, one.subject, one.lifted_by, one.lift_time, one.end_time, left)
