"""How a message is cut to what a channel takes: long texts in parts, options as buttons, a list or numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from phylactery_gateway.channels.messages import Option, Outgoing
from phylactery_gateway.channels.port import Limits

_MAX_PARTS = 20
"""A message in more parts than this is cut: nobody reads 80,000 characters on a phone."""

Form = Literal["text", "buttons", "list"]


def form_of(message: Outgoing, limits: Limits) -> Form:
    """Return how a message's options are shown: as buttons, as a list, or within the text."""
    titles = [option.title for option in message.options]
    if not titles:
        return "text"
    if len(titles) <= limits.buttons and all(len(title) <= limits.button_title for title in titles):
        return "buttons"
    return "list" if len(titles) <= limits.rows else "text"


def parts(message: Outgoing, limits: Limits) -> Sequence[Outgoing]:
    """Return the messages that say it, in order; the options belong to the last one.

    Where options are not buttons their numbers stand in the text, so that a person may also type one.
    """
    if message.file is not None:
        return [message]
    if form_of(message, limits) != "buttons" and message.options:
        message = message.with_lines()
    if not message.options:
        return [Outgoing(text) for text in split(message.text, limits.text)]
    room = limits.text if form_of(message, limits) == "text" else limits.body
    if len(message.text) <= room:
        return [message]
    texts = split(message.text, limits.text)
    before, last = texts[:-1], texts[-1]
    if len(last) > room:
        *more, last = split(last, room)
        before = [*before, *more]
    return [*(Outgoing(text) for text in before), replace(message, text=last)]


def row_titles(options: Sequence[Option], most: int) -> Sequence[str]:
    """Return the titles of a list's rows. They are different, because a channel refuses two that are alike."""
    return [
        option.title if len(option.title) <= most else f"{number}. {option.title}"[: most - 1] + "…"
        for number, option in enumerate(options, 1)
    ]


def split(text: str, most: int) -> list[str]:
    """Return a text in parts of at most ``most`` characters, cut at the end of a line or word where there is one."""
    found = list(pieces(text, most))
    if len(found) > _MAX_PARTS:
        found = [*found[: _MAX_PARTS - 1], found[_MAX_PARTS - 1][: most - 1] + "…"]
    return found or [text]


def pieces(text: str, most: int) -> Iterator[str]:
    """Yield all of a text in parts of at most ``most`` characters, cut as split does."""
    left = text.strip()
    while len(left) > most:
        places = (left.rfind(mark, most // 2, most) for mark in ("\n\n", "\n", ". ", " "))
        end = next((place + 1 for place in places if place > 0), most)
        yield left[:end].strip()
        left = left[end:].strip()
    if left:
        yield left
