"""What the service does with whole threads: remove one."""

from __future__ import annotations

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.util.clock import Clock

from phylactery_memory.store.threads import Deleted, ThreadStore


class Threads:
    """Removes the principal's threads."""

    def __init__(self, store: ThreadStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def delete(self, owner: Principal, thread_id: str, request_id: str) -> Deleted:
        """Removes a thread's messages and outputs, once per request_id.

        Raises PermissionDenied, AlreadyExists REQUEST_CONFLICT, Unavailable.
        """
        owner.require(Role.CALLER)
        return await self._store.delete(owner, thread_id, request_id, self._clock.now_us())
