"""Group commit: jobs run in one transaction, or each in its own if they cannot be committed together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.db.errors import STORE_FAULTS, fault_of, is_full, lost_a_race, may_be_kept, unavailable, unknown
from phylactery_chassis.db.jobs import Job, Outcome
from phylactery_chassis.db.transactions import StaleError, Transactions
from phylactery_chassis.db.unit import ConflictError, Unit
from phylactery_chassis.telemetry.logs import get_logger

_MAX_ATTEMPTS = 20
"""How often a job is retried after it lost a race."""

_log = get_logger("database")


class _UndoneError(Exception):
    """The transaction was rolled back because of an error of one job or of its deferred writes."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _flush(unit: Unit) -> None:
    """Run the deferred writes of the jobs. Raise ConflictError, _UndoneError, and the store's own errors."""
    try:
        unit.flush()
    except (ConflictError, *STORE_FAULTS):
        raise
    except Exception as error:
        raise _UndoneError(error) from error


class Groups:
    """The writer's transactions, one at a time, on one thread."""

    def __init__(self, engine: Engine, *, failed: Callable[[], None]) -> None:
        """``failed`` is called when the store lost a group. No connection is opened yet."""
        self._engine, self._failed = engine, failed
        self._transactions = Transactions(engine)

    def end(self) -> None:
        """Return the connection to the pool."""
        self._transactions.end()

    def run(self, group: list[Job[Any]]) -> list[Outcome]:
        """Run jobs in one transaction, or each in its own if they cannot be committed together."""
        if not group:
            return []
        try:
            return self._attempt(group)
        except _UndoneError as undone:
            if len(group) == 1:
                return [Outcome(group[0], fault=undone.cause)]
        except ConflictError:
            pass
        except BaseException as error:  # noqa: BLE001 - the writer must survive any error and resolve every waiter
            if len(group) == 1 or not is_full(error):
                return self._lost(group, error)
        return [self._run_alone(job) for job in group]  # so that only the job that does not fit fails

    def _run_alone(self, job: Job[Any]) -> Outcome:
        """Run one job in its own transaction; retry while it loses races."""
        for _ in range(_MAX_ATTEMPTS):
            try:
                return self._attempt([job])[0]
            except ConflictError:
                continue
            except _UndoneError as undone:
                return Outcome(job, fault=undone.cause)
            except BaseException as error:  # noqa: BLE001 - as for a group
                return self._lost([job], error)[0]
        return Outcome(job, fault=unavailable("other processes were faster each time"))

    def _attempt(self, group: list[Job[Any]]) -> list[Outcome]:
        """Run _commit; retry on a new connection if the old one was broken before the transaction began."""
        try:
            return self._commit(group)
        except StaleError:
            self._engine.dispose()
        try:
            return self._commit(group)
        except StaleError as error:
            raise (error.__cause__ or error) from error

    def _commit(self, group: list[Job[Any]]) -> list[Outcome]:
        """Run jobs and commit.

        Raise ConflictError, _UndoneError, and the store's own errors; then nothing of any job is kept. Only if the
        response to the commit is lost is the outcome unknown, and every waiter receives that error.
        """
        committing, committed, unit = False, False, None
        try:
            with self._transactions.begin() as connection:
                unit = Unit(connection, several=len(group) > 1)
                try:
                    outcomes = [self._run_job(connection, unit, job) for job in group]
                    _flush(unit)
                finally:
                    unit.close()
                committing = True
            committed = True
        except sa.exc.DBAPIError as error:
            if lost_a_race(error):
                raise ConflictError from error
            if committing and may_be_kept(error):
                raise unknown(error) from error
            if committing and not isinstance(error, STORE_FAULTS):  # a deferred statement failed
                raise _UndoneError(error) from error
            raise
        except UnicodeError as error:  # a deferred statement contains text that no store accepts
            raise _UndoneError(error) from error
        finally:
            if unit is not None:
                unit.settle(committed=committed)
        return outcomes

    def _run_job(self, connection: Connection, unit: Unit, job: Job[Any]) -> Outcome:
        unit.begin_job()
        try:
            result = job.work(connection)
            unit.end_job(failed=False)
        except (ConflictError, *STORE_FAULTS):
            raise  # the store itself fails, or the job must run alone: the whole group is affected
        except Exception as error:  # the job's own error, a duplicate key included, goes to its waiter
            if unit.alone or (isinstance(error, sa.exc.SQLAlchemyError) and not unit.protected):
                raise _UndoneError(error) from error
            unit.end_job(failed=True)
            return Outcome(job, fault=error)
        return Outcome(job, result)

    def _lost(self, group: list[Job[Any]], error: BaseException) -> list[Outcome]:
        """Fail jobs that are not known to be durable."""
        self._failed()
        _log.error("commit failed", error=type(error.__cause__ or error).__name__, jobs=len(group))
        failure = fault_of(error)
        return [Outcome(job, fault=failure) for job in group]
