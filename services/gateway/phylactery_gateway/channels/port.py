"""The port of a channel: what the gateway needs of WhatsApp, Telegram or any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from phylactery_gateway.channels.messages import Element, File, Media, Outgoing

SECOND_US = 1_000_000


class Action(StrEnum):
    """What is done about a message that could not be sent. Each error of a channel has exactly one."""

    RETRY = "retry"
    """It is sent again, with pauses that grow."""
    UNCERTAIN = "uncertain"
    """Nobody knows whether it was sent. The channel's own word is waited for, then it is sent again."""
    SLOW_DOWN = "slow_down"
    """The same person got too much at once: it waits until the pair may have one again."""
    PAUSE = "pause"
    """Nothing is sent from this account for a while; the operator is told."""
    WINDOW = "window"
    """The time to write freely is over: a template, or it waits until the person writes."""
    WITHOUT_OPTIONS = "without_options"
    """The channel does not take this form: it is sent as plain text."""
    FAIL = "fail"
    """It is not sent. The operator finds the code in the log and in the metrics."""
    OPTED_OUT = "opted_out"
    """The person does not want such messages: it is not sent, and no template is until they write."""
    NO_TEMPLATES = "no_templates"
    """The account may send no templates for a while. The message waits."""


class SendError(Exception):
    """A message was not sent, or nobody knows. ``code`` is the channel's own and never holds anything else."""

    def __init__(self, action: Action, code: str, *, retry_after: float = 0.0) -> None:
        super().__init__(f"{action}: {code}")
        self.action, self.code, self.retry_after = action, code, retry_after


class MediaError(Exception):
    """A file was not fetched; ``reason`` is a stable code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MediaUnavailableError(MediaError):
    """The channel did not hand out the file now, but may later."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a message of the channel may hold, in characters, and how fast it takes them."""

    text: int
    body: int
    """The text of a message with options."""
    buttons: int
    button_title: int
    rows: int
    """Options of a list; 0 if the channel has none."""
    row_title: int
    row_description: int
    pair_us: int
    """The time between two messages to one person."""
    pair_burst: int
    """So many may go to one person at once, and are then waited for."""
    account_us: int
    """The time between two messages of the account, in and out together."""
    window_us: int | None = None
    """How long after a person's message they may be written to freely; None if always."""
    tells_delivery: bool = False
    """Whether the channel tells what became of a message, which then may have to be sent again."""


class Address(NamedTuple):
    """Where a message goes: from which account, to whom."""

    account: str
    identities: Mapping[str, str]
    """The person's identities by kind."""


class Proof(Protocol):
    """Whether a body is from the channel, as it arrives."""

    def update(self, part: bytes, /) -> object:
        """Take the next part of the body."""
        ...

    def holds(self) -> bool:
        """Return True if the whole body is from the channel. It takes the same time whatever is wrong."""
        ...


class Channel(Protocol):
    """A messaging channel."""

    name: str
    limits: Limits

    def proof(self, headers: Mapping[str, str]) -> Proof | None:
        """Return what proves a webhook's body, None if its headers show already that it is not from the channel.

        Nothing of such a body is read.
        """
        ...

    def challenge(self, query: Mapping[str, str]) -> str | None:
        """Return the answer to the channel's question whether this address is ours, None if it is not its question."""
        ...

    def parse(self, body: bytes) -> Sequence[Element]:
        """Return everything a webhook holds. Whatever is unknown or broken is Kept, and loses nothing beside it."""
        ...

    async def send(self, address: Address, message: Outgoing, outbox_id: str) -> str:
        """Send a message and return the channel's id of it. Raise SendError."""
        ...

    def takes(self, file: File) -> bool:
        """Return True if the channel takes files of this type and size."""
        ...

    async def upload(self, address: Address, file: File, data: bytes) -> str:
        """Give a file to the channel, which shows it to nobody, and return its reference. Raise SendError.

        '' if the channel takes a file only together with its message.
        """
        ...

    async def send_file(self, address: Address, file: File, reference: str, data: bytes, outbox_id: str) -> str:
        """Send a file, by its reference if it has one, and return the channel's id of the message. Raise SendError."""
        ...

    async def send_template(self, address: Address, language: str, callback_id: str) -> str | None:
        """Send the template that asks a person to write; None if there is none. Raise SendError.

        Its statuses carry ``callback_id``, which is not the id of the message it is sent for.
        """
        ...

    def error_of(self, code: str) -> SendError:
        """Return what is done about an error whose code arrives in a status."""
        ...

    async def typing(self, address: Address, external_id: str) -> None:
        """Show the person that a reply to their message is being written. Failures are not told."""
        ...

    async def fetch(self, media: Media, limit: int) -> bytes:
        """Return a file of at most ``limit`` bytes. Raise MediaError."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
