"""Threads: append messages, list a window, delete."""

from __future__ import annotations

from collections.abc import Sequence

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.util.clock import Clock

from phylactery_memory.transcript.model import Message, Page
from phylactery_memory.transcript.store import MessageStore
from phylactery_memory.transcript.thread_store import Deleted, ThreadStore

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_CHARACTERS = 1_000_000


class Transcript:
    """Appends to and reads the principal's threads."""

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self.clock = clock

    async def append(self, owner: Principal, thread_id: str, messages: Sequence[Message]) -> tuple[int, int]:
        """Append messages in order, all or none; return the thread's last sequence and the number of new messages.

        Raise PermissionDenied, AlreadyExists MESSAGE_CONFLICT, ResourceExhausted MESSAGE_LIMIT, Unavailable.
        """
        owner.require(Role.CALLER)
        last, placed = await self._store.append(owner, thread_id, messages, self.clock.now_us())
        return last, len(placed)

    async def page(
        self, owner: Principal, thread_id: str, *, before: int | None, page_size: int, max_characters: int
    ) -> Page:
        """Return messages with a sequence below ``before`` (None: from the newest), newest first; 0 means the default.

        Another user's thread reads as empty. Raise PermissionDenied, Unavailable.
        """
        owner.require(Role.CALLER)
        return await self._store.page(
            owner,
            thread_id,
            before=before,
            page_size=page_size or DEFAULT_PAGE_SIZE,
            max_characters=max_characters or MAX_PAGE_CHARACTERS,
        )


class Threads:
    """Deletes the principal's threads."""

    def __init__(self, store: ThreadStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def delete(self, owner: Principal, thread_id: str, request_id: str) -> Deleted:
        """Delete a thread's messages and outputs, once per request_id.

        Raise PermissionDenied, AlreadyExists REQUEST_CONFLICT, Unavailable.
        """
        owner.require(Role.CALLER)
        return await self._store.delete(owner, thread_id, request_id, self._clock.now_us())
