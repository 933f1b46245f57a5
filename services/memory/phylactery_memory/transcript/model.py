"""The conversation window: what a message is, when one is the same again, and where a page of a thread ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from phylactery_chassis.errors import AlreadyExists, ResourceExhausted

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said in a thread; create_us in microseconds since the epoch, sequence 0 until it has its place."""

    message_id: str
    role: Role
    content: str
    run_id: str
    create_us: int
    sequence: int = 0

    def same_as(self, other: Message) -> bool:
        """Return whether it is the same message sent again: who said what in which run, whenever it arrived."""
        return (self.role, self.content, self.run_id) == (other.role, other.content, other.run_id)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one user may have said: the threads of a user, and the messages of each."""

    threads: int = 100_000
    messages: int = 100_000

    def check_thread(self, threads: int) -> None:
        """Raise ResourceExhausted MESSAGE_LIMIT where a user with so many threads opens another."""
        if threads >= self.threads:
            raise _too_many(
                f"this user has {threads} threads, as many as one may have; go on in one of them", self.threads, "user"
            )

    def check_messages(self, thread_id: str, messages: int) -> None:
        """Raise ResourceExhausted MESSAGE_LIMIT where a thread would have more messages than one may."""
        if messages > self.messages:
            raise _too_many(
                f"thread '{thread_id}' would have {messages} messages, and one may have {self.messages}; nothing was "
                "added, go on in another thread",
                self.messages,
                "thread",
            )


DEFAULT_LIMITS = Limits()


def _too_many(message: str, limit: int, per: str) -> ResourceExhausted:
    return ResourceExhausted("MESSAGE_LIMIT", message, metadata={"limit": str(limit), "per": per})


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a thread, newest first; next_before is the sequence to go on before, 0 at the thread's start."""

    messages: Sequence[Message]
    next_before: int


def place(new: Iterable[Message], known: Mapping[str, Message], last_sequence: int) -> list[Message]:
    """Return the messages that are new, each in its place after last_sequence, without gaps.

    known is the thread's messages with the ids of the new ones. A message that stands already is left out. Raise
    AlreadyExists MESSAGE_CONFLICT where an id stands with other content.
    """
    standing = dict(known)
    placed: list[Message] = []
    for message in new:
        other = standing.get(message.message_id)
        if other is None:
            sequence = last_sequence + len(placed) + 1
            standing[message.message_id] = message
            placed.append(
                Message(message.message_id, message.role, message.content, message.run_id, message.create_us, sequence)
            )
        elif not message.same_as(other):
            raise AlreadyExists(
                "MESSAGE_CONFLICT",
                f"message '{message.message_id}' stands with other content; nothing was added, use a new message_id",
                metadata={"message_id": message.message_id},
            )
    return placed


def page_length(sizes: Sequence[int], page_size: int, max_characters: int) -> int:
    """Return how many messages a page takes of those whose sizes (code points, newest first) are given.

    At most page_size, and before their sum passes max_characters; at least one where there is one.
    """
    total = 0
    for count, size in enumerate(sizes[:page_size]):
        total += size
        if count and total > max_characters:
            return count
    return min(len(sizes), page_size)
