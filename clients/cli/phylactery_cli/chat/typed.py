"""When a line was typed at the prompt, and whether several lines were pasted: it answers no card drawn after that."""

from __future__ import annotations

import math
import time
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

_ENTER: Final = (Keys.ControlM, Keys.ControlJ)
_NOT_TYPED: Final = (Keys.CPRResponse, Keys.Ignore, Keys.Vt100MouseEvent, Keys.WindowsMouseEvent)
"""What a terminal sends by itself."""


class TypedLines:
    """The lines of one prompt, and when the first key of each was typed, in seconds of time.monotonic."""

    def __init__(self, session: PromptSession[str]) -> None:
        self._source: Input = session.input
        self._ahead_since = time.monotonic()
        """When the keys that are typed ahead may have been typed at the earliest."""
        self._ahead = False
        self.at = math.inf
        session.default_buffer.on_text_changed += self._changed

    def begin(self) -> None:
        """Note that a prompt begins; keys that are there already were typed before it was drawn."""
        with self._source.raw_mode():
            keys = [*get_typeahead(self._source), *self._source.read_keys(), *self._source.flush_keys()]
        store_typeahead(self._source, keys)
        self._ahead = any(one.key not in _NOT_TYPED for one in keys)
        self.at = self._ahead_since if self._ahead else math.inf

    def end(self, line: str) -> str:
        """Return a line that was entered, with the lines that came in the same read: they are one paste."""
        self.at = min(self.at, time.monotonic())
        keys = get_typeahead(self._source)
        if keys and not self._ahead and not line.startswith("/"):
            last = max((place for place, one in enumerate(keys) if one.key in _ENTER), default=-1)
            line, keys = "\n".join([line, *_lines(keys[: last + 1])]), keys[last + 1 :]
        store_typeahead(self._source, keys)
        self._ahead_since = self.at if keys else time.monotonic()
        return line

    def _changed(self, buffer: Buffer) -> None:
        if not self._ahead:
            self.at = min(self.at, time.monotonic()) if buffer.text else math.inf


def _lines(keys: list[KeyPress]) -> list[str]:
    """Return the lines that keys typed, each of which an Enter ended."""
    text = "".join("\n" if one.key in _ENTER else one.data for one in keys)
    return [one for one in text.split("\n") if one.strip()]
