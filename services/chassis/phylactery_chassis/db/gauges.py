"""Gauges that are read from the databases a process serves from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TypeAlias

from opentelemetry.metrics import CallbackOptions, Observation
from sqlalchemy.engine import Connection

from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.instruments import meter
from phylactery_chassis.util.clock import Clock

Read: TypeAlias = Callable[[Connection, int], Iterable[Observation]]


class StoreGauges:
    """Gauges of one service, each read from the database at an export.

    Processes that share a database each report the same numbers: aggregate by maximum, not by sum.
    """

    def __init__(self) -> None:
        # kept for the process, as instruments are: a gauge is created once, cannot be removed, and has no owner to ask
        self._watched: list[tuple[Database, Clock]] = []
        self.reads: dict[str, Read] = {}
        """What each gauge reads, by name."""

    def watch(self, database: Database, clock: Clock) -> Callable[[], None]:
        """Include a database, and return a function that removes it."""
        one = (database, clock)
        self._watched.append(one)
        return lambda: self._watched.remove(one)

    def create_gauge(self, name: str, unit: str, description: str, read: Read) -> None:
        """Create a gauge from a read of each watched database; ``read`` also gets the time in microseconds.

        It runs at every export, so it must find its rows by an index.
        """
        self.reads[name] = read

        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            found: list[Observation] = []
            for database, clock in tuple(self._watched):
                now_us = clock.now_us()
                with contextlib.suppress(DomainError):  # unknown while the store is unavailable, which health reports
                    found += database.read_sync(lambda connection: read(connection, now_us))  # noqa: B023 - runs here
            return found

        meter().create_observable_gauge(name, [observe], unit=unit, description=description)
