"""A network delay: a separate process that forwards a PostgreSQL client's messages after a pause."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_START_SECONDS = 20


@contextlib.contextmanager
def delayed(folder: Path, milliseconds: float) -> Iterator[Path]:
    """Yield a folder whose socket leads to that of another folder, with each message delayed."""
    with tempfile.TemporaryDirectory(prefix="phylactery-delay-") as near:
        command = [sys.executable, "-m", "benchmarks.delay", str(folder / _SOCKET), near, str(milliseconds)]
        process = subprocess.Popen(command)
        try:
            limit = time.monotonic() + _START_SECONDS
            while not (Path(near) / _SOCKET).exists():
                if process.poll() is not None or time.monotonic() > limit:
                    raise RuntimeError("the delayed socket did not come up; what it said stands above")
                time.sleep(0.02)
            yield Path(near)
        finally:
            process.terminate()
            process.wait(_START_SECONDS)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Forward data in order, each piece after the delay."""
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def send() -> None:
        while True:
            due, data = await pieces.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    sending = asyncio.create_task(send())
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            pieces.put_nowait((loop.time() + seconds, data))
    pieces.put_nowait((loop.time(), b""))
    with contextlib.suppress(ConnectionError):
        await sending


async def _serve(far: str, near: str, seconds: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(far)
        await asyncio.gather(_pass_on(reader, to_server, seconds), _pass_on(from_server, writer, 0))

    async with await asyncio.start_unix_server(connected, Path(near) / _SOCKET) as server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1_000))
