"""Ports for services that stop and restart: below the ephemeral range, so that no other process takes one."""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _END = 10_000, 32_000
"""Linux assigns ports from 32768 for port 0 and for outgoing connections."""
_numbers = itertools.count(os.getpid() * 997)


def lasting_port() -> int:
    """Return a free loopback port that no other call of this process returns."""
    for number in itertools.islice(_numbers, _END - _FIRST):
        port = _FIRST + number % (_END - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError(f"no port from {_FIRST} to {_END} is free")
