"""A proxy socket before PostgreSQL's that counts round trips: requests whose response a client waits for."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_LENGTH = 4
_ASKS = (b"Q", b"S")
"""A simple query, and the Sync at the end of an extended query or a pipeline."""


class Counted:
    """Requests since the last reset; ``said`` holds the first words of every statement, BEGIN included."""

    def __init__(self) -> None:
        self.round_trips = 0
        self.said: Counter[str] = Counter()
        self._gate = threading.Lock()

    def reset(self) -> None:
        """Reset the counts."""
        with self._gate:
            self.round_trips = 0
            self.said.clear()

    def note(self, kind: bytes, body: bytes) -> None:
        """Record a message of a client."""
        with self._gate:
            self.round_trips += kind in _ASKS
            if kind == b"Q":
                self.said[_words(body)] += 1
            elif kind == b"P":
                self.said[_words(body.partition(b"\0")[2])] += 1
            elif kind == b"B":
                self.said["bind"] += 1


def _words(text: bytes) -> str:
    return " ".join(text.partition(b"\0")[0].decode().split()[:3])


@contextmanager
def counted(folder: Path, near: Path) -> Iterator[Counted]:
    """Listen in ``near`` for the server whose socket is in ``folder``, and count, during the block."""
    counts = Counted()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(near / _SOCKET))
        door.listen(64)
        threading.Thread(target=_serve, args=(door, str(folder / _SOCKET), counts), daemon=True).start()
        yield counts
        with suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)


def _serve(door: socket.socket, server: str, counts: Counted) -> None:
    with suppress(OSError):
        while True:
            client, _ = door.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(server)
            threading.Thread(target=_ask, args=(client, far, counts), daemon=True).start()
            threading.Thread(target=_answer, args=(far, client), daemon=True).start()


def _answer(far: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := far.recv(65_536):
            client.sendall(data)
    _end(far, client)


def _ask(client: socket.socket, far: socket.socket, counts: Counted) -> None:
    data, kind_bytes = b"", 0  # the first message of a session has no type byte
    with suppress(OSError):
        while more := client.recv(65_536):
            data += more
            while len(data) >= kind_bytes + _LENGTH:
                size = kind_bytes + int.from_bytes(data[kind_bytes : kind_bytes + _LENGTH])
                if len(data) < size:
                    break
                counts.note(data[:kind_bytes], data[kind_bytes + _LENGTH : size])
                data, kind_bytes = data[size:], 1
            far.sendall(more)
    _end(far, client)


def _end(*ends: socket.socket) -> None:
    for one in ends:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
