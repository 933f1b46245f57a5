"""The rates of accounts and pairs, kept in the database so that all processes share them.

A rate is one number, the time at which the next message would be on time if they came evenly (GCRA). A message is sent
if that time is not further ahead than the burst allows.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.port import SECOND_US, Channel
from phylactery_gateway.tables import accounts


def account_of(connection: Connection, channel: str, account: str) -> sa.Row[Any]:
    """Return the row of an account, locked until the end of the transaction."""
    query = sa.select(accounts).where(*_where(channel, account)).with_for_update()
    found = connection.execute(query).first()
    if found is not None:
        return found
    connection.execute(
        insert(accounts)
        .values(channel=channel, account=account, rate_us=0, paused_until_us=0, pause_code="")
        .on_conflict_do_nothing()
    )
    return connection.execute(query).one()


def count_inbound(connection: Connection, channel: Channel, account: str, now_us: int) -> None:
    """Count a received message: channels limit both directions together. It is never refused."""
    row = account_of(connection, channel.name, account)
    set_rate(connection, channel.name, account, max(row.rate_us, now_us) + channel.limits.account_us)


def set_rate(connection: Connection, channel: str, account: str, rate_us: int) -> None:
    """Store the rate of an account."""
    connection.execute(sa.update(accounts).where(*_where(channel, account)).values(rate_us=rate_us))


def wait_us(rate_us: int, interval_us: int, burst: int, now_us: int) -> int:
    """Return how long the next message of a rate has to wait, 0 if not at all."""
    return max(0, rate_us - (burst - 1) * interval_us - now_us)


def pause(connection: Connection, channel: str, account: str, code: str, until_us: int) -> None:
    """Send nothing from an account until then, or until the end of a longer pause it has already."""
    if account_of(connection, channel, account).paused_until_us < until_us:
        values = {"paused_until_us": until_us, "pause_code": code[:64]}
        connection.execute(sa.update(accounts).where(*_where(channel, account)).values(**values))


def hold_templates(connection: Connection, channel: str, account: str, until_us: int) -> None:
    """Send no templates from an account until then."""
    if account_of(connection, channel, account).templates_from_us < until_us:
        values = {"templates_from_us": until_us}
        connection.execute(sa.update(accounts).where(*_where(channel, account)).values(**values))


def account_burst(interval_us: int) -> int:
    """Return how many messages of an account may go at once: those of half a second."""
    return max(1, SECOND_US // 2 // interval_us) if interval_us else 1


def _where(channel: str, account: str) -> tuple[sa.ColumnElement[bool], ...]:
    return accounts.c.channel == channel, accounts.c.account == account
