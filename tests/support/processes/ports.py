"""Ports for services that end and come back: below those the system hands out, so that nobody takes one."""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _END = 10_000, 32_000
"""Linux hands out 32768 and above for port 0 and for the near end of a connection."""
_numbers = itertools.count(os.getpid() * 997)


def lasting_port() -> int:
    """Return a port of loopback that nobody listens at and no other call of this process answers."""
    for number in itertools.islice(_numbers, _END - _FIRST):
        port = _FIRST + number % (_END - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError(f"no port from {_FIRST} to {_END} is free")
