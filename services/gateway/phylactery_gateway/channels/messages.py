"""Messages of every channel, without a channel's own notation: what comes in, and what goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from phylactery_gateway.channels.phones import normal

UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading a value of another shape than a channel documents raises: such an element is kept, for a webhook that is
refused because of one would be delivered again and again."""


class Identity(NamedTuple):
    """One of the names a channel has for a person, for example ("bsuid", "US.134…") or ("phone", "34600…")."""

    kind: str
    value: str
    """As the channel writes it, which is where messages go to."""

    @property
    def compared(self) -> tuple[str, str]:
        """The kind and the one form of every spelling of the value: by it people are known, and by nothing else."""
        spelled = normal(self.value) if self.kind in REASSIGNED else None
        return self.kind, spelled or self.value


REASSIGNED: Final = frozenset({"phone"})
"""Kinds of identities that somebody else may have later: a network gives a number that is given up to another. All are
phone numbers."""


@dataclass(frozen=True, slots=True)
class Sender:
    """A person as the channel names them, with the identity that counts most first."""

    identities: tuple[Identity, ...]
    language: str = ""
    """The language of the person's application, "es" or "en"; empty if the channel does not say it."""


class Kind(StrEnum):
    """What a received message is."""

    TEXT = "text"
    CHOICE = "choice"
    REACTION = "reaction"
    """An emoji on one message."""
    QUICK_REPLY = "quick_reply"
    """The press of a template's own button: words, which answer nothing that was shown besides."""
    EDIT = "edit"
    REVOKE = "revoke"
    STICKER = "sticker"
    MEDIA = "media"
    UNREADABLE = "unreadable"


ELSEWHERE: Final = "elsewhere"
"""What a text quotes that quotes something of which the conversation knows nothing."""
FETCHED: Final = frozenset({"image", "audio", "document"})
"""The kinds of files that the agent gets."""


FETCHED_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("image/jpeg", "image/png", "image/webp"),
    "audio": ("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"),
    "video": ("video/mp4", "video/3gpp"),
    "document": (
        "application/pdf",
        "text/plain",
        "text/csv",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
}
"""The types a file may have, by what the message says it is."""


class Media(NamedTuple):
    """A file a person sent, which the channel keeps until it is fetched."""

    reference: str
    kind: str
    """image, audio, video or document."""
    mime: str
    sha256: str = ""
    """As the channel writes it; empty if it says none."""
    name: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a person."""

    sender: Sender
    kind: Kind
    text: str
    sent_us: int
    """When the person wrote it; 0 if the channel does not say, which then is when it was received."""
    external_id: str
    """The channel's id of the message, which replies, reactions and edits refer to."""
    option: str = ""
    """For a choice, the id of the option that was pressed."""
    refers_to: str = ""
    """The external id of the message that an edit or a deletion changes, an emoji is on, or a text quotes."""
    media: Media | None = None
    passed_on: str = ""
    """What somebody else wrote, by the channel's own marks: forwarded, or written by a bot in the person's name. It is
    never a part of the text."""

    def by_another(self) -> Received:
        """Return the message with its text as what somebody else wrote."""
        return replace(self, text="", passed_on=self.text)


class Delivery(IntEnum):
    """How far a sent message has come. It only ever grows."""

    UNKNOWN = 0
    SENT = 1
    DELIVERED = 2
    READ = 3
    PLAYED = 4


@dataclass(frozen=True, slots=True)
class Status:
    """What the channel says of a message that was sent."""

    external_id: str
    delivery: Delivery
    error_code: str = ""
    """Not empty if it could not be delivered."""
    outbox_id: str = ""
    """Our own id of the message, if the channel returns it."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """A person has other identities from now on: their number or their id changed."""

    previous: tuple[Identity, ...]
    current: tuple[Identity, ...]
    changed_us: int = 0
    """When they changed; 0 if the channel does not say."""


@dataclass(frozen=True, slots=True)
class Echoed:
    """Somebody of the business answered a person by hand, from the business's own phone."""

    receiver: Sender


@dataclass(frozen=True, slots=True)
class Kept:
    """Something nobody replies to: that it came is noted, not what it says."""

    reason: str


Content: TypeAlias = Received | Status | Renamed | Echoed | Kept


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a webhook: a message, a status, or whatever else the channel sends."""

    account: str
    """The business's own address in the channel, for example the id of its phone number."""
    element_id: str
    """Unique in the account: the same element comes again with the same id."""
    content: Content


class Option(NamedTuple):
    """One thing a person may choose."""

    title: str
    does: Mapping[str, Any]
    """What choosing it means: {"say": text}, {"reads": id, "args_hash": hash} for an approval whose card left out a
    part, or {"approval": id, "args_hash": hash, "approve": true or false, "extent": how much of it was shown}, with
    "also": [[id, hash], …] for the other approvals that it answers."""


class File(NamedTuple):
    """A file the agent sends, whose content it keeps until it is fetched."""

    file_id: str
    name: str
    mime: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to a person: a text with at most a few options to choose from, or a file."""

    text: str
    """The name of a file, if it is one."""
    options: tuple[Option, ...] = ()
    list_title: str = ""
    """What opens the options where they are a list instead of buttons."""
    file: File | None = None
    in_words: str = ""
    """What stands in the text where options cannot be shown; empty for their numbers, by which they are then chosen."""

    def stored(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "text": self.text,
            "list_title": self.list_title,
            "in_words": self.in_words,
            "options": [{"title": option.title, "does": dict(option.does)} for option in self.options],
            **({"file": list(self.file)} if self.file else {}),
        }

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Outgoing:
        """Return what stored() wrote."""
        options: Sequence[Mapping[str, Any]] = stored.get("options", ())
        file = stored.get("file")
        return cls(
            stored["text"],
            tuple(Option(one["title"], one["does"]) for one in options),
            stored.get("list_title", ""),
            File(*file) if file else None,
            stored.get("in_words", ""),
        )

    def with_lines(self) -> Outgoing:
        """Return the message with its options written in its text."""
        lines = self.in_words or self._numbers()
        return self if lines in self.text else replace(self, text=f"{self.text}\n\n{lines}")

    @property
    def is_numbered(self) -> bool:
        """True if the numbers of the options stand in the text."""
        return not self.in_words and bool(self.options) and self._numbers() in self.text

    def _numbers(self) -> str:
        return "\n".join(f"{number}. {option.title}" for number, option in enumerate(self.options, 1))


def option_id(outbox_id: str, number: int) -> str:
    """Return the id an option has in the channel: the message it belongs to, and its number there."""
    return f"{outbox_id}.{number}"


def option_of(identifier: str) -> tuple[str, int] | None:
    """Return the message and the number of an option id, None if it is not one of ours."""
    outbox_id, dot, number = identifier.rpartition(".")
    return (outbox_id, int(number)) if dot and number.isascii() and number.isdigit() and len(number) < 3 else None  # noqa: PLR2004
