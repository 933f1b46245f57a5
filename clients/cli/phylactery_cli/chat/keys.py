"""Keys pressed while an answer is written: one stops it, others are kept for the next prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

_STOP = (Keys.ControlC, Keys.Escape)
_ESCAPE_SECONDS = 0.05
"""How long to wait after Escape for the rest of a longer sequence, such as an arrow key's."""


@contextmanager
def stop_keys(source: Input, stop: Callable[[], object], gone: Callable[[], object]) -> Iterator[None]:
    """Read keys during the block: Ctrl-C and Escape call stop, others are typed ahead; gone: terminal lost."""
    loop = asyncio.get_running_loop()
    ahead: list[KeyPress] = []

    def take(pressed: list[KeyPress]) -> None:
        for one in pressed:
            if one.key in _STOP:
                stop()
            else:
                ahead.append(one)

    def read() -> None:
        take(source.read_keys())
        if source.closed:
            gone()
        else:
            loop.call_later(_ESCAPE_SECONDS, flush)

    def flush() -> None:
        if reading:
            take(source.flush_keys())

    reading = True
    with source.raw_mode(), source.attach(read):
        try:
            yield
        finally:
            reading = False
            take(source.flush_keys())
            store_typeahead(source, ahead)
