"""Files that people sent, fetched from their channel as attachments for the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_client import Attachment

from phylactery_gateway.channels.messages import Media
from phylactery_gateway.channels.port import Channel, MediaError, MediaUnavailableError

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_TOTAL_BYTES: Final = 16 * 1024 * 1024
"""What the agent takes: of one file, and of all of a message together (docs/input.md)."""
_TOO_LARGE: Final = "TOO_LARGE"
_MESSAGES: Final[Mapping[str, str]] = {
    _TOO_LARGE: "media_too_large",
    "TYPE_NOT_ALLOWED": "media",
    "NOT_SUPPORTED": "media",
}
_FAILED: Final = "media_failed"

_log = get_logger("files")


async def fetch(channel: Channel, media: Sequence[Media], *, again: bool) -> tuple[list[Attachment], str]:
    """Return the attachments, and the message that tells what is missing, '' if nothing is.

    Raise MediaUnavailableError if the channel may hand out a file later; with ``again`` False it counts as missing.
    """
    found: list[Attachment] = []
    missing = ""
    for one in media:
        room = MAX_TOTAL_BYTES - sum(len(file.data) for file in found)
        try:
            data = await channel.fetch(one, min(MAX_BYTES, room))
        except MediaError as error:
            if again and isinstance(error, MediaUnavailableError):
                raise
            _log.info("a file was not fetched", channel=channel.name, reason=error.reason)
            missing = missing or _MESSAGES.get(error.reason, _FAILED)
            continue
        except Exception as error:  # noqa: BLE001 - or this file would hold up all that its person writes after it
            _log.error("a file was not fetched", channel=channel.name, error=type(error).__name__)
            missing = missing or _FAILED
            continue
        found.append(Attachment(one.kind.upper(), one.mime.partition(";")[0].strip(), data, one.name))
    return found, missing
