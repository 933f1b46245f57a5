"""A client that floods a gRPC port with calls that it resets: python -m tests.support.servers.http2_flood PORT …

It prints how many calls each of its connections began. No client library would send them so fast.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
from typing import Final

_HEADERS, _RESET, _SETTINGS, _PING = 1, 3, 4, 6
_END_HEADERS = 4
_CANCEL: Final = struct.pack(">I", 8)
_AT_ONCE: Final = 100
_SECONDS: Final = 60.0


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _field(name: bytes, value: bytes) -> bytes:
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def _head(path: bytes) -> bytes:
    """Return the headers of a call in HPACK, without a token: POST and http are of its static table."""
    fields = ((b":path", path), (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers"))
    return b"\x83\x86" + b"".join(_field(*one) for one in fields)


def _calls(head: bytes, first: int, *, reset: bool) -> bytes:
    sent = bytearray()
    for stream in range(first, first + 2 * _AT_ONCE, 2):
        sent += _frame(_HEADERS, _END_HEADERS, stream, head)
        if reset:
            sent += _frame(_RESET, 0, stream, _CANCEL)
    return bytes(sent)


def _flood(port: int, path: bytes, count: int, kind: str, begun: list[int]) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, b""))

        def drain() -> None:
            with contextlib.suppress(OSError):
                while connection.recv(65_536):
                    pass

        threading.Thread(target=drain, daemon=True).start()
        number = 0
        with contextlib.suppress(OSError):
            while number < count:
                connection.sendall(_calls(_head(path), 2 * number + 1, reset=kind == "reset"))
                if kind == "ping":
                    connection.sendall(_frame(_PING, 0, 0, 8 * b"p") * 100)
                number += _AT_ONCE
        begun.append(number)


def main() -> None:
    """Flood PORT over CONNECTIONS with COUNT calls each of the method at PATH; KIND is reset, open or ping."""
    port, connections, count, path, kind = sys.argv[1:]
    begun: list[int] = []

    def flood() -> None:
        _flood(int(port), path.encode(), int(count), kind, begun)

    threads = [threading.Thread(target=flood) for _ in range(int(connections))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    sys.stdout.write(f"{begun}\n")


if __name__ == "__main__":
    main()
