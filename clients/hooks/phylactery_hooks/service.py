"""Event service: the answer to a host's event for one identity, whichever way it came."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from phylactery_client.errors import PhylacteryError

from phylactery_hooks import hosts
from phylactery_hooks.hosts import Answer, Event, EventError, Kind
from phylactery_hooks.sessions import Sessions

_log = logging.getLogger("phylactery_hooks")


class EventService:
    """Answers events in the sessions of one identity, each within ``seconds``. Any doubt is a refusal."""

    def __init__(self, sessions: Sessions, seconds: float) -> None:
        self._sessions, self._seconds = sessions, seconds

    async def answer(self, host: str, named: str, project: str, payload: bytes) -> tuple[Event | None, Answer]:
        """Return the event in a payload, None if it cannot be read, and its answer.

        ``named`` is the event that the settings name and ``project`` the folder that the host names, empty for none.
        """
        event: Event | None = None
        try:
            event = hosts.read(host, named, payload)
            return event, await asyncio.wait_for(self._sessions.serve(event, project), self._seconds)
        except EventError as error:
            return event, hosts.refused(f"{error}.")
        except PhylacteryError as error:
            return event, _without_gate(event, error.reason or error.code.name)
        except TimeoutError:
            return event, _without_gate(event, "no answer in time")
        except Exception as error:  # noqa: BLE001 - any doubt is a refusal
            log_failure(error)
            return event, hosts.refused("an internal error of the hook's helper; see its log.")

    async def undelivered(self, event: Event | None) -> None:
        """Take note that the host did not get the answer: a permitted call may have run, or not."""
        if event is not None:
            await self._sessions.undelivered(event)


def log_failure(error: Exception) -> None:
    """Log where an event failed, without the error's text, which may hold arguments."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "nowhere"
    _log.error("an event was not served (%s at %s)", type(error).__name__, place)


def _without_gate(event: Event | None, why: str) -> Answer:
    if event is not None and event.kind in {Kind.STOP, Kind.END}:
        return Answer()  # nothing to refuse: the task expires
    return hosts.refused(f"RiskGate is not reachable ({why}), so nothing is run. Start it, then ask again.")
