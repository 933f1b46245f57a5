"""Messages of the conversation window: identity, order, limits and page length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from phylactery_chassis.errors import AlreadyExists, ResourceExhausted

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a thread. create_us is in microseconds since the epoch; sequence is 0 until it is placed."""

    message_id: str
    role: Role
    content: str
    run_id: str
    create_us: int
    sequence: int = 0

    def same_as(self, other: Message) -> bool:
        """Return True if both are the same message: same sender, content and run, whenever it arrived."""
        return (self.role, self.content, self.run_id) == (other.role, other.content, other.run_id)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits per user: the number of threads, and of messages in each."""

    threads: int = 100_000
    messages: int = 100_000

    def check_thread(self, threads: int) -> None:
        """Raise ResourceExhausted MESSAGE_LIMIT if a user with this many threads may not open another."""
        if threads >= self.threads:
            raise _too_many(
                f"this user has {threads} threads, which is the limit; use one of them", self.threads, "user"
            )

    def check_messages(self, thread_id: str, messages: int) -> None:
        """Raise ResourceExhausted MESSAGE_LIMIT if a thread would exceed its number of messages."""
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
    """A page of a thread, newest first; next_before is the sequence to continue before, 0 at the thread's start."""

    messages: Sequence[Message]
    next_before: int


def place(new: Iterable[Message], known: Mapping[str, Message], last_sequence: int) -> list[Message]:
    """Return the new messages, numbered from last_sequence without gaps.

    ``known`` holds the thread's messages with the ids of the new ones. A message that already exists is left out. Raise
    AlreadyExists MESSAGE_CONFLICT if an id already exists with other content.
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
                f"message '{message.message_id}' already exists with different content; use a new message_id",
                metadata={"message_id": message.message_id},
            )
    return placed


def page_length(sizes: Sequence[int], page_size: int, max_characters: int) -> int:
    """Return how many messages fit a page, given their sizes in code points, newest first.

    At most page_size, and their sum does not exceed max_characters; but at least one if there is one.
    """
    total = 0
    for count, size in enumerate(sizes[:page_size]):
        total += size
        if count and total > max_characters:
            return count
    return min(len(sizes), page_size)
